/* Inner loops of block matrix multiplication: decode codes to packed words, and compute a
 * micro-tile of C.
 *
 * Packed words and panels are those of matmul/kernels/micro_kernel.c. Each block has its
 * own chain of fused multiply-adds. Its sum, times the product of both scales, is added to
 * C.
 */
#include <string.h>

#include "blocks/code_tables.h"
#include "blocks/kernels.h"
#include "matmul/kernels/micro_tile.h"
#include "runtime/asserts.h"
#include "runtime/kernels/byte_lookup.h"
#include "runtime/sizes.h"

/* -- a micro-tile ------------------------------------------------------------------ */

#define MULTIPLY(name, step)                                                   \
    static void name(const struct tf_block_chain *chain, const float *a,       \
                     const float *a_scales, const float *b, const float *b_scales, \
                     float *c, size_t ldc, int adds)                           \
    {                                                                          \
        enum { PANEL = WIDTH * ACROSS };                                       \
        const size_t lda = chain->words, blocks = chain->blocks;               \
        UNROLLED for (int i = 0; i < ROWS && !adds; i++) {                     \
            UNROLLED for (int v = 0; v < ACROSS; v++) {                        \
                STORE(c + (size_t)i * ldc + v * WIDTH, BROADCAST(0.0f));       \
            }                                                                  \
        }                                                                      \
        for (size_t q = 0; q < blocks; q++) {                                  \
            const size_t first = q * chain->block, left = lda - first;         \
            const size_t depth = tf_min_size(left, chain->block);             \
            for (size_t t = 0; t < chain->count; t++) {                        \
                const struct tf_block_term term = chain->terms[t];             \
                const float *x = a + term.a + first;                           \
                const float *y = b + term.b + first * PANEL;                   \
                vector sums[ROWS][ACROSS];                                     \
                UNROLLED for (int i = 0; i < ROWS; i++) {                      \
                    UNROLLED for (int v = 0; v < ACROSS; v++) {                \
                        sums[i][v] = BROADCAST(0.0f);                          \
                    }                                                          \
                }                                                              \
                for (size_t k = 0; k < depth; k++, y += PANEL) {               \
                    UNROLLED for (int i = 0; i < ROWS; i++) {                  \
                        const vector factor = BROADCAST(x[(size_t)i * lda + k]); \
                        UNROLLED for (int v = 0; v < ACROSS; v++) {            \
                            const vector other = LOAD(y + v * WIDTH);          \
                            sums[i][v] = step(factor, other, sums[i][v]);      \
                        }                                                      \
                    }                                                          \
                }                                                              \
                const float *row_scales = a_scales + term.a_scales + q;        \
                const float *scales = b_scales + term.b_scales + q * PANEL;    \
                UNROLLED for (int i = 0; i < ROWS; i++) {                      \
                    const vector row = BROADCAST(row_scales[(size_t)i * blocks]); \
                    UNROLLED for (int v = 0; v < ACROSS; v++) {                \
                        float *place = c + (size_t)i * ldc + v * WIDTH;        \
                        const vector scale = TIMES(row, LOAD(scales + v * WIDTH)); \
                        STORE(place, FMA(scale, sums[i][v], LOAD(place)));     \
                    }                                                          \
                }                                                              \
            }                                                                  \
        }                                                                      \
    }

MULTIPLY(multiply_singles, FMA)

/* -- codes as float32 -------------------------------------------------------------- */

/* Writes up to TF_KC codes of fewer than 8 bits as one byte each. Eight codes have as many
 * bytes as one code has bits, and blocks are multiples of eight codes. */
static void spread(const uint8_t *codes, unsigned width, size_t n, uint8_t *out)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    TF_ASSERT(n <= TF_KC);
    for (size_t i = 0; i < n; i += 8, codes += width, out += 8) {
        uint64_t word = 0;
        for (unsigned byte = 0; byte < width; byte++) {
            word |= (uint64_t)codes[byte] << 8 * byte;
        }
        for (unsigned j = 0; j < 8; j++) {
            out[j] = (uint8_t)(word >> j * width & mask);
        }
    }
}

TF_INLINE void wide_singles(struct tf_element e, const uint8_t *codes, size_t n,
                            float *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = tf_element_value(e, tf_code_at(e, codes, (uint32_t)i));
    }
}

static void singles_of_codes(const struct tf_code_table *table, const uint8_t *codes,
                             size_t n, float *out)
{
    uint8_t bytes[TF_KC];
    const unsigned width = table->element.width;
    if (width == 16) {
        wide_singles(tf_elements[tf_element_int16], codes, n, out);
        return;
    }
    if (width == 12) {
        wide_singles(tf_elements[tf_element_int12], codes, n, out);
        return;
    }
    if (width < 8) {
        spread(codes, width, n, bytes);
        codes = bytes;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = tf_float_of(table->bytes.bits[codes[i]]);
    }
}

/* -- codes as pairs of bfloat16 ---------------------------------------------------- */

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
MULTIPLY(multiply_pairs, tf_dot)

/* Returns 64 codes as bytes, or n codes and zeros. Each code is where the bfloat16 that it
 * becomes is built. Interleaving works within lanes of 16 bytes, and each lane takes eight
 * codes from either half. The earlier one of two neighbors is the upper half. */
TF_INLINE __m512i load_codes(const uint8_t *codes, unsigned width, size_t n)
{
    const __m512i order = _mm512_setr_epi64(
        0x0607040502030001, 0x2627242522232021, 0x0E0F0C0D0A0B0809, 0x2E2F2C2D2A2B2829,
        0x1617141512131011, 0x3637343532333031, 0x1E1F1C1D1A1B1819, 0x3E3F3C3D3A3B3839);
    const uint64_t there = n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0);
    __m512i bytes;
    if (width == 8) {
        bytes =
            n < 64 ? _mm512_maskz_loadu_epi8(there, codes) : _mm512_loadu_si512(codes);
        return _mm512_permutexvar_epi8(order, bytes);
    }
    const uint64_t read = (UINT64_C(1) << (n * width + 7) / 8) - 1;
    bytes = _mm512_maskz_loadu_epi8(read, codes);
    if (width == 4) {
        const __m512i doubled = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes));
        bytes = _mm512_or_si512(doubled, _mm512_slli_epi16(doubled, 4));
        bytes = _mm512_and_si512(bytes, _mm512_set1_epi8(0x0F));
    } else { /* 6 bits: eight codes from six bytes */
        const __m512i sixes = _mm512_setr_epi64(0x0000050403020100, 0x00000B0A09080706,
                                                0x000011100F0E0D0C, 0x0000171615141312,
                                                0x00001D1C1B1A1918, 0x0000232221201F1E,
                                                0x0000292827262524, 0x00002F2E2D2C2B2A);
        const __m512i shifts = _mm512_set1_epi64(0x2A241E18120C0600);
        bytes = _mm512_permutexvar_epi8(sixes, bytes);
        bytes = _mm512_multishift_epi64_epi8(shifts, bytes);
        bytes = _mm512_and_si512(bytes, _mm512_set1_epi8(0x3F));
    }
    return _mm512_permutexvar_epi8(order, _mm512_maskz_mov_epi8(there, bytes));
}

TF_INLINE void pairs_of(const struct tf_code_table *table, const uint8_t *codes,
                        unsigned width, size_t n, float *out)
{
    const struct tf_byte_registers highs = tf_load_bytes(table->bytes.high);
    const struct tf_byte_registers lows = tf_load_bytes(table->bytes.low);
    for (size_t i = 0; i < n; i += 64, codes += 8 * width, out += 32) {
        const size_t count = tf_min_size(n - i, 64);
        const __m512i index = load_codes(codes, width, count);
        const struct tf_looked_up found = tf_look_up_uint16(highs, lows, index);
        if (count == 64) {
            _mm512_storeu_si512(out, found.lower);
            _mm512_storeu_si512(out + 16, found.upper);
        } else {
            const uint32_t there = (uint32_t)((UINT64_C(1) << (count + 1) / 2) - 1);
            _mm512_mask_storeu_epi32(out, (__mmask16)there, found.lower);
            _mm512_mask_storeu_epi32(out + 16, (__mmask16)(there >> 16), found.upper);
        }
    }
}

static void pairs_of_codes(const struct tf_code_table *table, const uint8_t *codes,
                           size_t n, float *out)
{
    switch (table->element.width) {
    case 8: pairs_of(table, codes, 8, n, out); break;
    case 6: pairs_of(table, codes, 6, n, out); break;
    default: pairs_of(table, codes, 4, n, out);
    }
}
#endif

const struct tf_block_product TF_NAME(tf_block_product) = {
    .columns = WIDTH * ACROSS,
    .singles = multiply_singles,
    .singles_of_codes = singles_of_codes,
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
    .pairs = multiply_pairs,
    .pairs_of_codes = pairs_of_codes,
#endif
};
