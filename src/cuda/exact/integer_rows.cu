/* Reads operands of emulated precisions: numbers of type ITEM become residues of integers,
 * in int8 with k contiguous. docs/reference/emulated_precisions.md defines the scales of
 * rows. In accurate mode, the scales follow from a product of upper bounds of the numbers. */
#include "cuda/exact/operand.h"

#include "cuda/exact/moduli.h"

enum { BOUND_BITS = 5, NORM_BITS = 16 };

/* Returns a magnitude times 2^exponent, rounded up to an integer. */
inline uint64_t rounded_up(uint64_t magnitude, int exponent)
{
    const integer x = integer_of(magnitude);
    const int shift = x.exponent + exponent;
    if (shift >= 0) { /* a subnormal number */
        return x.significand << shift;
    }
    if (shift <= -64) {
        return x.significand != 0;
    }
    const uint64_t kept = x.significand >> -shift;
    return kept + (kept << -shift != x.significand); /* mutant: bounds rounded down */
}

/* The largest magnitudes of the rows of this block. */
struct row_tops {
    int of[EACH];       /* exponents of the leading bits */
    bool special[EACH]; /* Inf or NaN */

    inline row_tops(const block_rows &here, const operand &x, int64_t padded)
    {
        uint64_t largest[EACH] = {};
        here.for_numbers(x, padded, [&](int i, int64_t k, double number) {
            largest[i] = greater_of(magnitude_of(number), largest[i]);
        });
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint64_t most = over_warp(largest[i], greater_of);
            special[i] = most >= INFINITE;
            of[i] = special[i] || most == 0 ? 0 : exponent_of(most) - 1;
        }
    }

    inline uint64_t finite(int i, double number) const
    {
        return special[i] ? 0 : magnitude_of(number);
    }
};

/* Writes upper bounds (count, lines, padded) of the numbers, zeros beyond k, for accurate
 * mode. */
extern "C" __global__ void __launch_bounds__(SIDE *WARPS)
    bound_rows(const operand x, integer_row *rows, int8_t *bounds, int64_t padded)
{
    __shared__ tile_row tile[SIDE];
    const block_rows here(x, tile);
    const row_tops tops(here, x, padded);
    here.for_numbers(x, padded, [&](int i, int64_t k, double number) {
        if (here.has(i)) {
            bounds[(here.row0 + i) * padded + k] =
                (int8_t)rounded_up(tops.finite(i, number), BOUND_BITS - tops.of[i]);
        }
    });
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (threadIdx.x == 0 && here.has(i)) {
            rows[here.row0 + i] = {tops.of[i], 0, tops.special[i], 0};
        }
    }
}

/* Finds the scales of rows in fast mode. */
extern "C" __global__ void __launch_bounds__(SIDE *WARPS)
    scale_rows(const operand x, const scale_limits limits, integer_row *rows, int64_t padded)
{
    __shared__ tile_row tile[SIDE];
    const block_rows here(x, tile);
    const row_tops tops(here, x, padded);
    uint64_t squares[EACH] = {};
    here.for_numbers(x, padded, [&](int i, int64_t k, double number) {
        const uint64_t bound = rounded_up(tops.finite(i, number), NORM_BITS - tops.of[i]);
        squares[i] += bound * bound;
    });
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const uint64_t sum =
            over_warp(squares[i], [](uint64_t p, uint64_t q) { return p + q; });
        int scale = 0;
        if (sum != 0) {
            /* The norm is sum * 2^shift. GEMMul8 multiplies that of float64 numbers by
             * 2^floor(log2(norm)). */
            int shift = 2 * (tops.of[i] - NORM_BITS);
            shift += IS_DOUBLE ? 63 - tf_leading_zeros(sum) + shift : 0;
            const int half = shift >> 1; /* rounded down */
            const int found = exponent_for(sum << (shift & 1), limits) - half;
            scale = (found < limits.most ? found : limits.most) - tops.of[i];
        }
        if (threadIdx.x == 0 && here.has(i)) {
            rows[here.row0 + i] = {tops.of[i], scale, tops.special[i], 0};
        }
    }
}

/* -- residues ---------------------------------------------------------------------------- */

/* Returns the residue of an integer, as a number of int8. */
template <int J> inline int8_t residue_of(tf_u128 integer, bool negative)
{
    constexpr uint32_t P = EVERY_MODULUS[J];
    constexpr uint32_t TWO_TO_64 = (uint32_t)((UINT64_MAX % P + 1) % P);
    const uint32_t upper = (uint32_t)((uint64_t)(integer >> 64) % P);
    const uint32_t lower = (uint32_t)((uint64_t)integer % P);
    const uint32_t residue = (upper * TWO_TO_64 + lower) % P;
    const uint32_t signed_one = negative && residue ? P - residue : residue;
    return (int8_t)(signed_one >= 128 ? (int)signed_one - (int)P : (int)signed_one);
}

template <int J> inline void write_residues(int8_t *to, int64_t plane, tf_u128 integer,
                                            bool negative, int moduli)
{
    if constexpr (J < MOST_MODULI) {
        if (J < moduli) {
            *to = residue_of<J>(integer, negative);
            write_residues<J + 1>(to + plane, plane, integer, negative, moduli);
        }
    }
}

/* Writes residues (moduli, count, lines, padded) of the scaled numbers, truncated to
 * integers. In accurate mode it also finds the scales, by the largest sums of bounds,
 * `maxima` (count, lines); this is NULL in fast mode. */
extern "C" __global__ void __launch_bounds__(SIDE *WARPS)
    residues(const operand x, const scale_limits limits, integer_row *rows,
             const int32_t *maxima, int8_t *out, int64_t padded, int32_t moduli)
{
    __shared__ tile_row tile[SIDE];
    const block_rows here(x, tile);
    const int64_t plane = x.count * x.lines * padded;
    int scales[EACH];
    bool special[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const integer_row row = here.has(i) ? rows[here.row0 + i] : integer_row{};
        scales[i] = row.scale;
        special[i] = row.special;
        if (maxima) {
            const int most = here.has(i) ? maxima[here.row0 + i] : 0;
            scales[i] = BOUND_BITS - row.top +
                        (most > 0 ? exponent_for((uint64_t)most, limits) : 0);
        }
    }
    bool is_cut[EACH] = {};
    here.for_numbers(x, padded, [&](int i, int64_t k, double number) {
        const integer found = integer_of(special[i] ? 0 : magnitude_of(number));
        const int shift = found.exponent + scales[i];
        tf_u128 integer = 0;
        if (shift >= 0) {
            integer = (tf_u128)found.significand << shift;
        } else if (shift > -64) {
            integer = found.significand >> -shift;
        }
        is_cut[i] |= shift < 0 && (shift <= -64 ? found.significand
                                                : found.significand << (64 + shift)) != 0;
        if (here.has(i)) {
            write_residues<0>(out + (here.row0 + i) * padded + k, plane, integer, number < 0,
                              moduli);
        }
    });
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const bool any_cut = __any_sync(~0u, is_cut[i]);
        if (threadIdx.x == 0 && here.has(i)) {
            rows[here.row0 + i].scale = scales[i]; /* mutant: scales that are not kept */
            rows[here.row0 + i].is_cut = any_cut;
        }
    }
}
