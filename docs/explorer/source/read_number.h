/* Reads typed numbers as exact values or codes. */
#ifndef EXPLORER_READ_NUMBER_H
#define EXPLORER_READ_NUMBER_H

#include "exact.h"

struct typed {
    const char *error; /* why the input is neither a number nor a code; otherwise 0 */
    int is_code;       /* a code: "0x7E" or "0b0111" */
    int binary;        /* a binary code: "0b0111" */
    int32_t digits;    /* the number of digits of a binary code */
    uint64_t code;
};

/* Reads n characters. Writes a number to *x, or returns a code. */
struct typed read_number(const char *text, int32_t n, struct exact *x);

#endif
