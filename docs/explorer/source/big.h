/* Natural numbers of up to BIG_LIMBS limbs of 32 bits, the lowest first, without a zero at
 * the top. A result may be the same object as an operand, except in big_divide and
 * big_multiply. */
#ifndef EXPLORER_BIG_H
#define EXPLORER_BIG_H

#include <stdint.h>

/* The longest string and the largest exponent that read_number.c takes need about half of
 * it. A larger number ends the module. */
enum { BIG_LIMBS = 8192 };

struct big {
    int32_t count;
    uint32_t limb[BIG_LIMBS];
};

void big_set(struct big *x, uint64_t value);
void big_copy(struct big *to, const struct big *from);
int32_t big_bits(const struct big *x); /* 0 for zero */
int big_bit(const struct big *x, int32_t place);
int32_t big_trailing_zeros(const struct big *x); /* 0 for zero */
int big_compare(const struct big *x, const struct big *y);
uint64_t big_low(const struct big *x); /* the lowest 64 bits */

/* x = x factor + summand */
void big_scale(struct big *x, uint32_t factor, uint32_t summand);
/* x = x / divisor; returns the remainder */
uint32_t big_shrink(struct big *x, uint32_t divisor);
void big_times_power(struct big *x, uint32_t base, int32_t exponent);

void big_shift_left(struct big *x, int32_t bits);
int big_shift_right(struct big *x, int32_t bits); /* returns whether ones were lost */

void big_add(struct big *sum, const struct big *x, const struct big *y);
void big_subtract(struct big *rest, const struct big *x, const struct big *y); /* x >= y */
void big_multiply(struct big *product, const struct big *x, const struct big *y);
/* y is not 0 */
void big_divide(struct big *quotient, struct big *rest, const struct big *x,
                const struct big *y);
/* Sets *x to the greatest common divisor of two odd numbers, and overwrites *y. */
void big_common_divisor(struct big *x, struct big *y);

#endif
