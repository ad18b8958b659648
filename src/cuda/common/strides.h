/* Walks through arrays of any strides together: from an element's index to its offset in
 * each.
 *
 * tf32dtype/cuda/_runtime/strides.py makes the structure. It drops axes of one element,
 * and merges axes that follow one another in all arrays, but leaves at least one axis. An
 * array that is broadcast along an axis has stride 0 along it. Strides may be negative.
 */
#ifndef TF32DTYPE_CUDA_COMMON_STRIDES_H
#define TF32DTYPE_CUDA_COMMON_STRIDES_H

#include "cuda/common/common.h"

enum { TF_AXES = 8 };

template <int N> struct tf_walk {
    int64_t size; /* elements in total */
    int64_t axes;
    int64_t shape[TF_AXES]; /* the innermost axis first */
    uint64_t multipliers[TF_AXES]; /* with `shifts`: divide by `shape` */
    int64_t shifts[TF_AXES];
    int64_t strides[N][TF_AXES]; /* in bytes, one row per array */
};
static_assert(sizeof(tf_walk<1>) == 272 && TF_OFFSETOF(tf_walk<1>, strides) == 208,
              "as in tf32dtype/cuda/_runtime/strides.py");

template <int N> struct tf_offsets {
    int64_t of[N]; /* bytes from each array's first element */
};

/* Returns index / length for 0 <= index < 2^31 or 2^63: ceil(2^p / length) times index,
 * divided by 2^p, where length <= 2^(p - 31) or 2^(p - 63) (Granlund and Montgomery,
 * "Division by invariant integers using multiplication", 1994, theorem 4.2). */
__forceinline__ uint32_t tf_quotient(uint32_t index, uint64_t multiplier, int shift)
{
    return __umulhi(index, (uint32_t)multiplier) >> shift;
}
__forceinline__ uint64_t tf_quotient(uint64_t index, uint64_t multiplier, int shift)
{
    return __umul64hi(index, multiplier) >> shift;
}

template <class Index, int N>
__forceinline__ tf_offsets<N> tf_offsets_by(const tf_walk<N> &walk, Index index)
{
    tf_offsets<N> offsets = {};
    const int last = (int)walk.axes - 1;
#pragma unroll 1
    for (int axis = 0; axis < last; axis++) {
        const Index outer =
            tf_quotient(index, walk.multipliers[axis], (int)walk.shifts[axis]);
        const int64_t along = (int64_t)(index - outer * (Index)walk.shape[axis]);
#pragma unroll
        for (int k = 0; k < N; k++) {
            offsets.of[k] += along * walk.strides[k][axis];
        }
        index = outer;
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        offsets.of[k] += (int64_t)index * walk.strides[k][last];
    }
    return offsets;
}

/* Returns the offsets of element `index`. */
template <int N>
__forceinline__ tf_offsets<N> tf_offsets_at(const tf_walk<N> &walk, int64_t index)
{
    return walk.size <= INT32_MAX ? tf_offsets_by(walk, (uint32_t)index)
                                  : tf_offsets_by(walk, (uint64_t)index);
}

/* Returns whether array k is contiguous, with elements of `itemsize` bytes. */
template <int N>
__forceinline__ int tf_is_run(const tf_walk<N> &walk, int k, int itemsize)
{
    return walk.axes == 1 && walk.strides[k][0] == itemsize;
}

/* A grid's threads share the elements: from tf_thread() on, in steps of tf_threads().
 * `#pragma unroll 1` keeps the compiler from unrolling, which needs a division. */
__forceinline__ int64_t tf_thread(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__forceinline__ int64_t tf_threads(void) { return (int64_t)gridDim.x * blockDim.x; }

template <class T> __forceinline__ T &tf_at(void *array, int64_t offset)
{
    return *(T *)((char *)array + offset);
}
template <class T> __forceinline__ const T &tf_at(const void *array, int64_t offset)
{
    return *(const T *)((const char *)array + offset);
}

#endif
