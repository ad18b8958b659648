#include "exact.h"

void exact_set(struct exact *x, int negative, uint64_t number, int32_t exponent)
{
    x->value_class = TF_NUMBER;
    x->negative = negative;
    x->exponent = exponent;
    big_set(&x->number, number);
    big_set(&x->divisor, 1);
    exact_normalize(x);
}

void exact_set_special(struct exact *x, int negative, enum tf_value_class value_class)
{
    exact_set(x, negative, 0, 0);
    x->value_class = value_class;
}

void exact_copy(struct exact *to, const struct exact *from)
{
    to->value_class = from->value_class;
    to->negative = from->negative;
    to->exponent = from->exponent;
    big_copy(&to->number, &from->number);
    big_copy(&to->divisor, &from->divisor);
}

/* Divides x by its largest power of two, and returns the exponent of that power. */
static int32_t make_odd(struct big *x)
{
    const int32_t zeros = big_trailing_zeros(x);
    big_shift_right(x, zeros);
    return zeros;
}

void exact_normalize(struct exact *x)
{
    if (x->number.count == 0) {
        big_set(&x->divisor, 1);
        x->exponent = 0;
        return;
    }
    x->exponent += make_odd(&x->number);
    x->exponent -= make_odd(&x->divisor);
    if (big_bits(&x->divisor) == 1) {
        return;
    }
    struct big common, other, rest;
    big_copy(&common, &x->number);
    big_copy(&other, &x->divisor);
    big_common_divisor(&common, &other);
    if (big_bits(&common) > 1) {
        big_divide(&other, &rest, &x->number, &common);
        big_copy(&x->number, &other);
        big_divide(&other, &rest, &x->divisor, &common);
        big_copy(&x->divisor, &other);
    }
}

int exact_is_finite(const struct exact *x) { return x->value_class == TF_NUMBER; }

int exact_is_zero(const struct exact *x)
{
    return exact_is_finite(x) && x->number.count == 0;
}

int exact_is_dyadic(const struct exact *x)
{
    return exact_is_finite(x) && big_bits(&x->divisor) == 1;
}

int exact_equal(const struct exact *x, const struct exact *y)
{
    if (!exact_is_finite(x) || !exact_is_finite(y)) {
        return x->value_class == y->value_class &&
               (x->value_class == TF_NAN || x->negative == y->negative);
    }
    return exact_compare(x, y) == 0;
}

int exact_compare(const struct exact *x, const struct exact *y)
{
    struct exact rest;
    exact_subtract(&rest, x, y);
    return rest.number.count == 0 ? 0 : rest.negative ? -1 : 1;
}

/* Sets sum = x + y, or x - y. */
static void combine(struct exact *sum, const struct exact *x, const struct exact *y,
                    int subtract)
{
    struct big a, b;
    const int x_negative = x->negative, y_negative = y->negative != subtract;
    const int32_t least = x->number.count == 0   ? y->exponent
                          : y->number.count == 0 ? x->exponent
                          : x->exponent < y->exponent ? x->exponent
                                                      : y->exponent;
    big_multiply(&a, &x->number, &y->divisor);
    big_multiply(&b, &y->number, &x->divisor);
    big_shift_left(&a, a.count ? x->exponent - least : 0);
    big_shift_left(&b, b.count ? y->exponent - least : 0);
    struct big divisor;
    big_multiply(&divisor, &x->divisor, &y->divisor);
    big_copy(&sum->divisor, &divisor);
    sum->value_class = TF_NUMBER;
    sum->exponent = least;
    if (x_negative == y_negative) {
        big_add(&sum->number, &a, &b);
        sum->negative = x_negative;
    } else if (big_compare(&a, &b) >= 0) {
        big_subtract(&sum->number, &a, &b);
        sum->negative = sum->number.count != 0 && x_negative;
    } else {
        big_subtract(&sum->number, &b, &a);
        sum->negative = y_negative;
    }
    exact_normalize(sum);
}

void exact_add(struct exact *sum, const struct exact *x, const struct exact *y)
{
    combine(sum, x, y, 0);
}

void exact_subtract(struct exact *rest, const struct exact *x, const struct exact *y)
{
    combine(rest, x, y, 1);
}

void exact_multiply(struct exact *product, const struct exact *x, const struct exact *y)
{
    struct big number, divisor;
    big_multiply(&number, &x->number, &y->number);
    big_multiply(&divisor, &x->divisor, &y->divisor);
    product->value_class = TF_NUMBER;
    product->negative = x->negative != y->negative;
    product->exponent = x->exponent + y->exponent;
    big_copy(&product->number, &number);
    big_copy(&product->divisor, &divisor);
    exact_normalize(product);
}

void exact_divide(struct exact *quotient, const struct exact *x, const struct exact *y)
{
    struct exact inverse;
    inverse.value_class = TF_NUMBER;
    inverse.negative = y->negative;
    inverse.exponent = -y->exponent;
    big_copy(&inverse.number, &y->divisor);
    big_copy(&inverse.divisor, &y->number);
    exact_multiply(quotient, x, &inverse);
}

int32_t exact_top(const struct exact *x)
{
    /* The quotient is in (2^(d - 1), 2^(d + 1)), where d is the difference of bit
     * lengths. */
    const int32_t d = big_bits(&x->number) - big_bits(&x->divisor);
    struct big scaled;
    int order;
    if (d >= 0) {
        big_copy(&scaled, &x->divisor);
        big_shift_left(&scaled, d);
        order = big_compare(&x->number, &scaled);
    } else {
        big_copy(&scaled, &x->number);
        big_shift_left(&scaled, -d);
        order = big_compare(&scaled, &x->divisor);
    }
    return x->exponent + d - (order < 0);
}

struct tf_value exact_to_value(const struct exact *x)
{
    if (!exact_is_finite(x)) {
        return tf_value_special(x->negative, x->value_class);
    }
    /* Make a quotient of at least 66 bits, and a remainder. */
    struct big number, quotient, rest;
    const int32_t shift = 66 - (big_bits(&x->number) - big_bits(&x->divisor));
    int sticky = 0;
    big_copy(&number, &x->number);
    if (shift > 0) {
        big_shift_left(&number, shift);
    }
    big_divide(&quotient, &rest, &number, &x->divisor);
    int32_t exponent = x->exponent - (shift > 0 ? shift : 0);
    sticky |= rest.count != 0;
    const int32_t over = big_bits(&quotient) - 64;
    if (over > 0) {
        sticky |= big_shift_right(&quotient, over);
        exponent += over;
    }
    struct tf_value value = tf_value_make(x->negative, big_low(&quotient), exponent);
    value.sticky = (uint8_t)sticky;
    return value;
}

void exact_of_value(struct exact *x, struct tf_value value)
{
    if (value.value_class != TF_NUMBER) {
        exact_set_special(x, value.negative, (enum tf_value_class)value.value_class);
    } else {
        exact_set(x, value.negative, value.significand, value.exponent);
    }
}
