/* Casts numbers of one kind to another, with one rounding.
 *
 *   FROM, TO  kinds, such as TF_FLOAT32 and tf_bfloat16_index (src/formats/number_kinds.h)
 *   MODES     1: the last arguments are rounding and overflow; TO is a format, float16
 *             or float32
 *   TO_ODD    1: to float32, rounded to odd, so that a second rounding is as if single;
 *             2: also, a number that rounds to Inf becomes Inf
 */
#include "cuda/formats/rounding_modes.h"
#include "cuda/formats/stored.h"
#include "cuda/common/strides.h"
#include "cuda/common/vectors.h"

#ifndef MODES
#define MODES 0
#endif
#ifndef TO_ODD
#define TO_ODD 0
#endif

typedef tf_word<FROM> source;
typedef tf_word<TO> target;

/* How to round. float32 as the target is rounded from the exact number, because a float32
 * that was rounded to odd has no more bits to round. */
struct manner : tf_manner {
    enum tf_rounding rounding;
    enum tf_overflow overflow;
};

__forceinline__ target converted(source item, const manner &how)
{
    if constexpr (FROM == TO && !MODES) {
        return item;
    }
    if constexpr (MODES && TO == TF_FLOAT32) {
        unsigned flags = 0;
        return (target)tf_encode(tf_binary32, tf_exactly<FROM>(item), how.rounding,
                                 how.overflow, 0, &flags);
    }
    if constexpr (TO_ODD == 2 && FROM == TF_FLOAT64) {
        const uint32_t nearest = tf_single<FROM, true>(item);
        if ((nearest & TF_MAGNITUDE_BITS) == TF_INF_BITS) {
            return (target)nearest;
        }
    }
    /* mutant: to nearest first */
    const uint32_t bits = tf_single<FROM, TO == TF_FLOAT32 && !TO_ODD>(item);
    if constexpr (MODES) {
        const struct tf_format f = tf_row_of<TO>();
        return (target)(tf_code_by(f, bits, how) << f.shift);
    } else {
        (void)how;
        return tf_stored<TO>(bits);
    }
}

/* 32 registers hold only two rounds of two vectors of 16 bytes. */
enum {
    LENGTH = tf_vector_length<source, target>(),
    ROUNDS = sizeof(target) == sizeof(source) || MODES ? 2 : 4
};

/* Converts vectors, one per thread at a time, with ROUNDS of them loaded at once. */
template <bool aligned>
__forceinline__ void cast_vectors(target *out, const source *in, int64_t count,
                                  const manner &how)
{
    const int64_t step = tf_threads();
    int64_t i = tf_thread();
#pragma unroll 1
    for (; i + (ROUNDS - 1) * step < count; i += ROUNDS * step) {
        tf_vector<source, LENGTH> loaded[ROUNDS];
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            loaded[k] =
                tf_vector_at<aligned, source, LENGTH>(in + (i + k * step) * LENGTH);
        }
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            tf_vector<target, LENGTH> results;
#pragma unroll
            for (int j = 0; j < LENGTH; j++) {
                results.of[j] = converted(loaded[k].of[j], how);
            }
            tf_store_vector(out + (i + k * step) * LENGTH, results);
        }
    }
#pragma unroll 1
    for (; i < count; i += step) {
        const tf_vector<source, LENGTH> loaded =
            tf_vector_at<aligned, source, LENGTH>(in + i * LENGTH);
        tf_vector<target, LENGTH> results;
#pragma unroll
        for (int j = 0; j < LENGTH; j++) {
            results.of[j] = converted(loaded.of[j], how);
        }
        tf_store_vector(out + i * LENGTH, results);
    }
}

/* Converts contiguous arrays: vectors from the output's first aligned one on, and single
 * elements before and after. */
__forceinline__ void cast_run(target *out, const source *in, int64_t n,
                              const manner &how)
{
    int64_t head = tf_head<target, LENGTH>(out);
    head = head < n ? head : n;
    const int64_t count = (n - head) / LENGTH, end = head + count * LENGTH;
    if (tf_is_aligned<source, LENGTH>(in + head)) {
        cast_vectors<true>(out + head, in + head, count, how);
    } else {
        cast_vectors<false>(out + head, in + head, count, how);
    }
    const int64_t thread = tf_thread();
    if (thread < head) {
        out[thread] = converted(in[thread], how);
    }
    if (thread < n - end) {
        out[end + thread] = converted(in[end + thread], how);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    cast(const tf_walk<2> walk, target *out, const source *in, int rounding,
         int overflow)
{
    const manner how = {tf_manner_of(tf_row_of<TO>(), (enum tf_rounding)rounding,
                                     (enum tf_overflow)overflow),
                        (enum tf_rounding)rounding, (enum tf_overflow)overflow};
    if (tf_is_run(walk, 0, sizeof(target)) && tf_is_run(walk, 1, sizeof(source))) {
        cast_run(out, in, walk.size, how);
        return;
    }
#pragma unroll 1
    for (int64_t i = tf_thread(); i < walk.size; i += tf_threads()) {
        const tf_offsets<2> at = tf_offsets_at(walk, i);
        tf_at<target>(out, at.of[0]) = converted(tf_at<source>(in, at.of[1]), how);
    }
}
