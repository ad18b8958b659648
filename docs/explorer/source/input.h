/* The input of the module besides integer arguments: one string, and lists of codes. */
#ifndef EXPLORER_INPUT_H
#define EXPLORER_INPUT_H

#include "exact.h"

enum { INPUT_TEXT_ROOM = 1 << 20, INPUT_LISTS = 5, INPUT_LIST_ROOM = 1024 };

extern char input_text[INPUT_TEXT_ROOM];
extern uint64_t input_list[INPUT_LISTS][INPUT_LIST_ROOM];

/* Reads a value from the line at *at, where *n characters are left, and advances *at past
 * the line. Returns 0, or why the line is not a value; a code is not a value. */
const char *input_value(const char **at, int32_t *n, struct exact *x);

#endif
