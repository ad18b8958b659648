/* The compiler's intrinsics. A file that uses none should not include this header: on x86-64
 * with AVX2 reading it takes longer than compiling a short file. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_INTRINSICS_H
#define TF32DTYPE_RUNTIME_KERNELS_INTRINSICS_H

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h> /* a twentieth of the time to compile, and all that the baseline has */
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#endif
