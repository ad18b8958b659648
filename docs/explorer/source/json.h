/* Answers of the module: JSON, written from the front to the end of one buffer. Commas
 * come by themselves. */
#ifndef EXPLORER_JSON_H
#define EXPLORER_JSON_H

#include <stdint.h>

/* Named exports of the module. */
#define EXPORTED(name) __attribute__((export_name(#name)))

void json_begin(void);
int32_t json_end(void); /* bytes written */

void json_open(char bracket); /* '{' or '[' */
void json_close(char bracket);
void json_key(const char *name);

void json_text(const char *text);
void json_integer(int64_t x);
void json_boolean(int x);
void json_null(void);

/* A text in pieces. */
void json_begin_text(void);
void json_put(const char *piece);
void json_put_character(char character);
void json_put_integer(int64_t x);
void json_put_natural(uint64_t x);
void json_put_hex(uint64_t x, int digits); /* capitals, at least so many digits */
void json_end_text(void);

/* A number in pieces, put like a text: digits, a point, an exponent. */
void json_begin_number(void);
void json_end_number(void);

/* "name": ... */
void json_text_of(const char *name, const char *text);
void json_integer_of(const char *name, int64_t x);
void json_boolean_of(const char *name, int x);
void json_null_of(const char *name);

/* The whole answer is that the caller erred. */
int32_t json_failure(const char *why);

#endif
