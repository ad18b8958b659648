/* Real numbers, exactly: what people type and what formats hold. */
#ifndef EXPLORER_EXACT_H
#define EXPLORER_EXACT_H

#include "big.h"
#include "formats/codec.h"

/* number / divisor * 2^exponent, with a sign (of zero too); both odd, and without a common
 * divisor. Zero is 0 / 1 * 2^0. Inf and NaN have their class and sign alone. */
struct exact {
    enum tf_value_class value_class;
    int negative;
    int32_t exponent;
    struct big number, divisor;
};

void exact_set(struct exact *x, int negative, uint64_t number, int32_t exponent);
void exact_set_special(struct exact *x, int negative, enum tf_value_class value_class);
void exact_copy(struct exact *to, const struct exact *from);
/* Of numbers that are set, but not yet in lowest terms. */
void exact_normalize(struct exact *x);

int exact_is_zero(const struct exact *x);
int exact_is_finite(const struct exact *x);
int exact_is_dyadic(const struct exact *x); /* finite, and an integer times 2^exponent */
int exact_equal(const struct exact *x, const struct exact *y); /* 0 and -0 are equal */
/* Of finite numbers: -1, 0, 1. */
int exact_compare(const struct exact *x, const struct exact *y);

/* Of finite numbers. A result may be the same number as an operand. */
void exact_add(struct exact *sum, const struct exact *x, const struct exact *y);
void exact_subtract(struct exact *rest, const struct exact *x, const struct exact *y);
void exact_multiply(struct exact *product, const struct exact *x, const struct exact *y);
void exact_divide(struct exact *quotient, const struct exact *x, const struct exact *y);

/* Floor of the binary logarithm of the magnitude, which is not zero. */
int32_t exact_top(const struct exact *x);

/* As the codec takes it: 64 bits, and whether there is more. Exponents of any number that
 * can be typed fit. */
struct tf_value exact_to_value(const struct exact *x);
void exact_of_value(struct exact *x, struct tf_value value); /* without `sticky` */

#endif
