/* Writes the answers of the module: JSON in one buffer. The functions insert commas. */
#ifndef EXPLORER_JSON_H
#define EXPLORER_JSON_H

#include <stdint.h>

/* Declares an export of the module with a name. */
#define EXPORTED(name) __attribute__((export_name(#name)))

void json_begin(void);
int32_t json_end(void); /* returns the number of bytes written */

void json_open(char bracket); /* '{' or '[' */
void json_close(char bracket);
void json_key(const char *name);

void json_text(const char *text);
void json_integer(int64_t x);
void json_boolean(int x);
void json_null(void);

/* Write a string in pieces. */
void json_begin_text(void);
void json_put(const char *piece);
void json_put_character(char character);
void json_put_integer(int64_t x);
void json_put_natural(uint64_t x);
void json_put_hex(uint64_t x, int digits); /* in capitals, at least `digits` digits */
void json_end_text(void);

/* Write a number in pieces, as a string: digits, a point, an exponent. */
void json_begin_number(void);
void json_end_number(void);

/* Write a member of an object: "name": value. */
void json_text_of(const char *name, const char *text);
void json_integer_of(const char *name, int64_t x);
void json_boolean_of(const char *name, int x);
void json_null_of(const char *name);

/* Writes an answer that reports only a fault of the caller; returns its length. */
int32_t json_failure(const char *why);

#endif
