/* The vectors of a dot product: given as lists of codes, and multiplied as bits of
 * float32. */
#ifndef EXPLORER_DOT_OPERANDS_H
#define EXPLORER_DOT_OPERANDS_H

#include "input.h"

struct dot_operands {
    int32_t n;
    uint32_t a[INPUT_LIST_ROOM], b[INPUT_LIST_ROOM];
    int32_t ks[INPUT_LIST_ROOM]; /* 0, 1, 2, ... */
};

extern struct dot_operands operands;

/* Reads lists 0 and 1, codes of formats a and b; returns an error, or 0. */
const char *read_operands(int a, int b, int32_t n);

/* Returns the bits of the float32 with the value of a code. */
uint32_t operand_bits(int format, uint64_t code);

/* Adds a[k] b[k] factor to a finite sum; the sum becomes NaN if one of the three is not
 * finite. */
void add_product(struct exact *sum, int32_t k, const struct exact *factor);

/* Writes the members "exact", the sum without any rounding, and "error", result - sum. */
void write_dot_error(const struct exact *sum, int format, uint64_t result);

#endif
