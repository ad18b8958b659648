/* Maps a function over one or two arrays of any strides, element by element. */
#ifndef TF32DTYPE_CUDA_COMMON_MAP_H
#define TF32DTYPE_CUDA_COMMON_MAP_H

#include "cuda/common/strides.h"
#include "cuda/common/vectors.h"

/* Operands that are numbers instead of arrays: if bit k of `given` is set, operand k is
 * item[k] for all elements, and its array is not read. */
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

/* COUNT elements as words: vectors that are loaded ahead take fewer registers so. */
template <class T, int COUNT> using tf_words = tf_vector<uint32_t, COUNT * sizeof(T) / 4>;

template <class T, int N>
__forceinline__ T tf_element(const tf_vector<uint32_t, N> &words, int j)
{
    constexpr int size = (int)sizeof(T);
    static_assert(size <= 4, "an element is of a word");
    return (T)(words.of[j * size / 4] >> (j * size % 4 * 8));
}

template <class T, int COUNT>
__forceinline__ tf_words<T, COUNT> tf_load(const T *array, int64_t i, int is_constant,
                                         uint32_t constant)
{
    constexpr int n = COUNT * (int)sizeof(T) / 4;
    if (!is_constant) {
        return tf_vector_at<true, uint32_t, n>((const uint32_t *)array + i * n);
    }
    /* the constant times 1, 0x10001 or 0x1010101 */
    const uint32_t word = constant * (uint32_t)(UINT32_MAX / (T)-1);
    tf_words<T, COUNT> words;
#pragma unroll
    for (int k = 0; k < n; k++) {
        words.of[k] = word;
    }
    return words;
}

/* Computes out = f(first, second) if all arrays are contiguous and aligned, COUNT
 * elements at a time. Returns how many elements were computed. */
template <int COUNT, int N, class Out, class In, class F>
__forceinline__ int64_t tf_map_vectors(const tf_walk<N + 1> &walk, Out *out, const In *a,
                                       const In *b, const tf_constants &constants, F f)
{
    const int a_constant = constants.given & 1, b_constant = constants.given >> 1 & 1;
    if (!tf_is_vectors<COUNT>(walk, 0, (const Out *)out) ||
        !(a_constant || tf_is_vectors<COUNT>(walk, 1, a)) ||
        !(b_constant || tf_is_vectors<COUNT>(walk, N, b))) {
        return 0;
    }
    const int64_t vectors = walk.size / COUNT, step = tf_threads();
    /* The next vectors are loaded while the present ones are computed. */
    tf_words<In, COUNT> next_x = {}, next_y = {};
    const auto load = [&](int64_t i) {
        if (i < vectors) {
            next_x = tf_load<In, COUNT>(a, i, a_constant, constants.item[0]);
            next_y = N == 1 ? next_x
                            : tf_load<In, COUNT>(b, i, b_constant, constants.item[1]);
        }
    };
    int64_t i = tf_thread();
    load(i);
#pragma unroll 1
    for (; i < vectors; i += step) {
        const tf_words<In, COUNT> x = next_x, y = next_y;
        load(i + step);
        tf_vector<Out, COUNT> r;
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            r.of[j] = (Out)f(tf_element<In>(x, j), tf_element<In>(y, j));
        }
        tf_store_vector(out + i * COUNT, r);
    }
    return vectors * COUNT;
}

/* Computes out = f(first, second). A function of one operand gets it twice. */
template <int COUNT, int N, class Out, class In, class F>
__forceinline__ void tf_map(const tf_walk<N + 1> &walk, Out *out, const In *a,
                            const In *b, const tf_constants &constants, F f)
{
    const int a_constant = constants.given & 1, b_constant = constants.given >> 1 & 1;
    int64_t done = 0;
    if constexpr (COUNT > 1) {
        done = tf_map_vectors<COUNT, N>(walk, out, a, b, constants, f);
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
