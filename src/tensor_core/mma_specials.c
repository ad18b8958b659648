/* Inf and NaN among operands of a tensor core, apart from its chains.
 *
 * A sum with an Inf or a NaN stays so to its end, whatever the unit's arithmetic. It is NaN if
 * there is a NaN, an Inf times zero, or products that are Inf of both signs; else it is that
 * Inf. So bits of which numbers of a row and a column are Inf, zero and negative tell what it
 * becomes, 64 k at a time, while loops compute with zeros in place of Inf and NaN. What they
 * sum up does not count. It must not overflow, since that would be an Inf, too: who calls
 * this has made sure.
 */
#include "tensor_core/mma_specials.h"

#include <math.h>

#include "formats/float_bits.h"
#include "runtime/asserts.h"
#include "tensor_core/mma_model.h"

enum { IS_NAN = 1, IS_INF = 2, IS_MINUS_INF = 4 }; /* an outcome's bits */

int tf_has_specials(const float *x, size_t n)
{
    uint32_t beyond = 0; /* its sign bit */
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

/* A row of A, of those noted, times all columns. */
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
            if (outcome) { /* a sum may have begun with an Inf */
                const float above = outcome & IS_INF ? INFINITY : 0;
                const float below = outcome & IS_MINUS_INF ? -INFINITY : 0;
                const float all = *sum + above + below;
                *sum = outcome & IS_NAN || all != all ? tf_float_of(TF_MAGNITUDE_BITS) : all;
            }
        }
    }
    work->has_outcomes = 0;
}
