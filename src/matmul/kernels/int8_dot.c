/* Kernels for exact products of small integers: a micro-tile, its packing, and dot
 * products.
 *
 * The numbers of some formats are integers of a byte, times a power of two. A word holds
 * four integers of consecutive k, and VPDPBUSD adds their four products to an int32. The
 * instruction reads one operand as unsigned: A, where 128 is added to each integer. To
 * compensate, the first word of each chain of B is minus 128 times the sum of the chain's
 * integers in the column. The first word of A's chain is not read.
 *
 * A chain adds at most 256 products of at most 127 * 127, whose sum is below 2^24.
 * Therefore the contract's chain in float32 is exact, too, and has the same sum.
 *
 * Preconditions of all kernels in this file:
 *
 * - No alignment, except that of float (4 bytes) for words and sums.
 * - Items are codes of a format whose table has_integers, with any unused bits.
 * - Inputs and outputs do not overlap.
 * - A line, or a column of a panel, has tf_quad_words(depth) words: for each 256 k a first
 *   word and up to 64 words of four items. */
#include <string.h>

#include "formats/byte_tables.h"
#include "matmul/kernels/micro_tile.h"
#include "runtime/sizes.h"

#if defined(__AVX512VNNI__) && defined(__AVX512VBMI__)

enum { OFFSET = 128, BYTES = 64, LONGEST = TF_KC / TF_QUAD };

/* -- codes to words ---------------------------------------------------------------- */

/* Loads the integers by code. The lookup ignores all but the lowest six bits of an item. */
TF_INLINE __m512i load_table(const int8_t integers[64], int unsigned_side)
{
    const __m512i table = _mm512_loadu_si512(integers);
    const __m512i offset = _mm512_set1_epi8(unsigned_side ? (char)OFFSET : 0);
    return _mm512_add_epi8(table, offset);
}

/* Returns a mask of the first n of 64 bytes. */
TF_INLINE __mmask64 first_bytes(size_t n)
{
    return n >= BYTES ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* Returns the index of the word that holds k in a line of chains. */
TF_INLINE size_t words_before(size_t k)
{
    return k / TF_KC * (LONGEST + 1) + k % TF_KC / TF_QUAD + 1;
}

/* Preconditions:
 *
 * - lines: line i begins at lines + i * step, in bytes of any sign; its items adjoin.
 * - out: line i begins at out + i * ld; ld >= tf_quad_words(depth), in words. First words
 *   of chains are not written, and the last word is filled up with integers of code 0.
 * - depth: >= 1; count: any. */
static void lay_lines(const int8_t integers[64], int unsigned_side, const char *lines,
                      ptrdiff_t step, size_t count, size_t depth, float *out, size_t ld)
{
    const __m512i table = load_table(integers, unsigned_side);
    for (; count > 0; count--, lines += step, out += ld) {
        size_t k = 0;
        for (; k + BYTES <= depth; k += BYTES) {
            const __m512i codes = _mm512_loadu_si512(lines + k);
            _mm512_storeu_si512(out + words_before(k),
                                _mm512_permutexvar_epi8(codes, table));
        }
        if (k < depth) {
            const size_t whole = tf_round_up(depth - k, TF_QUAD);
            const __m512i codes =
                _mm512_maskz_loadu_epi8(first_bytes(depth - k), lines + k);
            _mm512_mask_storeu_epi8(out + words_before(k), first_bytes(whole),
                                    _mm512_permutexvar_epi8(codes, table));
        }
    }
}

/* Loads the integers of up to 64 items, in the order that interleaving within lanes of 16
 * bytes needs: the items 16 i + 4 j to 16 i + 4 j + 3 move to 16 j + 4 i. */
TF_INLINE __m512i load_integers(const char *items, size_t n, __m512i table)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i codes = n >= BYTES
                              ? _mm512_loadu_si512(items)
                              : _mm512_maskz_loadu_epi8(first_bytes(n), items);
    return _mm512_permutexvar_epi8(_mm512_permutexvar_epi32(order, codes), table);
}

/* Interleaves up to four rows of up to 64 items: writes a word for each of 64 columns. */
TF_INLINE void interleave(const char *rows, ptrdiff_t step, size_t depth,
                          size_t columns, __m512i table, __m512i words[4])
{
    __m512i x[TF_QUAD];
    UNROLLED for (size_t i = 0; i < TF_QUAD; i++) {
        const size_t n = i < depth ? columns : 0;
        x[i] = load_integers(n ? rows + (ptrdiff_t)i * step : rows, n, table);
    }
    const __m512i early[2] = {_mm512_unpacklo_epi8(x[0], x[1]),
                              _mm512_unpackhi_epi8(x[0], x[1])};
    const __m512i late[2] = {_mm512_unpacklo_epi8(x[2], x[3]),
                             _mm512_unpackhi_epi8(x[2], x[3])};
    UNROLLED for (int i = 0; i < 2; i++) {
        words[2 * i] = _mm512_unpacklo_epi16(early[i], late[i]);
        words[2 * i + 1] = _mm512_unpackhi_epi16(early[i], late[i]);
    }
}

/* Preconditions:
 *
 * - rows: row k begins at rows + k * step, in bytes of any sign; `columns` items adjoin.
 * - depth, columns: >= 1.
 * - width: a multiple of 16.
 * - out: panel p begins at out + p * width * words, with `words` = tf_quad_words(depth).
 *   First words of chains are not written. Columns from `columns` up to the next multiple
 *   of 64 in the panel become integers of code 0, and columns after these are not
 *   written. */
static void lay_rows(const int8_t integers[64], int unsigned_side, const char *rows,
                     ptrdiff_t step, size_t depth, size_t columns, size_t width,
                     size_t words, float *out)
{
    const __m512i table = load_table(integers, unsigned_side);
    for (size_t k = 0; k < depth; k += TF_QUAD, rows += TF_QUAD * step) {
        float *panel = out + words_before(k) * width;
        for (size_t j = 0; j < columns; j += width, panel += width * words) {
            for (size_t i = 0; i < width && j + i < columns; i += BYTES) {
                const char *place = rows + j + i;
                __m512i found[4];
                for (int row = 4; row < 8; row++) {
                    __builtin_prefetch(place + (ptrdiff_t)row * step);
                }
                if (k + TF_QUAD <= depth && j + i + BYTES <= columns) { /* the usual case */
                    interleave(place, step, TF_QUAD, BYTES, table, found);
                } else {
                    interleave(place, step, depth - k, columns - j - i, table, found);
                }
                for (size_t v = 0; v < 4 && i + v * WIDTH < width; v++) {
                    _mm512_storeu_si512(panel + i + v * WIDTH, found[v]);
                }
            }
        }
    }
}

/* Writes the first word of each chain: minus 128 times the sum of its integers.
 * Preconditions:
 *
 * - panels: written by lay_rows, or by lay_lines and transpose, and without gaps.
 * - width: a multiple of 16. */
static void begin_chains(float *panels, size_t columns, size_t width, size_t words)
{
    const __m512i offset = _mm512_set1_epi8((char)OFFSET);
    for (size_t j = 0; j < columns; j += width, panels += width * words) {
        for (size_t word = 0; word < words; word += LONGEST + 1) {
            const size_t end = words - word <= LONGEST ? words : word + LONGEST + 1;
            for (size_t i = 0; i < width; i += WIDTH) {
                float *place = panels + word * width + i;
                __m512i sums = _mm512_setzero_si512();
                for (size_t s = 1; word + s < end; s++) {
                    sums = _mm512_dpbusd_epi32(sums, offset,
                                               _mm512_loadu_si512(place + s * width));
                }
                _mm512_storeu_si512(place,
                                    _mm512_sub_epi32(_mm512_setzero_si512(), sums));
            }
        }
    }
}

/* -- the kernel -------------------------------------------------------------------- */

TF_INLINE __m512i broadcast_word(const float *word)
{
    int32_t bytes;
    memcpy(&bytes, word, sizeof bytes);
    return _mm512_set1_epi32(bytes);
}

/* Adds products to `sums` in place: gcc moves the result of the intrinsic through
 * memory. */
TF_INLINE void add_products(__m512i *sums, __m512i x, __m512i y)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sums) : "v"(x), "v"(y));
}

TF_INLINE void multiply(const float *a, size_t lda, const float *b, size_t depth,
                        float unit, float *c, size_t ldc, int adds, int rows)
{
    __m512i sums[ROWS][ACROSS];
    UNROLLED for (int v = 0; v < ACROSS; v++) {
        sums[0][v] = _mm512_loadu_si512(b + v * WIDTH);
        UNROLLED for (int i = 1; i < rows; i++) {
            sums[i][v] = sums[0][v];
        }
    }
    for (size_t k = 1; k < depth; k++) {
        const float *y = b + k * WIDTH * ACROSS;
        UNROLLED for (int i = 0; i < rows; i++) {
            const __m512i factors = broadcast_word(a + (size_t)i * lda + k);
            UNROLLED for (int v = 0; v < ACROSS; v++) {
                add_products(&sums[i][v], factors, _mm512_loadu_si512(y + v * WIDTH));
            }
        }
    }
    UNROLLED for (int i = 0; i < rows; i++, c += ldc) {
        UNROLLED for (int v = 0; v < ACROSS; v++) {
            float *place = c + v * WIDTH;
            const __m512 sum =
                TIMES(_mm512_cvtepi32_ps(sums[i][v]), BROADCAST(unit));
            STORE(place, adds ? PLUS(LOAD(place), sum) : sum);
        }
    }
}

/* As the micro-kernels of multiply_rows (micro_kernel.c), with these differences:
 *
 * - terms: one, with distances of 0 and the value of a product of 1 and 1 as the scale.
 * - depth: 1 to 65 words, the first word of the chain included.
 * - adds: TF_SUMS_WRITE or TF_SUMS_ADD. */
static void multiply_quads(const float *a, size_t lda, const float *b, size_t depth,
                           const struct tf_split_product *terms, size_t count, size_t rows,
                           float *c, size_t ldc, int adds)
{
    const float unit = terms->scale;
    (void)count;
    if (rows > 4) {
        multiply(a, lda, b, depth, unit, c, ldc, adds, ROWS);
    } else if (rows > 2) {
        multiply(a, lda, b, depth, unit, c, ldc, adds, 4);
    } else {
        multiply(a, lda, b, depth, unit, c, ldc, adds, 2);
    }
}

/* -- products of lines ------------------------------------------------------------- */

/* Adds the products of up to 64 items of two lines, those of a offset by 128, to
 * `products`, and 128 times the items of b to `offsets`, which the caller subtracts. */
TF_INLINE void add_items(const char *a, const char *b, size_t n, __m512i biased,
                         __m512i table, __m512i *products, __m512i *offsets)
{
    const __m512i x = n >= BYTES ? _mm512_loadu_si512(a)
                                 : _mm512_maskz_loadu_epi8(first_bytes(n), a);
    const __m512i y = n >= BYTES ? _mm512_loadu_si512(b)
                                 : _mm512_maskz_loadu_epi8(first_bytes(n), b);
    const __m512i factors = _mm512_permutexvar_epi8(y, table);
    add_products(products, _mm512_permutexvar_epi8(x, biased), factors);
    add_products(offsets, _mm512_set1_epi8((char)OFFSET), factors);
}

/* A chain is exact. Therefore its products may be added in any order: along the lines.
 * Preconditions:
 *
 * - in->a, in->b: `count` pointers to lines of `depth` adjoining items; numbers is not
 *   read.
 * - in->table: that of the format; in->unit: the value of a product of 1 and 1.
 * - depth: 0 to 256. sums: room for `count` floats. */
static void dot(const struct tf_dot_operands *in, size_t depth, size_t count,
                float *sums)
{
    const __m512i table = load_table(in->table->integers, 0);
    const __m512i biased = load_table(in->table->integers, 1);
    for (size_t i = 0; i < count; i++) {
        const char *a = in->a[i], *b = in->b[i];
        __m512i products = _mm512_setzero_si512(), offsets = _mm512_setzero_si512();
        size_t k = 0;
        for (; k + BYTES <= depth; k += BYTES) { /* a constant size is faster */
            add_items(a + k, b + k, BYTES, biased, table, &products, &offsets);
        }
        if (k < depth) {
            add_items(a + k, b + k, depth - k, biased, table, &products, &offsets);
        }
        const int32_t sum =
            _mm512_reduce_add_epi32(_mm512_sub_epi32(products, offsets));
        sums[i] = (float)sum * in->unit;
    }
}

const struct tf_int8_kernels TF_NAME(tf_int8_kernels) = {
    .kernel = {multiply_quads, ROWS, WIDTH * ACROSS},
    .dot = dot,
    .lay_lines = lay_lines,
    .lay_rows = lay_rows,
    .begin_chains = begin_chains,
};

#else
const struct tf_int8_kernels TF_NAME(tf_int8_kernels) = {.kernel = {0}};
#endif

const struct tf_int8_kernels TF_NAME(tf_no_int8_kernels) = {.kernel = {0}};
