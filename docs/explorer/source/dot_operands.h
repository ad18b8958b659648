/* The vectors of a dot product: as lists of codes they come in, as float32's bits they
 * are multiplied. */
#ifndef EXPLORER_DOT_OPERANDS_H
#define EXPLORER_DOT_OPERANDS_H

#include "input.h"

struct dot_operands {
    int32_t n;
    uint32_t a[INPUT_LIST_ROOM], b[INPUT_LIST_ROOM];
    int32_t ks[INPUT_LIST_ROOM]; /* 0, 1, 2, ... */
};

extern struct dot_operands operands;

/* Reads lists 0 and 1, codes of two formats; returns what is wrong, or 0. */
const char *read_operands(int a, int b, int32_t n);

/* The bits of the float32 that a code is. */
uint32_t operand_bits(int format, uint64_t code);

/* sum += a[k] b[k] factor, unless the sum is not finite; NaN if one of these is not. */
void add_product(struct exact *sum, int32_t k, const struct exact *factor);

/* The members "exact", which is the sum without any rounding, and "error": how far the
 * result is from it. */
void write_dot_error(const struct exact *sum, int format, uint64_t result);

#endif
