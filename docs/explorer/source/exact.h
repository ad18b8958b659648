/* Exact real numbers: typed values and numbers of formats. */
#ifndef EXPLORER_EXACT_H
#define EXPLORER_EXACT_H

#include "big.h"
#include "formats/codec.h"

/* number / divisor * 2^exponent, with a sign, also for zero. number and divisor are odd,
 * and have no common divisor. Zero is 0 / 1 * 2^0. Inf and NaN have only a class and a
 * sign. */
struct exact {
    enum tf_value_class value_class;
    int negative;
    int32_t exponent;
    struct big number, divisor;
};

void exact_set(struct exact *x, int negative, uint64_t number, int32_t exponent);
void exact_set_special(struct exact *x, int negative, enum tf_value_class value_class);
void exact_copy(struct exact *to, const struct exact *from);
/* Reduces a number to lowest terms. */
void exact_normalize(struct exact *x);

int exact_is_zero(const struct exact *x);
int exact_is_finite(const struct exact *x);
int exact_is_dyadic(const struct exact *x); /* finite, and an integer times 2^exponent */
int exact_equal(const struct exact *x, const struct exact *y); /* 0 and -0 are equal */
/* Compares finite numbers; returns -1, 0 or 1. */
int exact_compare(const struct exact *x, const struct exact *y);

/* Arithmetic of finite numbers. A result may be the same object as an operand. */
void exact_add(struct exact *sum, const struct exact *x, const struct exact *y);
void exact_subtract(struct exact *rest, const struct exact *x, const struct exact *y);
void exact_multiply(struct exact *product, const struct exact *x, const struct exact *y);
void exact_divide(struct exact *quotient, const struct exact *x, const struct exact *y);

/* Returns the floor of the binary logarithm of the magnitude, which is not zero. */
int32_t exact_top(const struct exact *x);

/* Returns a value for the codec: 64 bits, and whether more bits are set (`sticky`). The
 * exponents of all numbers that can be typed fit. */
struct tf_value exact_to_value(const struct exact *x);
void exact_of_value(struct exact *x, struct tf_value value); /* ignores `sticky` */

#endif
