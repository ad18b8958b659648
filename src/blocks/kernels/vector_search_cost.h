/* Costs of many scales at once, by vector instructions: plain_search_cost.h defines them.
 *
 * Candidates are side by side. The lanes of the definition are added in its order, four
 * lanes at a time, so that all sums stay in registers.
 */
#ifndef TF32DTYPE_BLOCKS_KERNELS_VECTOR_SEARCH_COST_H
#define TF32DTYPE_BLOCKS_KERNELS_VECTOR_SEARCH_COST_H

#include "blocks/cpu_hooks.h"
#include "runtime/kernels/simd.h"

#if !defined(__AVX2__) || !defined(__FMA__)
#include "blocks/plain_search_cost.h"
#else

/* Returns the smallest lane, in all lanes. */
TF_INLINE words least_of_lanes(words x)
{
#if defined(__AVX512BW__)
    return words_of(_mm512_reduce_min_epu32((__m512i)x));
#else
    __m256i least = (__m256i)x;
    least = _mm256_min_epu32(least, _mm256_permute2x128_si256(least, least, 1));
    least = _mm256_min_epu32(least, _mm256_shuffle_epi32(least, 0x4E));
    return (words)_mm256_min_epu32(least, _mm256_shuffle_epi32(least, 0xB1));
#endif
}

/* Returns one bit per lane: whether x and y are equal. */
TF_INLINE unsigned which_lanes(words x, words y)
{
#if defined(__AVX512BW__)
    return _mm512_cmpeq_epi32_mask((__m512i)x, (__m512i)y);
#else
    return (unsigned)_mm256_movemask_ps((__m256)(x == y));
#endif
}

TF_INLINE floats magnitudes_of(floats x)
{
    return (floats)((words)x & TF_MAGNITUDE_BITS);
}

/* Does as tf_nearest_within for vectors. x must not be negative, unless e is integers. */
TF_INLINE floats nearest_within(struct tf_element e, floats x)
{
    floats magic = floats_of(12582912.0f * tf_power_of_two(-e.fraction));
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const floats unit = greater_floats(x, floats_of(tf_float_of(tf_least_normal(f))));
        magic = (floats)(((words)unit & TF_INF_BITS) +
                         ((uint32_t)tf_cut(f) << 23 | UINT32_C(0x00400000)));
    }
    return x + magic - magic;
}

TF_INLINE floats first_error(struct tf_element e, float greatest, floats x, floats minus,
                             floats inverse)
{
    const floats y = lesser_floats(x * inverse, floats_of(greatest));
    return fused(minus, nearest_within(e, y), x);
}

TF_INLINE floats add_error(floats sum, floats d, int extremes)
{
    return extremes ? greater_floats(magnitudes_of(d), sum) : fused(d, d, sum);
}

TF_INLINE floats join(floats x, floats y, int extremes)
{
    return extremes ? greater_floats(x, y) : x + y;
}

/* Adds all lanes of one candidate, or returns their maximum. */
TF_INLINE float join_lanes(const floats *sum, int extremes)
{
#if defined(__AVX512BW__)
    __m256 eight = _mm512_castps512_ps256((__m512)sum[0]);
    const __m256 upper = _mm512_extractf32x8_ps((__m512)sum[0], 1);
#else
    __m256 eight = (__m256)sum[0];
    const __m256 upper = (__m256)sum[1];
#endif
    eight = extremes ? _mm256_max_ps(eight, upper) : _mm256_add_ps(eight, upper);
    __m128 four = _mm256_castps256_ps128(eight);
    __m128 other = _mm256_extractf128_ps(eight, 1);
    four = extremes ? _mm_max_ps(four, other) : _mm_add_ps(four, other);
    other = _mm_movehl_ps(four, four);
    four = extremes ? _mm_max_ps(four, other) : _mm_add_ps(four, other);
    other = _mm_movehdup_ps(four);
    four = extremes ? _mm_max_ps(four, other) : _mm_add_ps(four, other);
    return _mm_cvtss_f32(four);
}

TF_INLINE words lane_numbers(void)
{
#if defined(__AVX512BW__)
    return (words){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
    return (words){0, 1, 2, 3, 4, 5, 6, 7};
#endif
}

/* Writes a vector of costs. Those from index `left` on become Inf, or NaN. */
TF_INLINE void put_costs(floats costs, int left, float *cost)
{
    const words beyond = (words)((ints)lane_numbers() >= left);
    costs = (floats)((words)costs | (beyond & TF_INF_BITS));
    memcpy(cost, &costs, sizeof costs);
}

/* Puts one cost into a lane of a vector. */
TF_INLINE void put_cost(float one, int lane, floats *costs)
{
    const words same = (words)(lane_numbers() == (uint32_t)lane);
    *costs = (floats)(((words)floats_of(one) & same) | ((words)*costs & ~same));
}

/* Writes the last vector of costs, and Inf up to a whole batch. */
TF_INLINE void fill_costs(floats rest, int from, int count, float *cost)
{
    for (int c = from; c < tf_whole_batches(count); c += LANES) {
        memcpy(cost + c, &rest, sizeof rest);
        rest = floats_of(tf_float_of(TF_INF_BITS));
    }
}

/* Returns the costs of a vector of candidates. */
TF_INLINE floats first_costs(struct tf_element e, float greatest, const float *x, int n,
                             floats scale, int extremes)
{
    const floats minus = -scale, inverse = 1.0f / scale;
    floats part[4];
#pragma GCC unroll 1
    for (int g = 0; g < 4; g++) {
        floats sum[4] = {{0}, {0}, {0}, {0}};
#pragma GCC unroll 2
        for (int k = g; k < n; k += TF_BLOCK_LANES) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                const floats d = first_error(e, greatest, floats_of(x[k + 4 * j]), minus,
                                             inverse);
                sum[j] = add_error(sum[j], d, extremes);
            }
        }
        part[g] = join(join(sum[0], sum[2], extremes), join(sum[1], sum[3], extremes),
                       extremes);
    }
    return join(join(part[0], part[2], extremes), join(part[1], part[3], extremes),
                extremes);
}

/* Returns the cost of one candidate, from vectors of numbers. */
TF_INLINE float first_cost(struct tf_element e, float greatest, const float *x, int n,
                           float scale, int extremes)
{
    const floats minus = floats_of(-scale), inverse = floats_of(1.0f / scale);
    floats sum[TF_BLOCK_LANES / LANES];
    for (int l = 0; l < TF_BLOCK_LANES / LANES; l++) {
        sum[l] = (floats){0};
        for (int k = 0; k < n; k += TF_BLOCK_LANES) {
            const floats d =
                first_error(e, greatest, load_floats(x + k + l * LANES), minus, inverse);
            sum[l] = add_error(sum[l], d, extremes);
        }
    }
    return join_lanes(sum, extremes);
}

TF_INLINE void tf_scale_costs(struct tf_element e, float greatest,
                              const struct tf_magnitudes *block, const float *candidates,
                              float normal, int count, int extremes, float *cost)
{
    const floats least = floats_of(TF_LEAST_WITHIN), most = floats_of(TF_MOST_WITHIN);
    int c = 0;
    for (; c + 4 <= count; c += LANES) {
        const floats s = load_floats(candidates + c) * normal;
        const floats scale = greater_floats(lesser_floats(s, most), least);
        const floats costs =
            block->n == 2 * TF_BLOCK_LANES
                ? first_costs(e, greatest, block->x, 2 * TF_BLOCK_LANES, scale, extremes)
                : first_costs(e, greatest, block->x, block->n, scale, extremes);
        put_costs(costs, count - c, cost + c);
    }
    floats rest = floats_of(tf_float_of(TF_INF_BITS));
    for (int lane = 0; c + lane < count; lane++) {
        const float scale = tf_scale_within(candidates[c + lane], normal);
        put_cost(first_cost(e, greatest, block->x, block->n, scale, extremes), lane,
                 &rest);
    }
    fill_costs(rest, c, count, cost);
}

TF_INLINE int tf_first_least(const float *cost, int count, int but)
{
    const int n = tf_whole_batches(count);
    words all[TF_COSTS / LANES], least = words_of(UINT32_MAX);
    for (int c = 0; c < n; c += LANES) {
        words bits;
        memcpy(&bits, cost + c, sizeof bits);
        bits |= (words)(lane_numbers() == (uint32_t)(but - c));
        all[c / LANES] = bits;
        least = lesser_words(least, bits);
    }
    least = least_of_lanes(least);
    uint64_t found = 0;
    for (int c = 0; c < n; c += LANES) {
        found |= (uint64_t)which_lanes(all[c / LANES], least) << c;
    }
    return __builtin_ctzll(found);
}

/* Returns the rest of remainders x in the second level. add_lesser adds the smaller of two
 * squared rests. */
TF_INLINE floats second_error(struct tf_element lo, float lowest, float greatest,
                              floats x, floats minus, floats inverse)
{
    floats y = lesser_floats(x * inverse, floats_of(greatest));
    y = lo.format >= 0 ? y : greater_floats(y, floats_of(lowest));
    return fused(minus, nearest_within(lo, y), x);
}

TF_INLINE floats add_lesser(floats sum, floats a, floats b)
{
    return lesser_floats(fused(a, a, sum), fused(b, b, sum));
}

/* Remainders of a block. For formats they are magnitudes, since formats are symmetric. */
struct pairs {
    float x[TF_BLOCK_MOST], beside[TF_BLOCK_MOST];
};

TF_INLINE floats second_costs(struct tf_element lo, float lowest, float greatest,
                              const struct pairs *r, int n, floats u)
{
    const floats minus = -u;
    const floats inverse = lesser_floats(1.0f / u, floats_of(TF_MOST_INVERSE));
    floats part[4];
#pragma GCC unroll 1
    for (int g = 0; g < 4; g++) {
        floats sum[4] = {{0}, {0}, {0}, {0}};
#pragma GCC unroll 1
        for (int k = g; k < n; k += TF_BLOCK_LANES) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                const floats x = floats_of(r->x[k + 4 * j]);
                const floats y = floats_of(r->beside[k + 4 * j]);
                sum[j] = add_lesser(
                    sum[j], second_error(lo, lowest, greatest, x, minus, inverse),
                    second_error(lo, lowest, greatest, y, minus, inverse));
            }
        }
        part[g] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    }
    return (part[0] + part[2]) + (part[1] + part[3]);
}

TF_INLINE float second_cost(struct tf_element lo, float lowest, float greatest,
                            const struct pairs *r, int n, float u)
{
    const floats minus = floats_of(-u), inverse = floats_of(tf_inverse(u));
    floats sum[TF_BLOCK_LANES / LANES];
    for (int l = 0; l < TF_BLOCK_LANES / LANES; l++) {
        sum[l] = (floats){0};
#pragma GCC unroll 1
        for (int k = l * LANES; k < n; k += TF_BLOCK_LANES) {
            const floats x = load_floats(r->x + k), y = load_floats(r->beside + k);
            sum[l] = add_lesser(sum[l],
                                second_error(lo, lowest, greatest, x, minus, inverse),
                                second_error(lo, lowest, greatest, y, minus, inverse));
        }
    }
    return join_lanes(sum, 0);
}

TF_INLINE void tf_residual_costs(struct tf_element lo, float lowest, float greatest,
                                 const struct tf_remainders *r, int n, float scale,
                                 const float *candidates, int count, float *cost)
{
    struct pairs pairs;
    for (int i = 0; i < n; i += LANES) {
        floats x = load_floats(r->rest + i), y = load_floats(r->rest_beside + i);
        x = lo.format >= 0 ? magnitudes_of(x) : x;
        y = lo.format >= 0 ? magnitudes_of(y) : y;
        memcpy(pairs.x + i, &x, sizeof x);
        memcpy(pairs.beside + i, &y, sizeof y);
    }
    int c = 0;
    for (; c + 3 <= count; c += LANES) {
        const floats u = load_floats(candidates + c) * scale;
        const floats costs = second_costs(lo, lowest, greatest, &pairs, n, u);
        put_costs(costs, count - c, cost + c);
    }
    floats rest = floats_of(tf_float_of(TF_INF_BITS));
    for (int lane = 0; c + lane < count; lane++) {
        const float u = candidates[c + lane] * scale;
        put_cost(second_cost(lo, lowest, greatest, &pairs, n, u), lane, &rest);
    }
    fill_costs(rest, c, count, cost);
}

#endif
#endif
