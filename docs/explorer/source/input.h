/* What the page hands over beside integers: one text, and lists of codes. */
#ifndef EXPLORER_INPUT_H
#define EXPLORER_INPUT_H

#include "exact.h"

enum { INPUT_TEXT_ROOM = 1 << 20, INPUT_LISTS = 5, INPUT_LIST_ROOM = 1024 };

extern char input_text[INPUT_TEXT_ROOM];
extern uint64_t input_list[INPUT_LISTS][INPUT_LIST_ROOM];

/* Reads a value from the text, of which n characters are left, as far as its line goes;
 * returns why it is none, or 0. *at moves behind the line. A code is no value here. */
const char *input_value(const char **at, int32_t *n, struct exact *x);

#endif
