/* Multiply-adds in registers: what the processor does if nothing holds it up. */
#include <immintrin.h>

enum { CHAINS = 20 };

#define LOOP(vector, zero, step)                                               \
    vector sums[CHAINS];                                                       \
    _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) {                \
        sums[i] = zero;                                                        \
    }                                                                          \
    for (long n = 0; n < count; n++) {                                         \
        _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) {            \
            __asm__ volatile("" : "+x"(sums[i]));                              \
            sums[i] = step;                                                    \
        }                                                                      \
    }                                                                          \
    vector all = zero;                                                         \
    _Pragma("GCC unroll 20") for (int i = 0; i < CHAINS; i++) {                \
        all = ADD(all, sums[i]);                                               \
    }

#if defined(__AVX512F__)
#define ADD(a, b) _mm512_add_ps(a, b)
enum { LANES = 16 };
/* Operations of `count` rounds on float32. */
double singles(long count, float *out)
{
    const __m512 x = _mm512_set1_ps(0.5f);
    LOOP(__m512, _mm512_setzero_ps(), _mm512_fmadd_ps(x, x, sums[i]))
    _mm512_storeu_ps(out, all);
    return 2.0 * LANES * CHAINS * (double)count;
}
#elif defined(__FMA__)
#define ADD(a, b) _mm256_add_ps(a, b)
enum { LANES = 8 };
double singles(long count, float *out)
{
    const __m256 x = _mm256_set1_ps(0.5f);
    LOOP(__m256, _mm256_setzero_ps(), _mm256_fmadd_ps(x, x, sums[i]))
    _mm256_storeu_ps(out, all);
    return 2.0 * LANES * CHAINS * (double)count;
}
#endif

#if defined(__AVX512BF16__)
/* And on pairs of bfloat16. */
double pairs(long count, float *out)
{
    const __m512bh x = (__m512bh)_mm512_set1_epi16(0x3F00);
    LOOP(__m512, _mm512_setzero_ps(), _mm512_dpbf16_ps(sums[i], x, x))
    _mm512_storeu_ps(out, all);
    return 4.0 * LANES * CHAINS * (double)count;
}
#endif
