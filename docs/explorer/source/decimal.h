/* Exact values as decimals. */
#ifndef EXPLORER_DECIMAL_H
#define EXPLORER_DECIMAL_H

#include "exact.h"

enum { DECIMAL_ROOM = 10 * BIG_LIMBS };

/* 0.d d d ... * 10^point; of zero no digits. */
struct decimal {
    int32_t count, point;
    int more; /* than these digits */
    char digits[DECIMAL_ROOM];
};

/* All digits of a finite magnitude; of those that do not end, 40. */
void decimal_of(struct decimal *d, const struct exact *x);

/* The first digits, to nearest, ties to even. */
void decimal_round(struct decimal *d, int32_t digits);

#endif
