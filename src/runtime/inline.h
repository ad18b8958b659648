/* Attributes that decide whether functions are inlined, in C and in CUDA. Freestanding. */
#ifndef TF32DTYPE_RUNTIME_INLINE_H
#define TF32DTYPE_RUNTIME_INLINE_H

#if defined(__CUDACC__)
#define TF_INLINE static __forceinline__
#else
#define TF_INLINE static inline __attribute__((always_inline))
#endif

/* Marks functions that are neither inlined nor cloned for constant arguments. */
#if defined(__clang__) || defined(__CUDACC__)
#define TF_APART __attribute__((noinline))
#else
#define TF_APART __attribute__((noinline, noclone))
#endif

#endif
