/* Micro-kernels, which compute micro-tiles of C from packed words, and kernels that pack.
 *
 * A packed word is 32 bits: one float32, or two bfloat16 numbers of consecutive k, the
 * earlier number in the upper half, or four int8 (int8_dot.c). Rows of packed A follow each
 * other. Columns of packed B are in panels as wide as the kernel's micro-tile.
 *
 * Preconditions of all kernels in this file, besides those above each function:
 *
 * - Pointers have the alignment of their type: 4 bytes for float, 2 for uint16_t.
 * - Inputs and outputs do not overlap.
 * - Elements adjoin (stride 1) if no distance is given. Distances are in elements.
 */
#include <string.h>

#include "formats/byte_tables.h"
#include "matmul/kernels/simd_bf16.h"
#include "matmul/kernels/micro_tile.h"
#include "matmul/kernels/split_singles.h"
#include "matmul/kernels/transpose.h"
#include "runtime/asserts.h"
#include "runtime/sizes.h"

/* The tall micro-tile: as many rows of accumulators as registers hold, next to the vectors
 * that are loaded. */
enum {
#if defined(__AVX512F__)
    TALL_ROWS = TF_TALL_MR,
    TALL_ACROSS = 2,
#else
    TALL_ROWS = ROWS,
    TALL_ACROSS = ACROSS,
#endif
};

TF_INLINE vector step(int pairs, vector x, vector y, vector sums)
{
#if defined(__AVX512BF16__)
    if (pairs) {
        return tf_dot(x, y, sums);
    }
#endif
    (void)pairs;
    return FMA(x, y, sums);
}

/* Computes a micro-tile. `rows`, `across` and `pairs` are constants in each inlined
 * copy. */
TF_INLINE void multiply(const float *a, size_t lda, const float *b, size_t depth,
                        const struct tf_split_product *terms, size_t count, float *c, size_t ldc,
                        int what, int rows, int across, int pairs)
{
    vector sums[TALL_ROWS][ACROSS];
    UNROLLED for (int i = 0; i < rows; i++) {
        UNROLLED for (int v = 0; v < across; v++) {
            const float *place = c + (size_t)i * ldc + v * WIDTH;
            sums[i][v] = what == TF_SUMS_CONTINUE ? LOAD(place) : BROADCAST(0.0f);
        }
    }
    for (size_t t = 0; t < count; t++) {
        const float *x = a + terms[t].a, *y = b + terms[t].b;
        if (terms[t].scale != 1) {
            const vector scale = BROADCAST(terms[t].scale);
            UNROLLED for (int i = 0; i < rows; i++) {
                UNROLLED for (int v = 0; v < across; v++) {
                    sums[i][v] = TIMES(sums[i][v], scale);
                }
            }
        }
        for (size_t k = 0; k < depth; k++, y += WIDTH * across) {
            UNROLLED for (int i = 0; i < rows; i++) {
                const vector factor = BROADCAST(x[(size_t)i * lda + k]);
                UNROLLED for (int v = 0; v < across; v++) {
                    sums[i][v] = step(pairs, factor, LOAD(y + v * WIDTH), sums[i][v]);
                }
            }
        }
    }
    UNROLLED for (int i = 0; i < rows; i++, c += ldc) {
        UNROLLED for (int v = 0; v < across; v++) {
            float *place = c + v * WIDTH;
            STORE(place, what == TF_SUMS_ADD ? PLUS(LOAD(place), sums[i][v]) : sums[i][v]);
        }
    }
}

/* Computes a micro-tile with all its rows, about two thirds or about a third of them, so
 * that the last rows of a matrix take time in proportion. Preconditions of the three
 * kernels below:
 *
 * - a: `depth` words of a row adjoin; rows are `lda` >= depth words apart.
 * - b: the NR words of one k adjoin, and those of the next k follow.
 * - terms: count >= 1; a term's `a` and `b` are added to the two pointers.
 * - depth: >= 1, in words. Callers pass at most 256 k (TF_KC), by contract.
 * - rows: >= 1; a number above MR means MR. The kernel reads and writes 2, 4 or 6 rows
 *   (tall with AVX-512: 4, 8 or 14), at least `rows` of them. A and C have memory for all.
 * - c: NR elements of a row adjoin; rows are `ldc` >= NR floats apart. It is read unless
 *   `what` is TF_SUMS_WRITE.
 * - pairs: exact only if no operand, product or sum is subnormal (bf16_dot.h). */
TF_INLINE void multiply_rows(const float *a, size_t lda, const float *b, size_t depth,
                             const struct tf_split_product *terms, size_t count, size_t rows,
                             float *c, size_t ldc, int what, int all, int across,
                             int pairs)
{
    const int some = (all * 2 / 3) & ~1, few = some / 2;
    TF_ASSERT(rows > 0 && depth > 0 && count > 0);
    TF_ASSERT(lda >= depth && ldc >= (size_t)(WIDTH * across));
    if (rows > (size_t)some) {
        multiply(a, lda, b, depth, terms, count, c, ldc, what, all, across, pairs);
    } else if (rows > (size_t)few) {
        multiply(a, lda, b, depth, terms, count, c, ldc, what, some, across, pairs);
    } else {
        multiply(a, lda, b, depth, terms, count, c, ldc, what, few, across, pairs);
    }
}

static void multiply_singles(const float *a, size_t lda, const float *b, size_t depth,
                             const struct tf_split_product *terms, size_t count, size_t rows,
                             float *c, size_t ldc, int what)
{
    multiply_rows(a, lda, b, depth, terms, count, rows, c, ldc, what, ROWS, ACROSS, 0);
}

static void multiply_tall(const float *a, size_t lda, const float *b, size_t depth,
                          const struct tf_split_product *terms, size_t count, size_t rows,
                          float *c, size_t ldc, int what)
{
    multiply_rows(a, lda, b, depth, terms, count, rows, c, ldc, what, TALL_ROWS,
                  TALL_ACROSS, 0);
}

/* Computes n chains, at most 8, at the same time: a single chain waits for each sum. */
TF_INLINE void chains_together(const float *a, const float *b, size_t depth,
                               const struct tf_split_product *terms, size_t count, size_t n,
                               float *sums)
{
    float chain[8] = {0};
    for (size_t t = 0; t < count; t++) {
        const float *x = a + terms[t].a, *y = b + terms[t].b;
        if (terms[t].scale != 1) {
            UNROLLED for (size_t i = 0; i < n; i++) {
                chain[i] *= terms[t].scale;
            }
        }
        for (size_t k = 0; k < depth; k++) {
            UNROLLED for (size_t i = 0; i < n; i++) {
                const float p = x[i * depth + k], q = y[i * depth + k];
                chain[i] = __builtin_fmaf(p, q, chain[i]);
            }
        }
    }
    memcpy(sums, chain, n * sizeof *sums);
}

/* Preconditions:
 * - a, b: n lines of `depth` adjoining floats, and no gap between lines.
 * - terms: as in multiply_rows, with distances in floats.
 * - depth, n: any number, also 0; a chain of no products is +0. */
static void chains(const float *a, const float *b, size_t depth,
                   const struct tf_split_product *terms, size_t count, size_t n, float *sums)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        chains_together(a + i * depth, b + i * depth, depth, terms, count, 8, sums + i);
    }
    for (; i + 2 <= n; i += 2) {
        chains_together(a + i * depth, b + i * depth, depth, terms, count, 2, sums + i);
    }
    for (; i < n; i++) {
        chains_together(a + i * depth, b + i * depth, depth, terms, count, 1, sums + i);
    }
}

#if defined(__AVX512BF16__)
static void multiply_pairs(const float *a, size_t lda, const float *b, size_t depth,
                           const struct tf_split_product *terms, size_t count, size_t rows,
                           float *c, size_t ldc, int what)
{
    multiply_rows(a, lda, b, depth, terms, count, rows, c, ldc, what, ROWS, ACROSS, 1);
}

/* Loads n bfloat16 numbers, at most 32, and zeros behind them. */
TF_INLINE __m512i load_some(const uint16_t *in, size_t n)
{
    if (n == 32) {
        return _mm512_loadu_si512(in);
    }
    return _mm512_maskz_loadu_epi16((UINT32_C(1) << n) - 1, in);
}

/* Lowers the smallest magnitudes of `range` to those of n numbers; the largest magnitudes
 * are not noted. Preconditions: range is not NULL; n may be 0. */
static void note_least(const uint16_t *in, size_t n, struct tf_magnitude_range *range)
{
    __m512i least = _mm512_loadu_si512(range->min_minus_1);
    for (; n > 32; n -= 32, in += 32) {
        least = tf_lesser(least, load_some(in, 32));
    }
    least = tf_lesser(least, load_some(in, n));
    _mm512_storeu_si512(range->min_minus_1, least);
}

/* Writes n words of two neighbors each. Precondition: `in` has 2 n numbers; n may be 0. */
static void pair_neighbors(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = tf_float_of((uint32_t)in[2 * i] << 16 | in[2 * i + 1]);
    }
}

/* Stores n words, at most 32, of two rows: the numbers of `first` in the upper halves. */
TF_INLINE void store_words(__m512i first, __m512i second, float *out, size_t n)
{
    const __m512i low =
        _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const __m512i evens = _mm512_unpacklo_epi16(second, first);
    const __m512i odds = _mm512_unpackhi_epi16(second, first);
    const __m512i words[2] = {_mm512_permutex2var_epi32(evens, low, odds),
                              _mm512_permutex2var_epi32(evens, high, odds)};
    if (n == 32) {
        _mm512_storeu_si512(out, words[0]);
        _mm512_storeu_si512(out + 16, words[1]);
        return;
    }
    const uint32_t there = (UINT32_C(1) << n) - 1;
    _mm512_mask_storeu_epi32(out, (__mmask16)there, words[0]);
    _mm512_mask_storeu_epi32(out + 16, (__mmask16)(there >> 16), words[1]);
}

/* Writes n words, with numbers of `first` in the upper halves. Precondition: both rows have
 * n numbers; n may be 0. */
static void pair_rows(const uint16_t *first, const uint16_t *second, float *out,
                      size_t n)
{
    for (size_t i = 0; i < n; i += 32) {
        const size_t count = tf_min_size(n - i, 32);
        store_words(load_some(first + i, count), load_some(second + i, count), out + i,
                    count);
    }
}

/* Pairs the rows 2 i and 2 i + 1 of a matrix, and a last row without a partner with zeros.
 * Notes the smallest magnitudes. Preconditions:
 *
 * - rows: a row for each of `depth` k; rows are `step` bytes apart, an even number of any
 *   sign. `columns` numbers of a row adjoin.
 * - width: a multiple of 32, or at least `columns`.
 * - out: panel p begins at out + p * width * words, with 2 * words >= depth. The caller
 *   writes zeros to the columns after the last one.
 * - range: not NULL. */
static void pair_matrix(const uint16_t *rows, ptrdiff_t step, size_t depth,
                        size_t columns, size_t width, size_t words, float *out,
                        struct tf_magnitude_range *range)
{
    __m512i least = _mm512_loadu_si512(range->min_minus_1);
    const char *row = (const char *)rows;
    for (size_t k = 0; k < depth; k += 2, row += 2 * step, out += width) {
        float *panel = out;
        for (size_t j = 0; j < columns; j += width, panel += width * words) {
            for (size_t i = j; i < j + width && i < columns; i += 32) {
                const size_t count = tf_min_size(columns - i, 32);
                const uint16_t *place = (const uint16_t *)row + i;
                const uint16_t *next = (const uint16_t *)(row + step) + i;
                __builtin_prefetch((const char *)place + 8 * step);
                __builtin_prefetch((const char *)place + 9 * step);
                __m512i first, second = _mm512_setzero_si512();
                if (count == 32 && k + 1 < depth) { /* a constant count is faster */
                    first = load_some(place, 32);
                    second = load_some(next, 32);
                    store_words(first, second, panel + i - j, 32);
                } else {
                    first = load_some(place, count);
                    second = k + 1 < depth ? load_some(next, count) : second;
                    store_words(first, second, panel + i - j, count);
                }
                least = tf_lesser(tf_lesser(least, first), second);
            }
        }
    }
    _mm512_storeu_si512(range->min_minus_1, least);
}
#endif

/* Extends `range` by the magnitudes of n numbers, number i in lane i % TF_LANES. */
static void note_range(const float *restrict in, size_t n,
                       struct tf_magnitude_range *restrict range)
{
    for (size_t i = 0; i < n;) {
        const size_t lanes = tf_min_size(n - i, TF_LANES);
        for (size_t lane = 0; lane < lanes; lane++, i++) {
            const uint32_t magnitude = tf_bits_of(in[i]) & TF_MAGNITUDE_BITS;
            const uint16_t less_one = (uint16_t)((magnitude - 1) >> 16);
            const uint16_t upper = (uint16_t)(magnitude >> 16);
            uint16_t *least = &range->min_minus_1[lane];
            uint16_t *greatest = &range->greatest[lane];
            *least = less_one < *least ? less_one : *least;
            *greatest = upper > *greatest ? upper : *greatest;
        }
    }
}

/* Returns the bits of a magnitude, which are ordered as magnitudes; 0 for Inf and NaN. */
TF_INLINE uint32_t finite_magnitude(float x)
{
    const uint32_t magnitude = tf_bits_of(x) & TF_MAGNITUDE_BITS;
    return magnitude < TF_INF_BITS ? magnitude : 0;
}

/* Returns the largest finite magnitude of n numbers, or 0 if there is none; n may be 0. */
static float greatest_of_all(const float *in, size_t n)
{
    uint32_t greatest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = finite_magnitude(in[i]);
        greatest = magnitude > greatest ? magnitude : greatest;
    }
    return tf_float_of(greatest);
}

/* Raises `greatest[i]` to the finite magnitude of in[i]. Precondition: it is not
 * negative. */
static void greatest_of_each(const float *restrict in, size_t n,
                             float *restrict greatest)
{
    for (size_t i = 0; i < n; i++) {
        const float x = tf_float_of(finite_magnitude(in[i]));
        greatest[i] = x > greatest[i] ? x : greatest[i];
    }
}

/* Copies rows to panels of B. Preconditions:
 *
 * - in: `rows` rows of n floats, without gaps; n >= 1.
 * - out: panel p begins at out + p * distance; distance >= rows * width, in floats. The
 *   caller writes zeros to the columns after the last one.
 * - width: >= 1. A multiple of 16 is faster. */
static void lay_out(const float *restrict in, size_t rows, size_t n,
                    float *restrict out, size_t width, size_t distance)
{
    for (size_t row = 0; row < rows; row++, in += n, out += width) {
        float *place = out;
        for (size_t j = 0; j < n; j += width, place += distance) {
            const size_t count = tf_min_size(n - j, width);
            if (count % 16 == 0) { /* a constant size is faster */
                for (size_t i = 0; i < count; i += 16) {
                    memcpy(place + i, in + j + i, 16 * sizeof *place);
                }
            } else {
                memcpy(place, in + j, count * sizeof *place);
            }
        }
    }
}

/* Writes the bounds of all lanes to lane 0. Precondition: all lanes are initialized. */
static void reduce_range(struct tf_magnitude_range *range)
{
    uint16_t least = UINT16_MAX, greatest = 0;
    for (size_t lane = 0; lane < TF_LANES; lane++) {
        const uint16_t low = range->min_minus_1[lane], high = range->greatest[lane];
        least = low < least ? low : least;
        greatest = high > greatest ? high : greatest;
    }
    range->min_minus_1[0] = least;
    range->greatest[0] = greatest;
}

/* Splits n numbers as tf_split_singles does, and extends `range` by the magnitudes of `in`.
 * Preconditions: distance >= n (in floats), p is 8 or 11, `parts` is 2 or 3, and range is
 * not NULL. */
static void split_singles(const float *in, size_t n, int p, int parts, float *out,
                          size_t distance, struct tf_magnitude_range *range)
{
    note_range(in, n, range);
    tf_split_singles(in, n, p, parts, out, distance);
}

#if defined(__AVX512BF16__)
TF_INLINE void split_bf16_of(const float *restrict in, size_t n, int parts,
                             uint16_t *restrict out, size_t distance)
{
    for (size_t i = 0; i < n; i++) {
        float rest = in[i];
        float scale = 1;
        for (int part = 0; part < parts; part++, scale /= 256) {
            const float x = tf_part_of(rest, 8);
            out[(size_t)part * distance + i] = (uint16_t)(tf_bits_of(x * scale) >> 16);
            rest = tf_split_rest(rest, x, 8);
        }
    }
}

/* Splits n numbers into bfloat16 components without scales, and extends `range` by the
 * magnitudes of `in`. Preconditions: distance >= n (in elements of 2 bytes), `parts` is 2
 * or 3, and range is not NULL. Exact for numbers that tf_bf16_split_dot_is_exact
 * accepts. */
static void split_bf16(const float *in, size_t n, int parts, uint16_t *out,
                       size_t distance, struct tf_magnitude_range *range)
{
    note_range(in, n, range);
    if (parts == 2) {
        split_bf16_of(in, n, 2, out, distance);
    } else {
        split_bf16_of(in, n, 3, out, distance);
    }
}
#endif

#if defined(__AVX512F__)
static void transpose_square(const float *in, size_t ld_in, float *out, size_t ld_out)
{
    __m512i x[16];
    UNROLLED for (int i = 0; i < 16; i++) {
        x[i] = _mm512_loadu_si512(in + (size_t)i * ld_in);
    }
    tf_transpose_registers(x);
    UNROLLED for (int i = 0; i < 16; i++) {
        _mm512_storeu_si512(out + (size_t)i * ld_out, x[i]);
    }
}
#else
static void transpose_square(const float *in, size_t ld_in, float *out, size_t ld_out)
{
    for (size_t j = 0; j < 16; j++) {
        for (size_t i = 0; i < 16; i++) {
            out[j * ld_out + i] = in[i * ld_in + j];
        }
    }
}
#endif

/* Writes in[i * ld_in + j] to out[j * ld_out + i]. Preconditions: ld_in >= columns and
 * ld_out >= rows, in words; rows and columns are any numbers, also 0. */
static void transpose(const float *in, size_t ld_in, size_t rows, size_t columns,
                      float *out, size_t ld_out)
{
    for (size_t i = 0; i < rows; i += 16) {
        for (size_t j = 0; j < columns; j += 16) {
            const float *from = in + i * ld_in + j;
            float *to = out + j * ld_out + i;
            if (rows - i >= 16 && columns - j >= 16) {
                transpose_square(from, ld_in, to, ld_out);
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

/* to[i] += from[i]. Precondition: from and to do not overlap; n may be 0. */
static void add(const float *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

const struct tf_matmul_kernels TF_NAME(tf_matmul_kernels) = {
    .singles = {multiply_singles, ROWS, WIDTH * ACROSS},
    .tall = {multiply_tall, TALL_ROWS, WIDTH * TALL_ACROSS},
    .chains = chains,
    .lay_out = lay_out,
    .reduce_range = reduce_range,
    .greatest_of_all = greatest_of_all,
    .greatest_of_each = greatest_of_each,
    .split_singles = split_singles,
    .transpose = transpose,
    .add = add,
#if defined(__AVX512BF16__)
    .pairs = {multiply_pairs, ROWS, WIDTH * ACROSS},
    .pair_rows = pair_rows,
    .pair_matrix = pair_matrix,
    .pair_neighbors = pair_neighbors,
    .note_least = note_least,
    .split_bf16 = split_bf16,
#endif
};
