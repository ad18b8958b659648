/* What people type, as an exact value or a code. */
#ifndef EXPLORER_READ_NUMBER_H
#define EXPLORER_READ_NUMBER_H

#include "exact.h"

struct typed {
    const char *error; /* why it is nothing of this; 0 if it is something */
    int is_code;       /* "0x7E" or "0b0111" */
    int binary;        /* the second */
    int32_t digits;    /* of the second */
    uint64_t code;
};

/* Reads n characters. A number is in *x; a code is in what is returned. */
struct typed read_number(const char *text, int32_t n, struct exact *x);

#endif
