/* Reads operands of exact products: numbers of type ITEM in any strides become rows of
 * float64 with k contiguous. A row is a row of the first operand, or a column of the second.
 *
 * float64 rows are divided by a power of two, so that their largest magnitude is in [1/2,
 * 1). The errors of their products are then in range. A row whose numbers span more than
 * FARTHEST binades is left as it is. */
#include "cuda/exact/rows.h"
#include "runtime/wide_integers.h"

struct operand {
    const ITEM *data;
    int64_t matrix, line, step; /* strides in numbers, which may be negative or 0 */
    int64_t count, lines, k;
};

enum { SIDE = 32, WARPS = 16, EACH = SIDE / WARPS, FARTHEST = 400 };

constexpr bool IS_DOUBLE = sizeof(ITEM) == 8;
typedef ITEM tile_row[SIDE + 1];

inline uint64_t magnitude_of(double x) { return (uint64_t)__double_as_longlong(x) & INT64_MAX; }

/* Returns e of a magnitude in [2^(e - 1), 2^e). */
inline int exponent_of(uint64_t magnitude)
{
    const int field = (int)(magnitude >> 52);
    return field > 0 ? field - 1022 : 64 - tf_leading_zeros(magnitude) - 1074;
}

/* Returns the exponent of the last 1 of a number other than 0. */
inline int lowest_bit(uint64_t magnitude)
{
    const int field = (int)(magnitude >> 52);
    const uint64_t mantissa = magnitude & (((uint64_t)1 << 52) - 1);
    const uint64_t significand = mantissa | (uint64_t)(field > 0) << 52;
    return (field > 0 ? field : 1) - 1075 + tf_trailing_zeros(significand);
}

/* Calls f(i, k, x) for the numbers of the warp's rows: row EACH * warp + i of a tile. */
template <class F>
inline void for_numbers(tile_row *tile, const operand &x, const ITEM *first, int lines, F f)
{
    const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
    /* Neighboring threads read the numbers that are closest in memory. */
    const int64_t line = x.line < 0 ? -x.line : x.line, step = x.step < 0 ? -x.step : x.step;
    const bool lines_are_close = line < step;
#pragma unroll 1
    for (int64_t at = 0; at < x.k; at += SIDE) {
        __syncthreads(); /* mutant: no barrier before the next numbers */
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int other = warp + i * WARPS;
            const int row = lines_are_close ? lane : other, k = lines_are_close ? other : lane;
            const bool is_there = row < lines && at + k < x.k;
            tile[row][k] = is_there ? first[row * x.line + (at + k) * x.step] : 0;
        }
        __syncthreads(); /* mutant: no barrier before numbers are used */
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            f(i, at + lane, (double)tile[warp * EACH + i][lane]);
        }
    }
}

template <class T, class F> inline T over_warp(T x, F f)
{
#pragma unroll
    for (int mask = SIDE / 2; mask; mask /= 2) {
        x = f(x, __shfl_xor_sync(~0u, x, mask));
    }
    return x;
}

/* Writes rows (count, lines, k) and their facts (count, lines). A block has SIDE rows. */
extern "C" __global__ void __launch_bounds__(SIDE *WARPS)
    read_rows(const operand x, double *rows, row_facts *facts)
{
    __shared__ tile_row tile[SIDE];
    const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
    const int64_t line0 = (int64_t)blockIdx.x * SIDE, matrix = blockIdx.y;
    const int lines = (int)(x.lines - line0 < SIDE ? x.lines - line0 : SIDE);
    const ITEM *first = x.data + matrix * x.matrix + line0 * x.line;
    const int64_t row0 = matrix * x.lines + line0 + warp * EACH;
    int exponents[EACH] = {};
    bool only_exactly[EACH] = {};
    if (IS_DOUBLE) {
        uint64_t largest[EACH] = {}, smallest[EACH] = {}; /* all bits of `smallest` are inverted */
        for_numbers(tile, x, first, lines, [&](int i, int64_t k, double number) {
            const uint64_t magnitude = magnitude_of(number);
            largest[i] = magnitude > largest[i] ? magnitude : largest[i];
            const uint64_t inverse = magnitude ? ~magnitude : 0;
            smallest[i] = inverse > smallest[i] ? inverse : smallest[i];
        });
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const auto greater = [](uint64_t p, uint64_t q) { return p > q ? p : q; };
            const uint64_t most = over_warp(largest[i], greater);
            const uint64_t least = ~over_warp(smallest[i], greater);
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
    for_numbers(tile, x, first, lines, [&](int i, int64_t k, double number) {
        const double value = IS_DOUBLE ? scaled(number, -exponents[i]) : number;
        const uint64_t magnitude = magnitude_of(value);
        only_exactly[i] |= !IS_DOUBLE && magnitude >= INFINITE;
        squares[i] += value * value;
        if (magnitude != 0 && magnitude < INFINITE) {
            const int bit = lowest_bit(magnitude);
            lowest[i] = bit < lowest[i] ? bit : lowest[i];
        }
        if (warp * EACH + i < lines && k < x.k) {
            rows[(row0 + i) * x.k + k] = value;
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
        if (lane == 0 && warp * EACH + i < lines) {
            const bool is_zero = unit == INT32_MAX;
            facts[row0 + i] = {exactly ? infinity() : norm,
                               exactly   ? infinity()
                               : is_zero ? 0
                                         : scaled(norm, -unit) * (1 + 0x1p-50),
                               exponents[i], 0};
        }
    }
}
