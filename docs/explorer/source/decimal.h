/* Exact values as decimals. */
#ifndef EXPLORER_DECIMAL_H
#define EXPLORER_DECIMAL_H

#include "exact.h"

enum { DECIMAL_ROOM = 10 * BIG_LIMBS };

/* The value 0.ddd... * 10^point; zero has no digits. */
struct decimal {
    int32_t count, point;
    int more; /* the value has more digits than these */
    char digits[DECIMAL_ROOM];
};

/* Writes all digits of a finite magnitude, or 40 if they do not end. */
void decimal_of(struct decimal *d, const struct exact *x);

/* Rounds to at most `digits` digits, to nearest with ties to even. */
void decimal_round(struct decimal *d, int32_t digits);

#endif
