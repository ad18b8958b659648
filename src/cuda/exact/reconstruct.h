/* Integers from their residues, by the Chinese remainder theorem: the integer
 * is the sum of y_j P / p_j, modulo P, where y_j is the residue times the inverse of P / p_j. */
#ifndef TF32DTYPE_CUDA_EXACT_RECONSTRUCT_H
#define TF32DTYPE_CUDA_EXACT_RECONSTRUCT_H

#include "cuda/exact/moduli.h"
#include "exact/digits.h"

enum { WORDS = 3 };

/* An integer of 192 bits, or its two's complement. */
struct long_integer {
    uint64_t words[WORDS];
};

/* The constants of the reconstruction, P being the product of all moduli. */
struct reconstruction {
    long_integer weights[MOST_MODULI]; /* P / p_j */
    long_integer product, half; /* P, P / 2 */
    uint32_t inverses[MOST_MODULI]; /* of P / p_j, modulo p_j */
    int64_t moduli;
};
static_assert(sizeof(reconstruction) == 616 && TF_OFFSETOF(reconstruction, inverses) == 528,
              "as in tf32dtype/cuda/_matmul/integer_products.py");

/* Adds y times a factor to x. */
inline void add_times(long_integer *x, const long_integer &y, uint64_t factor)
{
    tf_u128 carry = 0;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        carry += (tf_u128)y.words[i] * factor + x->words[i];
        x->words[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

inline long_integer negated(long_integer x)
{
    tf_u128 carry = 1;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        carry += ~x.words[i];
        x.words[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return x;
}

inline bool is_negative(const long_integer &x) { return x.words[WORDS - 1] >> 63; }

/* Returns the integer from -P / 2 to below P / 2 that has the residues. */
inline long_integer integer_of_residues(const uint8_t *residues, int64_t plane,
                                        const reconstruction &by)
{
    long_integer sum = {};
    double share = 0; /* of P */
#pragma unroll
    for (int j = 0; j < MOST_MODULI; j++) {
        if (j >= by.moduli) {
            break;
        }
        const uint32_t p = EVERY_MODULUS[j];
        const uint32_t y = residues[j * plane] * by.inverses[j] % p;
        add_times(&sum, by.weights[j], y);
        share += (double)y * (1.0 / p);
    }
    /* The quotient may be wrong by one if the integer is near -P / 2. */
    long_integer multiples = {};
    add_times(&multiples, by.product, (uint64_t)(share + 0.5));
    add_times(&sum, negated(multiples), 1);
    long_integer moved = sum;
    add_times(&moved, by.half, 1);
    if (is_negative(moved)) { /* below -P / 2 */
        add_times(&sum, by.product, 1);
    }
    moved = sum;
    add_times(&moved, negated(by.half), 1);
    if (!is_negative(sum) && !is_negative(moved)) { /* P / 2 or more */
        add_times(&sum, negated(by.product), 1);
    }
    return sum;
}

/* A magnitude is leading * 2^exponent, and more if `sticky`. The top bit of `leading` is set,
 * or it is 0. */
struct magnitude {
    tf_u128 leading;
    int exponent;
    bool negative, sticky;
};

inline magnitude magnitude_of(long_integer x)
{
    const bool negative = is_negative(x);
    x = negative ? negated(x) : x;
    const int top = x.words[2] ? 2 : x.words[1] ? 1 : 0;
    const uint64_t first = top == 2 ? x.words[2] : top == 1 ? x.words[1] : x.words[0];
    const uint64_t second = top == 2 ? x.words[1] : top == 1 ? x.words[0] : 0;
    const uint64_t third = top == 2 ? x.words[0] : 0;
    const int shift = first ? tf_leading_zeros(first) : 0;
    const tf_u128 leading = (tf_u128)first << 64 | second;
    const uint64_t moved = shift ? third >> (64 - shift) : 0;
    return {leading << shift | moved, 64 * (top - 1) - shift, negative,
            third << shift != 0};
}

#endif
