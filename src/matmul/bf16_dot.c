/* Decides where the instruction for pairs of bfloat16 is exact, and where it pays. */
#include "matmul/bf16_dot.h"

#include <math.h>
#include <string.h>

#include "matmul/workspace.h"
#include "runtime/cpu_dispatch.h"
#include "runtime/sizes.h"

/* If the operands are multiples of 2^e and of 2^f, all products and sums are multiples of
 * 2^(e + f). None of them is subnormal if e + f is at least -126. */
enum { LEAST_NORMAL_EXPONENT = -126 };

struct tf_magnitude_range tf_no_range(void)
{
    struct tf_magnitude_range range;
    memset(range.min_minus_1, 0xFF, sizeof range.min_minus_1);
    memset(range.greatest, 0, sizeof range.greatest);
    return range;
}

struct tf_exponents tf_exponents_of(struct tf_magnitude_range *range)
{
    tf_isa->matmul->reduce_range(range);
    const uint16_t less_one = range->min_minus_1[0], greatest = range->greatest[0];
    const int field = (less_one + 1) >> 7 & 0xFF;
    const struct tf_exponents all_zero = {0, 0};
    const struct tf_exponents found = {
        field == 0 ? -1000 : field - 127,
        greatest >= TF_BF16_INF_BITS ? 1000 : (greatest >> 7) - 127,
    };
    return less_one == UINT16_MAX ? all_zero : found;
}

/* bfloat16 numbers are multiples of 2^-7 times their leading bit. */
int tf_bf16_dot_is_exact(struct tf_exponents a, struct tf_exponents b)
{
    return a.least - 7 + b.least - 7 >= LEAST_NORMAL_EXPONENT;
}

/* Components are multiples of 2^-23 times the leading bit of the number that was split, and
 * products and sums are multiples of the product of both. Only the upper half of the number
 * is known, which may count as the next power of two: 2^-24. The components of pairs are
 * not scaled, while those of singles are: no sum of pairs may come near Inf. A sum has at
 * most 9 * 32 products, each at most 2^2 times the leading bits. */
int tf_bf16_split_dot_is_exact(struct tf_exponents a, struct tf_exponents b)
{
    enum { LAST = -24, GREATEST = 127 - 9 - 2 };
    const int least_a = a.least + LAST, least_b = b.least + LAST;
    return least_a >= LEAST_NORMAL_EXPONENT && least_b >= LEAST_NORMAL_EXPONENT &&
           least_a + least_b >= LEAST_NORMAL_EXPONENT &&
           a.greatest + b.greatest < GREATEST;
}

/* Whether this processor's instruction is as simd_bf16.h says: checked once. */
static int pairs_are_chains;

void tf_probe_bf16_dot(void)
{
    enum { WORDS = 8, SAMPLES = TF_MR * TF_KC / 2 };
    float a[SAMPLES], b[WORDS * TF_NR_MAX], c[TF_MR * TF_NR_MAX];
    const struct tf_kernel kernel = tf_isa->matmul->pairs;
    const size_t width = kernel.columns;
    const struct tf_split_product term = {0, 0, 1};
    if (!kernel.multiply) {
        return;
    }
    /* Each word has two numbers with magnitudes from 2^-24 to 2^24 and random signs. */
    uint32_t state = 1;
    for (size_t i = 0; i < SAMPLES + WORDS * width; i++) {
        uint32_t word = 0;
        for (int which = 0; which < 2; which++) {
            state = state * UINT32_C(1664525) + UINT32_C(1013904223);
            const uint32_t exponent = 103 + (state >> 24) % 48;
            word = word << 16 | (state >> 8 & TF_BF16_SIGN_BIT) | exponent << 7 |
                   (state >> 16 & 0x7F);
        }
        memcpy(i < SAMPLES ? a + i : b + i - SAMPLES, &word, sizeof word);
    }
    /* Multiplies in two steps: the second step continues the sums of the first. */
    kernel.multiply(a, TF_KC / 2, b, 1, &term, 1, kernel.rows, c, width, TF_SUMS_WRITE);
    kernel.multiply(a + 1, TF_KC / 2, b + width, WORDS - 1, &term, 1, kernel.rows, c, width,
                    TF_SUMS_CONTINUE);
    pairs_are_chains = 1;
    for (size_t i = 0; i < TF_MR; i++) {
        for (size_t j = 0; j < width; j++) {
            float chain = 0;
            for (size_t k = 0; k < 2 * WORDS; k++) {
                uint32_t x, y;
                memcpy(&x, a + i * TF_KC / 2 + k / 2, sizeof x);
                memcpy(&y, b + k / 2 * width + j, sizeof y);
                x = k % 2 ? x << 16 : x & TF_UPPER_HALF;
                y = k % 2 ? y << 16 : y & TF_UPPER_HALF;
                float p, q;
                memcpy(&p, &x, sizeof p);
                memcpy(&q, &y, sizeof q);
                chain = fmaf(p, q, chain);
            }
            pairs_are_chains &= memcmp(&chain, c + i * width + j, sizeof chain) == 0;
        }
    }
}

struct tf_kernel tf_pairs_kernel(void)
{
    return tf_pairs_pay && pairs_are_chains ? tf_isa->matmul->pairs
                                            : (struct tf_kernel){NULL, 0, 0};
}

int tf_always_normal(struct tf_operand a, struct tf_operand b)
{
    return a.parts == 1 && tf_least_exponent(*tf_format_rows[a.format]) +
                                   tf_least_exponent(*tf_format_rows[b.format]) >=
                               LEAST_NORMAL_EXPONENT;
}
