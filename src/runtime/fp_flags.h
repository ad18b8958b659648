/* Floating-point exceptions as bits. Freestanding, so that C and CUDA compile it. */
#ifndef TF32DTYPE_RUNTIME_FP_FLAGS_H
#define TF32DTYPE_RUNTIME_FP_FLAGS_H

/* Exceptions of IEEE 754 section 7, as far as NumPy reports them. */
enum { TF_DIVIDE = 1, TF_OVER = 2, TF_UNDER = 4, TF_INVALID = 8 };

#endif
