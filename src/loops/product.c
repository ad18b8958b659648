/* The inside of matrix products: a block of C from panels of slots.
 *
 * A slot is 32 bits: one float32, or two bfloat16 numbers of consecutive k, the
 * earlier one in the upper half. Rows of A lie one after the other; columns of B
 * side by side in panels of tf_product.columns.
 */
#include "blocks.h"

#if defined(__AVX512F__)
typedef __m512 vector;
#define BROADCAST(x) _mm512_set1_ps(x)
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, x) _mm512_storeu_ps(p, x)
#define PLUS(x, y) _mm512_add_ps(x, y)
#define FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
enum { WIDTH = 16, ACROSS = 4 };
#elif defined(__FMA__)
typedef __m256 vector;
#define BROADCAST(x) _mm256_set1_ps(x)
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, x) _mm256_storeu_ps(p, x)
#define PLUS(x, y) _mm256_add_ps(x, y)
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
enum { WIDTH = 8, ACROSS = 2 };
#else
typedef float vector;
#define BROADCAST(x) (x)
#define LOAD(p) (*(p))
#define STORE(p, x) (*(p) = (x))
#define PLUS(x, y) ((x) + (y))
#define FMA(x, y, z) __builtin_fmaf(x, y, z)
enum { WIDTH = 1, ACROSS = 2 };
#endif

enum { ROWS = TF_PRODUCT_ROWS };

/* The accumulators must stay in registers: every loop over them is unrolled. */
#define UNROLLED _Pragma("GCC unroll 8")

#define MULTIPLY(name, lda, step)                                              \
    static void name(const float *a, const float *b, size_t depth, float *c,   \
                     size_t ldc, int adds)                                     \
    {                                                                          \
        vector sums[ROWS][ACROSS];                                             \
        UNROLLED for (int i = 0; i < ROWS; i++) {                              \
            UNROLLED for (int v = 0; v < ACROSS; v++) {                        \
                sums[i][v] = BROADCAST(0.0f);                                  \
            }                                                                  \
        }                                                                      \
        for (size_t k = 0; k < depth; k++, b += WIDTH * ACROSS) {              \
            UNROLLED for (int i = 0; i < ROWS; i++) {                          \
                const vector x = BROADCAST(a[i * (lda) + k]);                  \
                UNROLLED for (int v = 0; v < ACROSS; v++) {                    \
                    sums[i][v] = step(x, LOAD(b + v * WIDTH), sums[i][v]);     \
                }                                                              \
            }                                                                  \
        }                                                                      \
        UNROLLED for (int i = 0; i < ROWS; i++, c += ldc) {                    \
            UNROLLED for (int v = 0; v < ACROSS; v++) {                        \
                float *place = c + v * WIDTH;                                  \
                STORE(place, adds ? PLUS(LOAD(place), sums[i][v]) : sums[i][v]); \
            }                                                                  \
        }                                                                      \
    }

MULTIPLY(multiply_singles, TF_DEPTH, FMA)

#if defined(__AVX512BF16__)
/* First the upper halves' products, then the lower ones', each exact and each sum
 * rounded once: two fused multiply-adds, but for subnormal numbers, which it takes
 * and gives for zero. */
#define DOT(x, y, z) _mm512_dpbf16_ps(z, (__m512bh)(x), (__m512bh)(y))
MULTIPLY(multiply_pairs, TF_DEPTH / 2, DOT)
#define PAIRS multiply_pairs
#else
#define PAIRS NULL
#endif

/* Slots of two rows of float32 numbers that are bfloat16 numbers. */
static void pair_rows(const float *first, const float *second, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = tf_float_of((tf_bits_of(first[i]) & UINT32_C(0xFFFF0000)) |
                             tf_bits_of(second[i]) >> 16);
    }
}

/* Slots of n pairs of consecutive numbers. */
static void pair_neighbours(const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = tf_float_of((tf_bits_of(in[2 * i]) & UINT32_C(0xFFFF0000)) |
                             tf_bits_of(in[2 * i + 1]) >> 16);
    }
}

/* Bits of the least nonzero magnitude, less one. */
static uint32_t least_less_one(const float *in, size_t n)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const uint32_t less_one = (tf_bits_of(in[i]) & UINT32_C(0x7FFFFFFF)) - 1;
        least = less_one < least ? less_one : least;
    }
    return least;
}

#if defined(__AVX512F__)
/* 16 x 16 slots: four rounds of interleaving, of 32, 64, 128 and 256 bits. */
static void transpose_block(const float *in, size_t ld_in, float *out, size_t ld_out)
{
    __m512i x[16], y[16];
    UNROLLED for (int i = 0; i < 16; i++) {
        x[i] = _mm512_loadu_si512(in + (size_t)i * ld_in);
    }
    UNROLLED for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    UNROLLED for (int i = 0; i < 16; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    /* x[4 r + c] holds, in lane l, column 4 l + c of rows 4 r to 4 r + 3. */
    UNROLLED for (int c = 0; c < 4; c++) {
        const __m512i even_low = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88);
        const __m512i odd_low = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xDD);
        const __m512i even_high = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88);
        const __m512i odd_high = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xDD);
        _mm512_storeu_si512(out + (size_t)c * ld_out,
                            _mm512_shuffle_i32x4(even_low, even_high, 0x88));
        _mm512_storeu_si512(out + (size_t)(4 + c) * ld_out,
                            _mm512_shuffle_i32x4(odd_low, odd_high, 0x88));
        _mm512_storeu_si512(out + (size_t)(8 + c) * ld_out,
                            _mm512_shuffle_i32x4(even_low, even_high, 0xDD));
        _mm512_storeu_si512(out + (size_t)(12 + c) * ld_out,
                            _mm512_shuffle_i32x4(odd_low, odd_high, 0xDD));
    }
}
#else
static void transpose_block(const float *in, size_t ld_in, float *out, size_t ld_out)
{
    for (size_t j = 0; j < 16; j++) {
        for (size_t i = 0; i < 16; i++) {
            out[j * ld_out + i] = in[i * ld_in + j];
        }
    }
}
#endif

static void transpose(const float *in, size_t ld_in, size_t rows, size_t columns,
                      float *out, size_t ld_out)
{
    for (size_t i = 0; i < rows; i += 16) {
        for (size_t j = 0; j < columns; j += 16) {
            const float *from = in + i * ld_in + j;
            float *to = out + j * ld_out + i;
            if (rows - i >= 16 && columns - j >= 16) {
                transpose_block(from, ld_in, to, ld_out);
                continue;
            }
            for (size_t p = 0; p < 16 && i + p < rows; p++) {
                for (size_t q = 0; q < 16 && j + q < columns; q++) {
                    to[q * ld_out + p] = from[p * ld_in + q];
                }
            }
        }
    }
}

/* Chains side by side: sums[j] = fma(a, b[j], sums[j]). */
static void add_multiple(float a, const float *b, float *sums, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        sums[j] = __builtin_fmaf(a, b[j], sums[j]);
    }
}

const struct tf_product TF_NAME(tf_product) = {
    .columns = WIDTH * ACROSS,
    .singles = multiply_singles,
    .pairs = PAIRS,
    .pair_rows = pair_rows,
    .pair_neighbours = pair_neighbours,
    .least_less_one = least_less_one,
    .transpose = transpose,
    .add_multiple = add_multiple,
};
