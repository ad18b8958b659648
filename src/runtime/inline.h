/* Functions that are always inlined, in C and in CUDA. Freestanding. */
#ifndef TF32DTYPE_RUNTIME_INLINE_H
#define TF32DTYPE_RUNTIME_INLINE_H

#if defined(__CUDACC__)
#define TF_INLINE static __forceinline__
#else
#define TF_INLINE static inline __attribute__((always_inline))
#endif

#endif
