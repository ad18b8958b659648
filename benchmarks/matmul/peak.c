/* Time multiply-adds in registers, at the peak rate of a core. peak.py runs them. */
#include <immintrin.h>

enum { CHAINS = 20 };

#if defined(__AVX512F__)
typedef __m512 vector;
#define BROADCAST(x) _mm512_set1_ps(x)
#define STORE(p, x) _mm512_storeu_ps(p, x)
#define ADD(x, y) _mm512_add_ps(x, y)
#define FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
enum { LANES = 16 };
#elif defined(__FMA__)
typedef __m256 vector;
#define BROADCAST(x) _mm256_set1_ps(x)
#define STORE(p, x) _mm256_storeu_ps(p, x)
#define ADD(x, y) _mm256_add_ps(x, y)
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
enum { LANES = 8 };
#endif

#define LOOP(step)                                                             \
    vector sums[CHAINS];                                                       \
    _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) {                \
        sums[i] = BROADCAST(0.0f);                                             \
    }                                                                          \
    for (long n = 0; n < count; n++) {                                         \
        _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) {            \
            __asm__ volatile("" : "+x"(sums[i]));                              \
            sums[i] = step;                                                    \
        }                                                                      \
    }                                                                          \
    vector all = BROADCAST(0.0f);                                              \
    _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) {                \
        all = ADD(all, sums[i]);                                               \
    }

#if defined(__FMA__)
/* Run `count` rounds of CHAINS independent float32 multiply-adds of vectors. Store sums
 * in `out`, so that the compiler keeps them. Return the operations: two per multiply-add. */
double singles(long count, float *out)
{
    const vector x = BROADCAST(0.5f);
    LOOP(FMA(x, x, sums[i]))
    STORE(out, all);
    return 2.0 * LANES * CHAINS * (double)count;
}
#endif

#if defined(__AVX512BF16__)
/* Run `count` rounds like singles(), but each lane multiplies two pairs of bfloat16. */
double pairs(long count, float *out)
{
    const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3F00);
    LOOP(_mm512_dpbf16_ps(sums[i], x, x))
    STORE(out, all);
    return 4.0 * LANES * CHAINS * (double)count;
}
#endif
