/* Chains along lines of memory in vectors of 16: the loops of dot_chains.h with AVX-512. The
 * preconditions are those that dot.c lists. */
#ifndef TF32DTYPE_MATMUL_KERNELS_DOT_AVX512_H
#define TF32DTYPE_MATMUL_KERNELS_DOT_AVX512_H

#include "matmul/kernels/words.h"

/* Bytes and words of a piece of a line, and the number of groups of lines. */
enum { PIECE = 32, WORDS = 8, GROUPS = TF_DOT_LINES / TF_DOT_CHAINS };

/* -- words of lines side by side --------------------------------------------------- */

/* Loads a piece of line i and one of line i + 4. */
TF_INLINE __m512i load_two(const char *const lines[CHAINS], int i, size_t at)
{
    const __m256i *first = (const void *)(lines[i] + at);
    const __m256i *second = (const void *)(lines[i + 4] + at);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(first)),
                              _mm256_loadu_si256(second), 1);
}

/* Loads vector i of a piece of 16 lines, with two lines in each vector. If b is not NULL,
 * returns the products with its lines: both are float32, of which the bits in `used` count.
 * This first round of exchange uses loads, which do not need the port of shuffles. */
TF_INLINE __m512i read_two(const char *const a[CHAINS], const char *const *b,
                           __m512i used, int i, size_t at)
{
    const int line = i % 4 + i / 4 * 8;
    const __m512i one = load_two(a, line, at);
    if (!b) {
        return one;
    }
    const __m512i other = load_two(b, line, at);
    return _mm512_castps_si512(
        _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(one, used)),
                      _mm512_castsi512_ps(_mm512_and_si512(other, used))));
}

/* Exchanges the words of vectors with a piece of two lines each: every vector of `out` has
 * a word of each line. */
TF_INLINE void exchange(const __m512i pieces[WORDS], __m512i out[WORDS])
{
    __m512i x[WORDS], y[WORDS];
    UNROLLED for (int i = 0; i < 4; i++) {
        y[i] = _mm512_shuffle_i32x4(pieces[i], pieces[i + 4], 0x88);
        y[i + 4] = _mm512_shuffle_i32x4(pieces[i], pieces[i + 4], 0xDD);
    }
    UNROLLED for (int i = 0; i < WORDS; i += 2) {
        x[i] = _mm512_unpacklo_epi32(y[i], y[i + 1]);
        x[i + 1] = _mm512_unpackhi_epi32(y[i], y[i + 1]);
    }
    UNROLLED for (int i = 0; i < WORDS; i += 4) {
        out[i] = _mm512_unpacklo_epi64(x[i], x[i + 2]);
        out[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 2]);
        out[i + 2] = _mm512_unpacklo_epi64(x[i + 1], x[i + 3]);
        out[i + 3] = _mm512_unpackhi_epi64(x[i + 1], x[i + 3]);
    }
}

/* Copies the last `size` bytes of lines, from byte `at` on, and fills the copies up with
 * `filler`. Writes the addresses of the copies to `places`. */
static void copy_rest(const char *const lines[CHAINS], size_t at, size_t size,
                      int32_t filler, char copies[CHAINS][PIECE],
                      const char *places[CHAINS])
{
    const __mmask32 there = (UINT32_C(1) << size) - 1;
    for (int i = 0; i < CHAINS; i++) {
        const __m256i rest = _mm256_mask_loadu_epi8(_mm256_set1_epi32(filler), there,
                                                    lines[i] + at);
        _mm256_storeu_si256((__m256i *)(void *)copies[i], rest);
        places[i] = copies[i];
    }
}

/* -- chains ------------------------------------------------------------------------ */

/* The second operand. PRODUCTS are lines of float32 that are multiplied before the
 * exchange, which halves the exchanges; these products must be exact. */
enum other { NUMBERS, THEMSELVES, LINES, PRODUCTS };

/* The flags in MXCSR of products out of range. A product that underflows is inexact,
 * too. */
enum { OVERFLOW = 1 << 3, UNDERFLOW = 1 << 4 };

TF_INLINE int has_left_range(void) { return _mm_getcsr() & (OVERFLOW | UNDERFLOW); }

/* Advances the chains of some groups of lines by `pieces` pieces, which follow each other;
 * `numbers` are for the k of these pieces. All pieces of a line are read in a row: lines
 * whose distance is a power of two share few sets of L1, and a cache line that L1 drops in
 * between would be fetched twice. */
TF_INLINE void multiply_pieces(enum width width, enum other other, int pieces, int groups,
                               const struct reading *reading, const char *const *a,
                               const char *const *b, size_t at, const float *numbers,
                               __m512 chains[GROUPS])
{
    const int count = MOST / size_of(width);
    __m512i p[GROUPS][WORDS], q[GROUPS][WORDS], ours[GROUPS][2][WORDS],
        others[GROUPS][2][WORDS];
    UNROLLED for (int g = 0; g < groups; g++) {
        const char *const *lines = a + g * CHAINS, *const *their_lines = b + g * CHAINS;
        UNROLLED for (int i = 0; i < WORDS; i++) {
            UNROLLED for (int piece = 0; piece < pieces; piece++) {
                const size_t here = at + (size_t)piece * PIECE;
                ours[g][piece][i] =
                    read_two(lines, other == PRODUCTS ? their_lines : NULL,
                             reading->used, i, here);
                if (other == LINES) {
                    others[g][piece][i] =
                        read_two(their_lines, NULL, reading->used, i, here);
                }
            }
        }
    }
    UNROLLED for (int piece = 0; piece < pieces; piece++) {
        UNROLLED for (int g = 0; g < groups; g++) {
            exchange(ours[g][piece], p[g]);
            if (other == LINES) {
                exchange(others[g][piece], q[g]);
            }
        }
        UNROLLED for (int w = 0; w < WORDS; w++) {
            UNROLLED for (int g = 0; g < groups; g++) {
                __m512 x[MOST], y[MOST];
                if (other == PRODUCTS) {
                    chains[g] = _mm512_add_ps(chains[g], _mm512_castsi512_ps(p[g][w]));
                    continue;
                }
                numbers_of_words(width, reading, p[g][w], x);
                if (other == LINES) {
                    numbers_of_words(width, reading, q[g][w], y);
                }
                UNROLLED for (int k = 0; k < count; k++) {
                    const __m512 factor =
                        other == NUMBERS
                            ? _mm512_set1_ps(numbers[(piece * WORDS + w) * count + k])
                        : other == THEMSELVES ? x[k]
                                              : y[k];
                    chains[g] = _mm512_fmadd_ps(x[k], factor, chains[g]);
                }
            }
        }
    }
}

/* Computes the chains of some groups of lines. PRODUCTS may stop after the first pieces,
 * and write no sums, if a product has left the range. */
TF_INLINE void chain(enum width width, enum other other, int groups,
                     const struct tf_dot_operands *in, size_t depth, float *sums)
{
    const int32_t minus_zero = size_of(width) == 1 || other == NUMBERS ? 0
                               : width == BF16 ? (int32_t)UINT32_C(0x80008000)
                                                 : INT32_MIN;
    const struct reading reading = begin_reading(width, in->table, in->used);
    __m512 chains[GROUPS];
    UNROLLED for (int g = 0; g < groups; g++) {
        chains[g] = _mm512_setzero_ps();
    }
    const size_t itemsize = (size_t)size_of(width), size = depth * itemsize;
    const float *numbers = in->numbers;
    size_t at = 0;
    /* Lines of float32 are long: one group reads its pieces before the next group does. */
    for (; width == SINGLES && at + 2 * PIECE <= size; at += 2 * PIECE) {
        UNROLLED for (int g = 0; g < groups; g++) {
            multiply_pieces(width, other, 2, 1, &reading, in->a + g * CHAINS,
                            in->b + g * CHAINS, at,
                            numbers ? numbers + at / itemsize : NULL, &chains[g]);
        }
        if (other == PRODUCTS && at == 0 && has_left_range()) {
            return; /* products that overflow or underflow are slow */
        }
    }
    /* The last bytes of lines, shorter than a piece, take the same loop as filled
     * copies. */
    char copies[2][TF_DOT_LINES][PIECE];
    const char *places[2][TF_DOT_LINES];
    const char *const *a = in->a, *const *b = in->b;
    for (size_t from = at; at < size; at += PIECE, from += PIECE) {
        if (size - at < PIECE) {
            for (int i = 0; i < groups * CHAINS; i += CHAINS) {
                copy_rest(a + i, at, size - at, minus_zero, copies[0] + i, places[0] + i);
                if (other == LINES || other == PRODUCTS) {
                    copy_rest(b + i, at, size - at, 0, copies[1] + i, places[1] + i);
                }
            }
            a = places[0];
            b = places[1];
            from = 0;
        }
        multiply_pieces(width, other, 1, groups, &reading, a, b, from,
                        numbers ? numbers + at / itemsize : NULL, chains);
    }
    UNROLLED for (int g = 0; g < groups; g++) {
        _mm512_storeu_ps(sums + g * CHAINS, chains[g]);
    }
}

/* Computes chains of products of numbers with up to 12 significant bits, which are exact.
 * Returns 0, and sums that do not count, if a product has left the range. */
TF_INLINE int add_products(int groups, const struct tf_dot_operands *in, size_t depth,
                           float *sums)
{
    _mm_setcsr(_mm_getcsr() & ~(unsigned)(OVERFLOW | UNDERFLOW));
    __asm__ volatile("" ::: "memory"); /* the compiler reads nothing before it */
    chain(SINGLES, PRODUCTS, groups, in, depth, sums);
    __asm__ volatile("" ::: "memory"); /* all sums are stored before the flags are read */
    return !has_left_range();
}

TF_INLINE void chains_of(enum width width, int groups, const struct tf_dot_operands *in,
                         size_t depth, float *sums)
{
    const uint32_t twelve_bits = UINT32_C(0xFFFFF000);
    if (in->numbers) {
        chain(width, NUMBERS, groups, in, depth, sums);
    } else if (width == SINGLES && !(in->used & ~twelve_bits) &&
               add_products(groups, in, depth, sums)) {
        return;
    } else if (in->a == in->b) {
        chain(width, THEMSELVES, groups, in, depth, sums);
    } else {
        chain(width, LINES, groups, in, depth, sums);
    }
}

#endif
