/* The vectors of a micro-tile, MR x NR of C, in this build: WIDTH floats in a vector,
 * ACROSS vectors in a row, and ROWS rows. */
#ifndef TF32DTYPE_MATMUL_KERNELS_MICRO_TILE_H
#define TF32DTYPE_MATMUL_KERNELS_MICRO_TILE_H

#include "matmul/kernels/simd_bf16.h"

#if defined(__AVX512F__)
typedef __m512 vector;
#define BROADCAST(x) _mm512_set1_ps(x)
#define LOAD(p)      _mm512_loadu_ps(p)
#define STORE(p, x)  _mm512_storeu_ps(p, x)
#define PLUS(x, y)   _mm512_add_ps(x, y)
#define TIMES(x, y)  _mm512_mul_ps(x, y)
#define FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
enum { WIDTH = 16, ACROSS = 4 };
#elif defined(__FMA__)
typedef __m256 vector;
#define BROADCAST(x) _mm256_set1_ps(x)
#define LOAD(p)      _mm256_loadu_ps(p)
#define STORE(p, x)  _mm256_storeu_ps(p, x)
#define PLUS(x, y)   _mm256_add_ps(x, y)
#define TIMES(x, y)  _mm256_mul_ps(x, y)
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
enum { WIDTH = 8, ACROSS = 2 };
#elif defined(__aarch64__)
typedef float32x4_t vector;
#define BROADCAST(x) vdupq_n_f32(x)
#define LOAD(p)      vld1q_f32(p)
#define STORE(p, x)  vst1q_f32(p, x)
#define PLUS(x, y)   vaddq_f32(x, y)
#define TIMES(x, y)  vmulq_f32(x, y)
#define FMA(x, y, z) vfmaq_f32(z, x, y)
enum { WIDTH = 4, ACROSS = 4 };
#else
typedef float vector;
#define BROADCAST(x) (x)
#define LOAD(p)      (*(p))
#define STORE(p, x)  (*(p) = (x))
#define PLUS(x, y)   ((x) + (y))
#define TIMES(x, y)  ((x) * (y))
#define FMA(x, y, z) __builtin_fmaf(x, y, z)
enum { WIDTH = 1, ACROSS = 2 };
#endif

enum { ROWS = TF_MR };

#endif
