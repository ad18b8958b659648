/* A function of items, one element a time, over one or two arrays of any strides. */
#ifndef TF32DTYPE_CUDA_COMMON_MAP_H
#define TF32DTYPE_CUDA_COMMON_MAP_H

#include "cuda/common/strides.h"
#include "cuda/common/vectors.h"

/* Operands that are no arrays: where bit k of `given` is set, operand k is item[k]
 * for all elements. The array that stands in its place is not read. */
struct tf_constants {
    uint32_t given;
    uint32_t item[2];
};
static_assert(sizeof(tf_constants) == 12 && TF_OFFSETOF(tf_constants, item) == 4,
              "as in tf32dtype/cuda/_functions/ufuncs.py");

template <int COUNT, int N, class T>
__forceinline__ int tf_is_vectors(const tf_walk<N> &walk, int k, const T *array)
{
    return tf_is_run(walk, k, sizeof(T)) && tf_is_aligned<T, COUNT>(array);
}

template <class T, int COUNT>
__forceinline__ tf_vector<T, COUNT> tf_load(const T *array, int64_t i, int is_constant,
                                          uint32_t constant)
{
    if (!is_constant) {
        return tf_vector_at<true, T, COUNT>(array + i * COUNT);
    }
    tf_vector<T, COUNT> vector;
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        vector.of[j] = (T)constant;
    }
    return vector;
}

/* out = f(first, second). A function of one operand is given it twice. Arrays that are
 * contiguous are read and written COUNT elements at a time. */
template <int COUNT, int N, class Out, class In, class F>
__forceinline__ void tf_map(const tf_walk<N + 1> &walk, Out *out, const In *a,
                            const In *b, const tf_constants &constants, F f)
{
    const int a_constant = constants.given & 1, b_constant = constants.given >> 1 & 1;
    int64_t done = 0;
    if (COUNT > 1 && tf_is_vectors<COUNT>(walk, 0, (const Out *)out) &&
        (a_constant || tf_is_vectors<COUNT>(walk, 1, a)) &&
        (b_constant || tf_is_vectors<COUNT>(walk, N, b))) {
        const int64_t vectors = walk.size / COUNT;
#pragma unroll 1
        for (int64_t i = tf_thread(); i < vectors; i += tf_threads()) {
            const tf_vector<In, COUNT> x =
                tf_load<In, COUNT>(a, i, a_constant, constants.item[0]);
            const tf_vector<In, COUNT> y =
                N == 1 ? x : tf_load<In, COUNT>(b, i, b_constant, constants.item[1]);
            tf_vector<Out, COUNT> r;
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                r.of[j] = (Out)f(x.of[j], y.of[j]);
            }
            tf_store_vector(out + i * COUNT, r);
        }
        done = vectors * COUNT;
    }
#pragma unroll 1
    for (int64_t i = done + tf_thread(); i < walk.size; i += tf_threads()) {
        const tf_offsets<N + 1> at = tf_offsets_at(walk, i);
        const In x = a_constant ? (In)constants.item[0] : tf_at<In>(a, at.of[1]);
        const In y = b_constant ? (In)constants.item[1] : tf_at<In>(b, at.of[N]);
        tf_at<Out>(out, at.of[0]) = (Out)f(x, y);
    }
}

#endif
