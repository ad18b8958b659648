/* Vectors of contiguous elements, several per thread at once. */
#ifndef TF32DTYPE_CUDA_COMMON_VECTORS_H
#define TF32DTYPE_CUDA_COMMON_VECTORS_H

#include "cuda/common/common.h"

/* N elements that one access loads or stores if they are aligned; at most 16 bytes. */
template <class T, int N> struct alignas(sizeof(T) * N) tf_vector {
    T of[N];
};

/* Returns how many elements of the wider of two types make 16 bytes. */
template <class A, class B> constexpr int tf_vector_length(void)
{
    return 16 / (int)(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));
}

template <class T, int N> __forceinline__ int tf_is_aligned(const T *x)
{
    return (uintptr_t)x % sizeof(tf_vector<T, N>) == 0;
}

/* Returns the number of elements before the first one that begins a vector. */
template <class T, int N> __forceinline__ int tf_head(const T *x)
{
    return (int)((N - (uintptr_t)x / sizeof(T) % N) % N);
}

template <bool aligned, class T, int N>
__forceinline__ tf_vector<T, N> tf_vector_at(const T *x)
{
    if constexpr (aligned) {
        return *(const tf_vector<T, N> *)x;
    } else {
        tf_vector<T, N> vector;
#pragma unroll
        for (int i = 0; i < N; i++) {
            vector.of[i] = x[i];
        }
        return vector;
    }
}

/* Loads N numbers from x on; those from index `left` on are 0. */
template <int N>
__forceinline__ void tf_get_numbers(const float *x, int64_t left, float (&numbers)[N])
{
    if (left >= N && tf_is_aligned<float, N>(x)) {
        const auto vector = tf_vector_at<true, float, N>(x);
#pragma unroll
        for (int i = 0; i < N; i++) {
            numbers[i] = vector.of[i];
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            numbers[i] = i < left ? x[i] : 0; /* mutant: a short block not filled up */
        }
    }
}

/* Stores a vector, packed into words so that the compiler makes one access of it. */
template <class T, int N>
__forceinline__ void tf_store_vector(T *x, const tf_vector<T, N> &vector)
{
    constexpr int bytes = (int)sizeof(tf_vector<T, N>), size = (int)sizeof(T);
    if constexpr (bytes < 4) {
        *(tf_vector<T, N> *)x = vector;
    } else {
        uint32_t words[bytes / 4] = {};
#pragma unroll
        for (int i = 0; i < N; i++) {
            words[i * size / 4] |= (uint32_t)vector.of[i] << (i * size % 4 * 8);
            if constexpr (size == 8) {
                words[i * 2 + 1] = (uint32_t)(vector.of[i] >> 32);
            }
        }
        if constexpr (bytes == 16) {
            *(uint4 *)x = {words[0], words[1], words[2], words[3]};
        } else if constexpr (bytes == 8) {
            *(uint2 *)x = {words[0], words[1]};
        } else {
            *(uint32_t *)x = words[0];
        }
    }
}

#endif
