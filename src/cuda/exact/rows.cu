/* Reads operands of exact products: numbers of type ITEM in any strides become rows of
 * float64 with k contiguous.
 *
 * float64 rows are divided by a power of two, so that their largest magnitude is in [1/2,
 * 1). The errors of their products are then in range. A row whose numbers span more than
 * FARTHEST binades is left as it is. */
#include "cuda/exact/operand.h"
#include "cuda/exact/rows.h"

enum { FARTHEST = 400 };

/* Writes rows (count, lines, k) and their facts (count, lines). */
extern "C" __global__ void __launch_bounds__(SIDE *WARPS)
    read_rows(const operand x, double *rows, row_facts *facts)
{
    __shared__ tile_row tile[SIDE];
    const block_rows here(x, tile);
    const int64_t padded = tf_ceil_div(x.k, (int64_t)SIDE) * SIDE;
    int exponents[EACH] = {};
    bool only_exactly[EACH] = {};
    if (IS_DOUBLE) {
        uint64_t largest[EACH] = {}, smallest[EACH] = {}; /* all bits of `smallest` are inverted */
        here.for_numbers(x, padded, [&](int i, int64_t k, double number) {
            const uint64_t magnitude = magnitude_of(number);
            largest[i] = greater_of(magnitude, largest[i]);
            smallest[i] = greater_of(magnitude ? ~magnitude : 0, smallest[i]);
        });
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint64_t most = over_warp(largest[i], greater_of);
            const uint64_t least = ~over_warp(smallest[i], greater_of);
            if (most == 0) {
                continue;
            }
            const int top = exponent_of(most);
            only_exactly[i] = most >= INFINITE || top - exponent_of(least) > FARTHEST;
            exponents[i] = only_exactly[i] ? 0 : top;
        }
    }
    double squares[EACH] = {};
    int lowest[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        lowest[i] = INT32_MAX;
    }
    here.for_numbers(x, padded, [&](int i, int64_t k, double number) {
        const double value = IS_DOUBLE ? scaled(number, -exponents[i]) : number;
        const uint64_t magnitude = magnitude_of(value);
        only_exactly[i] |= !IS_DOUBLE && magnitude >= INFINITE;
        squares[i] += value * value;
        if (magnitude != 0 && magnitude < INFINITE) {
            const integer found = integer_of(magnitude);
            const int bit = found.exponent + tf_trailing_zeros(found.significand);
            lowest[i] = bit < lowest[i] ? bit : lowest[i];
        }
        if (here.has(i) && k < x.k) {
            rows[(here.row0 + i) * x.k + k] = value;
        }
    });
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const double sum = over_warp(squares[i], [](double p, double q) { return p + q; });
        const int unit = over_warp(lowest[i], [](int p, int q) { return p < q ? p : q; });
        const bool exactly = __any_sync(~0u, only_exactly[i]);
        /* The sum's relative error is below k units of 2^-53; twice as much covers the
         * roundings here, too. */
        const double norm = sqrt(sum) * (1 + (double)(x.k + 8) * 0x1p-52);
        if (threadIdx.x == 0 && here.has(i)) {
            const bool is_zero = unit == INT32_MAX;
            facts[here.row0 + i] = {exactly ? infinity() : norm,
                                    exactly   ? infinity()
                                    : is_zero ? 0
                                              : scaled(norm, -unit) * (1 + 0x1p-50),
                                    exponents[i], 0};
        }
    }
}
