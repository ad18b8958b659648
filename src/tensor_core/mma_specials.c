/* Handle Inf and NaN among the operands of a tensor core separately from its chains.
 *
 * A sum with an Inf or a NaN keeps it to the end, in the arithmetic of every unit. The
 * result is NaN for a NaN, for Inf times zero, and for infinite products of both signs;
 * else it is that Inf. Bits of 64 k at a time say which elements of a row and a column are
 * Inf, zero or negative, and these bits give the result. Meanwhile the loops compute with
 * zeros in place of Inf and NaN, and their sums do not count. Those sums must not overflow,
 * which would be an Inf too. The caller ensures this.
 */
#include "tensor_core/mma_specials.h"

#include <math.h>

#include "formats/float_bits.h"
#include "runtime/asserts.h"
#include "tensor_core/mma_model.h"

enum { IS_NAN = 1, IS_INF = 2, IS_MINUS_INF = 4 }; /* bits of an outcome */

int tf_has_specials(const float *x, size_t n)
{
    uint32_t beyond = 0; /* the sign bit is set for Inf and NaN */
    for (size_t i = 0; i < n; i++) {
        beyond |= (TF_INF_BITS - 1) - (tf_bits_of(x[i]) & TF_MAGNITUDE_BITS);
    }
    return (int)(beyond >> 31);
}

float tf_greatest_finite(const float *x, size_t n)
{
    uint32_t greatest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(x[i]) & TF_MAGNITUDE_BITS;
        const uint32_t counted = magnitude < TF_INF_BITS ? magnitude : 0;
        greatest = counted > greatest ? counted : greatest;
    }
    return tf_float_of(greatest);
}

void tf_take_specials(const struct tf_packed_lines *lines, uint32_t normal,
                      struct tf_special_lines *noted)
{
    TF_ASSERT(lines->depth <= TF_KC && lines->count <= TF_NC);
    for (size_t line = 0; line < lines->count; line++) {
        const size_t lane = line % lines->width;
        float *first = lines->numbers + (line - lane) * lines->depth + lane;
        noted->some[line] = noted->nan[line] = 0;
        for (size_t k0 = 0; k0 < lines->depth; k0 += 64) {
            const size_t left = lines->depth - k0, n = left < 64 ? left : 64;
            uint64_t infinite = 0, zero = 0, negative = 0, nan = 0;
            for (size_t k = 0; k < n; k++) {
                float *place = first + (k0 + k) * lines->width;
                const uint32_t bits = tf_bits_of(*place);
                const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
                infinite |= (uint64_t)(magnitude == TF_INF_BITS) << k;
                nan |= (uint64_t)(magnitude > TF_INF_BITS) << k;
                zero |= (uint64_t)(magnitude < normal) << k;
                negative |= (uint64_t)(bits >> 31) << k;
                *place = magnitude < TF_INF_BITS ? *place : 0;
            }
            noted->infinite[k0 / 64][line] = infinite;
            noted->zero[k0 / 64][line] = zero;
            noted->negative[k0 / 64][line] = negative;
            noted->nan[line] |= nan != 0;
            noted->some[line] |= (infinite | nan) != 0;
        }
    }
}

/* Multiplies one noted row of A by all columns, and adds the results to their outcomes. */
static void add_row(const struct tf_special_lines *a, size_t row,
                    const struct tf_special_lines *b, size_t columns, size_t words,
                    uint8_t *outcomes)
{
    for (size_t w = 0; w < words; w++) {
        const uint64_t infinite = a->infinite[w][row], zero = a->zero[w][row];
        const uint64_t negative = a->negative[w][row];
        for (size_t j = 0; j < columns; j++) {
            const uint64_t other = b->infinite[w][j], other_zero = b->zero[w][j];
            const uint64_t nan = (infinite & other_zero) | (other & zero);
            const uint64_t products = (infinite & ~other_zero) | (other & ~zero);
            const uint64_t minus = negative ^ b->negative[w][j];
            outcomes[j] |= (uint8_t)((nan ? IS_NAN : 0) | (products & ~minus ? IS_INF : 0) |
                                     (products & minus ? IS_MINUS_INF : 0));
        }
    }
    for (size_t j = 0; j < columns; j++) {
        outcomes[j] |= a->nan[row] | b->nan[j] ? IS_NAN : 0;
    }
}

void tf_add_outcomes(struct tf_workspace *work, size_t i, size_t rows, size_t columns,
                     size_t depth)
{
    const struct tf_special_lines *a = &work->specials[0], *b = &work->specials[1];
    uint8_t some = 0;
    for (size_t j = 0; j < columns; j++) {
        some |= b->some[j];
    }
    for (size_t row = 0; row < rows; row++) {
        if (some | a->some[row]) {
            add_row(a, row, b, columns, (depth + 63) / 64,
                    work->outcomes + (i + row) * TF_NC);
        }
    }
}

void tf_settle_outcomes(struct tf_workspace *work, size_t rows, size_t columns,
                        float *sums)
{
    for (size_t i = 0; i < rows && work->has_outcomes; i++) {
        for (size_t j = 0; j < columns; j++) {
            const uint8_t outcome = work->outcomes[i * TF_NC + j];
            float *sum = sums + i * work->ld + j;
            if (outcome) { /* an accumulator may be Inf from the start */
                const float above = outcome & IS_INF ? INFINITY : 0;
                const float below = outcome & IS_MINUS_INF ? -INFINITY : 0;
                const float all = *sum + above + below;
                *sum = outcome & IS_NAN || all != all ? tf_float_of(TF_MAGNITUDE_BITS) : all;
            }
        }
    }
    work->has_outcomes = 0;
}
