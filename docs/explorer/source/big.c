#include "big.h"

static void need(int32_t limbs)
{
    if (limbs > BIG_LIMBS) {
        __builtin_trap();
    }
}

static void trim(struct big *x)
{
    while (x->count > 0 && x->limb[x->count - 1] == 0) {
        x->count--;
    }
}

void big_set(struct big *x, uint64_t value)
{
    x->limb[0] = (uint32_t)value;
    x->limb[1] = (uint32_t)(value >> 32);
    x->count = 2;
    trim(x);
}

void big_copy(struct big *to, const struct big *from)
{
    to->count = from->count;
    for (int32_t i = 0; i < from->count; i++) {
        to->limb[i] = from->limb[i];
    }
}

int32_t big_bits(const struct big *x)
{
    return x->count == 0 ? 0
                         : 32 * x->count - __builtin_clz(x->limb[x->count - 1]);
}

int big_bit(const struct big *x, int32_t place)
{
    return place >= 0 && place / 32 < x->count && (x->limb[place / 32] >> place % 32 & 1);
}

int32_t big_trailing_zeros(const struct big *x)
{
    if (x->count == 0) {
        return 0;
    }
    int32_t i = 0;
    while (x->limb[i] == 0) {
        i++;
    }
    return 32 * i + __builtin_ctz(x->limb[i]);
}

int big_compare(const struct big *x, const struct big *y)
{
    if (x->count != y->count) {
        return x->count < y->count ? -1 : 1;
    }
    for (int32_t i = x->count - 1; i >= 0; i--) {
        if (x->limb[i] != y->limb[i]) {
            return x->limb[i] < y->limb[i] ? -1 : 1;
        }
    }
    return 0;
}

uint64_t big_low(const struct big *x)
{
    const uint64_t low = x->count > 0 ? x->limb[0] : 0;
    return x->count > 1 ? low | (uint64_t)x->limb[1] << 32 : low;
}

void big_scale(struct big *x, uint32_t factor, uint32_t summand)
{
    uint64_t carry = summand;
    for (int32_t i = 0; i < x->count; i++) {
        carry += (uint64_t)x->limb[i] * factor;
        x->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        need(x->count + 1);
        x->limb[x->count++] = (uint32_t)carry;
    }
    trim(x);
}

uint32_t big_shrink(struct big *x, uint32_t divisor)
{
    uint64_t rest = 0;
    for (int32_t i = x->count - 1; i >= 0; i--) {
        rest = rest << 32 | x->limb[i];
        x->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    trim(x);
    return (uint32_t)rest;
}

void big_times_power(struct big *x, uint32_t base, int32_t exponent)
{
    while (exponent > 0) { /* multiply by as many factors at once as fit a limb */
        uint64_t factor = base;
        exponent--;
        while (exponent > 0 && factor * base <= UINT32_MAX) {
            factor *= base;
            exponent--;
        }
        big_scale(x, (uint32_t)factor, 0);
    }
}

void big_shift_left(struct big *x, int32_t bits)
{
    const int32_t limbs = bits / 32, rest = bits % 32;
    if (x->count == 0 || bits == 0) {
        return;
    }
    need(x->count + limbs + 1);
    x->limb[x->count] = 0;
    for (int32_t i = x->count; i >= 0; i--) {
        const uint64_t pair = (uint64_t)x->limb[i] << 32 | (i > 0 ? x->limb[i - 1] : 0);
        x->limb[i + limbs] = (uint32_t)(pair << rest >> 32);
    }
    for (int32_t i = 0; i < limbs; i++) {
        x->limb[i] = 0;
    }
    x->count += limbs + 1;
    trim(x);
}

int big_shift_right(struct big *x, int32_t bits)
{
    const int32_t limbs = bits / 32, rest = bits % 32;
    const int lost = x->count > 0 && big_trailing_zeros(x) < bits;
    if (limbs >= x->count) {
        x->count = 0;
        return lost;
    }
    for (int32_t i = limbs; i < x->count; i++) {
        const uint64_t above = i + 1 < x->count ? x->limb[i + 1] : 0;
        x->limb[i - limbs] = (uint32_t)((above << 32 | x->limb[i]) >> rest);
    }
    x->count -= limbs;
    trim(x);
    return lost;
}

void big_add(struct big *sum, const struct big *x, const struct big *y)
{
    const int32_t count = x->count > y->count ? x->count : y->count;
    uint64_t carry = 0;
    need(count + 1);
    for (int32_t i = 0; i < count; i++) {
        carry += (uint64_t)(i < x->count ? x->limb[i] : 0) +
                 (i < y->count ? y->limb[i] : 0);
        sum->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->limb[count] = (uint32_t)carry;
    sum->count = count + 1;
    trim(sum);
}

void big_subtract(struct big *rest, const struct big *x, const struct big *y)
{
    int64_t borrow = 0;
    for (int32_t i = 0; i < x->count; i++) {
        borrow += (int64_t)x->limb[i] - (i < y->count ? y->limb[i] : 0);
        rest->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    rest->count = x->count;
    trim(rest);
}

void big_multiply(struct big *product, const struct big *x, const struct big *y)
{
    need(x->count + y->count);
    product->count = x->count + y->count;
    for (int32_t i = 0; i < product->count; i++) {
        product->limb[i] = 0;
    }
    for (int32_t i = 0; i < x->count; i++) {
        uint64_t carry = 0;
        for (int32_t j = 0; j < y->count; j++) {
            carry += (uint64_t)x->limb[i] * y->limb[j] + product->limb[i + j];
            product->limb[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product->limb[i + y->count] = (uint32_t)carry;
    }
    trim(product);
}

/* Subtracts digit * y from rest; returns whether the result is negative. */
static int take_multiple(uint32_t *rest, const struct big *y, uint64_t digit)
{
    uint64_t carry = 0;
    int64_t borrow = 0;
    for (int32_t i = 0; i <= y->count; i++) {
        carry += i < y->count ? digit * y->limb[i] : 0;
        borrow += (int64_t)rest[i] - (uint32_t)carry;
        rest[i] = (uint32_t)borrow;
        carry >>= 32;
        borrow >>= 32;
    }
    return borrow < 0;
}

static void give_back(uint32_t *rest, const struct big *y)
{
    uint64_t carry = 0;
    for (int32_t i = 0; i <= y->count; i++) {
        carry += (uint64_t)rest[i] + (i < y->count ? y->limb[i] : 0);
        rest[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* Divides by algorithm D of Knuth, The Art of Computer Programming, 4.3.1. */
void big_divide(struct big *quotient, struct big *rest, const struct big *x,
                const struct big *y)
{
    if (big_compare(x, y) < 0) {
        quotient->count = 0;
        big_copy(rest, x);
        return;
    }
    if (y->count == 1) {
        const uint32_t divisor = y->limb[0];
        big_copy(quotient, x);
        big_set(rest, big_shrink(quotient, divisor));
        return;
    }
    struct big divisor;
    const int32_t shift = __builtin_clz(y->limb[y->count - 1]), n = y->count;
    big_copy(&divisor, y);
    big_shift_left(&divisor, shift);
    const int32_t count = x->count - n + 1;
    big_copy(rest, x);
    big_shift_left(rest, shift);
    need(x->count + 1);
    for (int32_t i = rest->count; i <= x->count; i++) {
        rest->limb[i] = 0;
    }
    const uint64_t first = divisor.limb[n - 1], second = divisor.limb[n - 2];
    for (int32_t j = count - 1; j >= 0; j--) {
        uint32_t *part = rest->limb + j;
        const uint64_t top = (uint64_t)part[n] << 32 | part[n - 1];
        uint64_t digit = top / first, left = top % first;
        while (digit > UINT32_MAX || digit * second > (left << 32 | part[n - 2])) {
            digit--;
            left += first;
            if (left > UINT32_MAX) {
                break;
            }
        }
        if (take_multiple(part, &divisor, digit)) {
            give_back(part, &divisor);
            digit--;
        }
        quotient->limb[j] = (uint32_t)digit;
    }
    quotient->count = count;
    trim(quotient);
    rest->count = n;
    trim(rest);
    big_shift_right(rest, shift);
}

void big_common_divisor(struct big *x, struct big *y)
{
    for (;;) {
        const int order = big_compare(x, y);
        if (order == 0) {
            return;
        }
        struct big *greater = order > 0 ? x : y, *lesser = order > 0 ? y : x;
        big_subtract(greater, greater, lesser);
        big_shift_right(greater, big_trailing_zeros(greater));
    }
}
