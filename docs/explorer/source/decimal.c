#include "decimal.h"

enum { DIGITS_WITHOUT_END = 40 };

/* Writes the digits of an integer, none for zero, and overwrites the integer. */
static void write_integer(struct decimal *d, struct big *x)
{
    int32_t at = DECIMAL_ROOM;
    while (x->count) {
        uint32_t nine = big_shrink(x, 1000000000);
        for (int i = 0; i < 9; i++) {
            d->digits[--at] = (char)('0' + nine % 10);
            nine /= 10;
        }
    }
    while (at < DECIMAL_ROOM && d->digits[at] == '0') {
        at++;
    }
    d->count = DECIMAL_ROOM - at;
    for (int32_t i = 0; i < d->count; i++) {
        d->digits[i] = d->digits[at + i];
    }
}

static void drop_zeros(struct decimal *d)
{
    while (d->count > 0 && d->digits[d->count - 1] == '0') {
        d->count--;
    }
}

/* Returns f if x is 5^f, otherwise -1. */
static int32_t fives_of(const struct big *x)
{
    enum { AT_ONCE = 13 }; /* 5^13 fits into a limb */
    const uint32_t power = 1220703125;
    struct big rest, before;
    int32_t fives = 0;
    big_copy(&rest, x);
    do {
        big_copy(&before, &rest);
        fives += AT_ONCE;
    } while (big_shrink(&rest, power) == 0);
    fives -= AT_ONCE;
    while (big_bits(&before) > 1) {
        if (big_shrink(&before, 5) != 0) {
            return -1;
        }
        fives++;
    }
    return fives;
}

/* Writes the digits of x = n / (2^t 5^f), which is n 2^(s - t) 5^(s - f) / 10^s, where s is
 * the larger of t and f. */
static void write_ending(struct decimal *d, const struct exact *x, int32_t fives)
{
    struct big number;
    const int32_t twos = -x->exponent, scale = twos > fives ? twos : fives;
    const int32_t tens = scale > 0 ? scale : 0;
    big_copy(&number, &x->number);
    big_times_power(&number, 5, tens - fives);
    big_shift_left(&number, tens - twos);
    write_integer(d, &number);
    d->point = d->count - tens;
    d->more = 0;
}

static void write_without_end(struct decimal *d, const struct exact *x)
{
    /* 30103 / 100000 is slightly above the decimal logarithm of 2. */
    const int32_t place = exact_top(x) * 30103 / 100000;
    const int32_t tens = DIGITS_WITHOUT_END + 2 - place;
    struct big number, divisor, quotient, rest;
    big_copy(&number, &x->number);
    big_copy(&divisor, &x->divisor);
    big_times_power(tens > 0 ? &number : &divisor, 5, tens > 0 ? tens : -tens);
    const int32_t shift = x->exponent + tens;
    big_shift_left(shift > 0 ? &number : &divisor, shift > 0 ? shift : -shift);
    big_divide(&quotient, &rest, &number, &divisor);
    write_integer(d, &quotient);
    d->point = d->count - tens;
    d->count = DIGITS_WITHOUT_END;
    d->more = 1;
}

void decimal_of(struct decimal *d, const struct exact *x)
{
    d->count = d->point = d->more = 0;
    if (exact_is_zero(x)) {
        return;
    }
    const int32_t fives = fives_of(&x->divisor);
    if (fives >= 0) {
        write_ending(d, x, fives);
        drop_zeros(d);
    } else {
        write_without_end(d, x);
    }
}

void decimal_round(struct decimal *d, int32_t digits)
{
    if (d->count <= digits) {
        return;
    }
    const char next = d->digits[digits];
    const int exactly_half = next == '5' && d->count == digits + 1 && !d->more;
    int up = exactly_half ? (d->digits[digits - 1] - '0') % 2 : next >= '5';
    d->count = digits;
    d->more = 1;
    for (int32_t i = digits - 1; i >= 0 && up; i--) {
        up = d->digits[i] == '9';
        d->digits[i] = up ? '0' : (char)(d->digits[i] + 1);
    }
    if (up) { /* 999 became 1000 */
        d->digits[0] = '1';
        d->point++;
    }
    drop_zeros(d);
}
