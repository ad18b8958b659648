/* Chains of fused multiply-adds side by side, for products of vectors.
 *
 * A chain has to wait for each of its sums, and 16 of them, along lines of memory, fill
 * a vector: squares of 16 x 16 words are transposed in registers. Behind the end of
 * lines stand -0 and 0, whose product changes no sum.
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

#if defined(__AVX512F__) && defined(__AVX512BW__)

/* A vector of each line, or the `size` bytes that are left and `filler` behind them, as
 * words side by side. What the next lines have there is fetched. */
TF_INLINE void load(const char *data, ptrdiff_t step, size_t size, __m512i filler,
                    __m512i x[WORDS])
{
    const __mmask32 there = size < 64 ? (UINT32_C(1) << size / 2) - 1 : UINT32_MAX;
    UNROLLED for (int i = 0; i < CHAINS; i++) {
        const char *place = data + i * step;
        x[i] = size >= 64 ? _mm512_loadu_si512(place)
                          : _mm512_mask_loadu_epi16(filler, there, place);
        __builtin_prefetch(place + CHAINS * step, 0, 2);
    }
    tf_transpose_registers(x);
}

TF_INLINE __m512 early_half(__m512i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}

TF_INLINE __m512 late_half(__m512i x)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(x, _mm512_set1_epi32((int)UINT32_C(0xFFFF0000))));
}

/* Up to 64 bytes of each line of a times those of b, or times `numbers`, the same for
 * all lines. */
TF_INLINE __m512 add_halves(const char *a, ptrdiff_t a_step, const char *b,
                            ptrdiff_t b_step, const float *numbers, size_t size,
                            __m512 chains)
{
    __m512i x[WORDS], y[WORDS];
    load(a, a_step, size, _mm512_set1_epi16(INT16_MIN), x);
    if (!numbers) {
        load(b, b_step, size, _mm512_setzero_si512(), y);
    }
    UNROLLED for (int k = 0; k < WORDS; k++) {
        const __m512 p = numbers ? _mm512_set1_ps(numbers[2 * k]) : early_half(y[k]);
        chains = _mm512_fmadd_ps(early_half(x[k]), p, chains);
        const __m512 q = numbers ? _mm512_set1_ps(numbers[2 * k + 1]) : late_half(y[k]);
        chains = _mm512_fmadd_ps(late_half(x[k]), q, chains);
    }
    return chains;
}

TF_INLINE __m512 add_singles(const char *a, ptrdiff_t a_step, const char *b,
                             ptrdiff_t b_step, const float *numbers, __m512i used,
                             size_t size, __m512 chains)
{
    __m512i x[WORDS], y[WORDS];
    load(a, a_step, size, _mm512_set1_epi32(INT32_MIN), x);
    if (!numbers) {
        load(b, b_step, size, _mm512_setzero_si512(), y);
    }
    UNROLLED for (int k = 0; k < WORDS; k++) {
        const __m512 p = _mm512_castsi512_ps(_mm512_and_si512(x[k], used));
        const __m512 q = numbers
                             ? _mm512_set1_ps(numbers[k])
                             : _mm512_castsi512_ps(_mm512_and_si512(y[k], used));
        chains = _mm512_fmadd_ps(p, q, chains);
    }
    return chains;
}

/* `size` is known where it is that of whole vectors. */
TF_INLINE void dot_halves(const char *a, ptrdiff_t a_step, const char *b,
                          ptrdiff_t b_step, const float *numbers, size_t depth,
                          float *sums)
{
    const size_t size = depth * sizeof(uint16_t);
    __m512 chains = _mm512_setzero_ps();
    size_t at = 0;
    for (; at + 64 <= size; at += 64) {
        chains = add_halves(a + at, a_step, b + at, b_step,
                            numbers ? numbers + at / 2 : NULL, 64, chains);
    }
    if (at < size) {
        chains = add_halves(a + at, a_step, b + at, b_step,
                            numbers ? numbers + at / 2 : NULL, size - at, chains);
    }
    _mm512_storeu_ps(sums, chains);
}

TF_INLINE void dot_singles(const char *a, ptrdiff_t a_step, const char *b,
                           ptrdiff_t b_step, const float *numbers, uint32_t used,
                           size_t depth, float *sums)
{
    const __m512i mask = _mm512_set1_epi32((int)used);
    const size_t size = depth * sizeof(uint32_t);
    __m512 chains = _mm512_setzero_ps();
    size_t at = 0;
    for (; at + 64 <= size; at += 64) {
        chains = add_singles(a + at, a_step, b + at, b_step,
                             numbers ? numbers + at / 4 : NULL, mask, 64, chains);
    }
    if (at < size) {
        chains =
            add_singles(a + at, a_step, b + at, b_step,
                        numbers ? numbers + at / 4 : NULL, mask, size - at, chains);
    }
    _mm512_storeu_ps(sums, chains);
}

static void halves(const char *a, ptrdiff_t a_step, const char *b, ptrdiff_t b_step,
                   size_t depth, float *sums)
{
    dot_halves(a, a_step, b, b_step, NULL, depth, sums);
}

/* Products of lines, to be added side by side: half as much has to be transposed. They
 * must be exact. */
TF_INLINE __m512 add_products(const char *a, ptrdiff_t a_step, const char *b,
                              ptrdiff_t b_step, __m512i used, size_t size,
                              __m512 chains)
{
    const __mmask16 there = size < 64 ? (1u << size / 4) - 1 : UINT16_MAX;
    const __m512i filler = _mm512_set1_epi32(INT32_MIN); /* -0 changes no sum */
    __m512i x[WORDS];
    UNROLLED for (int i = 0; i < CHAINS; i++) {
        const char *place = a + i * a_step, *other = b + i * b_step;
        const __m512i p = _mm512_maskz_loadu_epi32(there, place);
        const __m512i q = _mm512_maskz_loadu_epi32(there, other);
        __builtin_prefetch(place + CHAINS * a_step, 0, 2);
        __builtin_prefetch(other + CHAINS * b_step, 0, 2);
        const __m512 product =
            _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(p, used)),
                          _mm512_castsi512_ps(_mm512_and_si512(q, used)));
        x[i] = _mm512_mask_mov_epi32(filler, there, _mm512_castps_si512(product));
    }
    tf_transpose_registers(x);
    UNROLLED for (int k = 0; k < WORDS; k++) {
        chains = _mm512_add_ps(chains, _mm512_castsi512_ps(x[k]));
    }
    return chains;
}

/* The chains by products of up to 12 significant bits, unless one of these has left the
 * range: 0 then. */
static int add_exact_products(const char *a, ptrdiff_t a_step, const char *b,
                              ptrdiff_t b_step, uint32_t used, size_t depth,
                              float *sums)
{
    enum { OVERFLOW = 1 << 3, UNDERFLOW = 1 << 4 }; /* in MXCSR: also inexact */
    const __m512i mask = _mm512_set1_epi32((int)used);
    const size_t size = depth * sizeof(uint32_t);
    __m512 chains = _mm512_setzero_ps();
    size_t at = 0;
    _mm_setcsr(_mm_getcsr() & ~(unsigned)(OVERFLOW | UNDERFLOW));
    __asm__ volatile("" ::: "memory"); /* nothing is read before */
    for (; at + 64 <= size; at += 64) {
        chains = add_products(a + at, a_step, b + at, b_step, mask, 64, chains);
    }
    if (at < size) {
        chains = add_products(a + at, a_step, b + at, b_step, mask, size - at, chains);
    }
    __asm__ volatile("" : "+v"(chains)); /* all is added */
    _mm512_storeu_ps(sums, chains);
    return !(_mm_getcsr() & (OVERFLOW | UNDERFLOW));
}

static void singles(const char *a, ptrdiff_t a_step, const char *b, ptrdiff_t b_step,
                    uint32_t used, size_t depth, float *sums)
{
    const uint32_t twelve_bits = UINT32_C(0xFFFFF000);
    if ((used & ~twelve_bits) ||
        !add_exact_products(a, a_step, b, b_step, used, depth, sums)) {
        dot_singles(a, a_step, b, b_step, NULL, used, depth, sums);
    }
}

static void halves_times(const char *a, ptrdiff_t a_step, const float *numbers,
                         size_t depth, float *sums)
{
    dot_halves(a, a_step, a, a_step, numbers, depth, sums);
}

static void singles_times(const char *a, ptrdiff_t a_step, const float *numbers,
                          uint32_t used, size_t depth, float *sums)
{
    dot_singles(a, a_step, a, a_step, numbers, used, depth, sums);
}

const struct tf_dot TF_NAME(tf_dot) = {lanes, halves, singles, halves_times,
                                       singles_times};

#else
const struct tf_dot TF_NAME(tf_dot) = {.lanes = lanes};
#endif
