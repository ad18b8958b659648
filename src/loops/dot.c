/* Chains of fused multiply-adds side by side, for the product of two vectors.
 *
 * A chain has to wait for each of its sums, and 16 of them, which follow each other in
 * memory, fill a vector: squares of 16 x 16 words are transposed in registers.
 */
#include "transpose.h"

enum { CHAINS = TF_DOT_CHAINS, WORDS = 16 };

static void lanes(const float *restrict a, const float *restrict b, size_t depth,
                  float *restrict sums)
{
    float chains[CHAINS] = {0};
    for (size_t k = 0; k < depth; k++) {
        for (size_t i = 0; i < CHAINS; i++) {
            chains[i] = __builtin_fmaf(a[k * CHAINS + i], b[k * CHAINS + i], chains[i]);
        }
    }
    memcpy(sums, chains, sizeof chains);
}

#if defined(__AVX512F__)

/* Words from `at` on of all chains; those as far ahead are fetched. */
TF_INLINE void load(const char *data, ptrdiff_t step, size_t at, __m512i x[WORDS])
{
    UNROLLED for (int i = 0; i < CHAINS; i++) {
        const char *place = data + i * step + at;
        x[i] = _mm512_loadu_si512(place);
        __builtin_prefetch(place + CHAINS * step);
    }
    tf_transpose_registers(x);
}

static void dot_halves(const char *a, ptrdiff_t a_step, const char *b, ptrdiff_t b_step,
                       size_t depth, float *sums)
{
    const __m512i upper = _mm512_set1_epi32((int)UINT32_C(0xFFFF0000));
    __m512 chains = _mm512_setzero_ps();
    for (size_t at = 0; at < depth * sizeof(uint16_t); at += sizeof(__m512i)) {
        __m512i x[WORDS], y[WORDS];
        load(a, a_step, at, x);
        load(b, b_step, at, y);
        UNROLLED for (int k = 0; k < WORDS; k++) {
            const __m512 p = _mm512_castsi512_ps(_mm512_slli_epi32(x[k], 16));
            const __m512 q = _mm512_castsi512_ps(_mm512_slli_epi32(y[k], 16));
            chains = _mm512_fmadd_ps(p, q, chains);
            const __m512 r = _mm512_castsi512_ps(_mm512_and_si512(x[k], upper));
            const __m512 s = _mm512_castsi512_ps(_mm512_and_si512(y[k], upper));
            chains = _mm512_fmadd_ps(r, s, chains);
        }
    }
    _mm512_storeu_ps(sums, chains);
}

static void dot_singles(const char *a, ptrdiff_t a_step, const char *b,
                        ptrdiff_t b_step, size_t depth, uint32_t used, float *sums)
{
    const __m512i mask = _mm512_set1_epi32((int)used);
    __m512 chains = _mm512_setzero_ps();
    for (size_t at = 0; at < depth * sizeof(uint32_t); at += sizeof(__m512i)) {
        __m512i x[WORDS], y[WORDS];
        load(a, a_step, at, x);
        load(b, b_step, at, y);
        UNROLLED for (int k = 0; k < WORDS; k++) {
            const __m512 p = _mm512_castsi512_ps(_mm512_and_si512(x[k], mask));
            const __m512 q = _mm512_castsi512_ps(_mm512_and_si512(y[k], mask));
            chains = _mm512_fmadd_ps(p, q, chains);
        }
    }
    _mm512_storeu_ps(sums, chains);
}

const struct tf_dot TF_NAME(tf_dot) = {lanes, dot_halves, dot_singles};

#else
const struct tf_dot TF_NAME(tf_dot) = {lanes, NULL, NULL};
#endif
