/* Chains along lines of memory in vectors of eight: the loops of dot_chains.h without AVX-512. The
 * preconditions are those that dot.c lists.
 *
 * The first step reads BLOCK bytes of each line and transposes them: the buffer then has
 * words of the same k next to each other. The second step advances all chains by these k.
 * The first step finishes 8 lines before it reads the next 8, since lines whose distance
 * is a power of two share few sets of L1. */
#ifndef TF32DTYPE_MATMUL_KERNELS_DOT_AVX2_H
#define TF32DTYPE_MATMUL_KERNELS_DOT_AVX2_H

#include "runtime/sizes.h"

enum {
    LANES = 8,
    GROUPS = TF_DOT_LINES / LANES,
    PIECE = 32, /* bytes of a line */
    BLOCK = 256,
    WORDS = BLOCK / 4,
    AHEAD = 2 * BLOCK, /* distance of prefetches */
};

/* The words of a block: the first words of all lines, then the second words, and so on. */
typedef __m256i buffer[WORDS][GROUPS];

/* -- words of lines side by side ----------------------------------------------------- */

/* Transposes a piece of eight lines: writes a vector for each of its 8 words. */
TF_INLINE void load_piece(const char *const lines[LANES], size_t at,
                          __m256i (*out)[GROUPS])
{
    __m256i x[2][4];
    UNROLLED for (int i = 0; i < 4; i++) {
        const __m128i *first = (const void *)(lines[i] + at);
        const __m128i *second = (const void *)(lines[i + 4] + at);
        UNROLLED for (int half = 0; half < 2; half++) {
            x[half][i] = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128(first + half)),
                _mm_loadu_si128(second + half), 1);
        }
    }
    UNROLLED for (int half = 0; half < 2; half++) {
        __m256i y[4];
        UNROLLED for (int i = 0; i < 4; i += 2) {
            y[i] = _mm256_unpacklo_epi32(x[half][i], x[half][i + 1]);
            y[i + 1] = _mm256_unpackhi_epi32(x[half][i], x[half][i + 1]);
        }
        UNROLLED for (int i = 0; i < 2; i++) {
            out[half * 4 + 2 * i][0] = _mm256_unpacklo_epi64(y[i], y[i + 2]);
            out[half * 4 + 2 * i + 1][0] = _mm256_unpackhi_epi64(y[i], y[i + 2]);
        }
    }
}

/* Transposes `size` bytes of some groups of lines, at most BLOCK. If `size` ends within a
 * piece, `filler` fills the piece up. */
static void fill(const char *const *lines, size_t groups, size_t at, size_t size,
                 uint16_t filler, buffer out)
{
    char copies[TF_DOT_LINES][BLOCK];
    const char *places[TF_DOT_LINES];
    if (size % PIECE) {
        for (size_t i = 0; i < groups * LANES; i++) {
            for (size_t piece = 0; piece < size; piece += PIECE) {
                _mm256_storeu_si256((__m256i *)(void *)(copies[i] + piece),
                                    _mm256_set1_epi16((short)filler));
            }
            memcpy(copies[i], lines[i] + at, size);
            places[i] = copies[i];
        }
        lines = places;
        at = 0;
    }
    for (size_t g = 0; g < groups; g++, lines += LANES) {
        for (size_t piece = 0; piece < size; piece += PIECE) {
            /* Processors do not prefetch so many lines by themselves. */
            UNROLLED for (size_t i = 0; i < LANES / 2; i++) {
                const size_t line = i + piece % 64 / PIECE * (LANES / 2);
                _mm_prefetch(lines[line] + at + piece / 64 * 64 + AHEAD, _MM_HINT_T0);
            }
            load_piece(lines, at + piece,
                       (__m256i (*)[GROUPS])(out[piece / 4] + g));
        }
    }
}

/* -- chains ---------------------------------------------------------------------------- */

/* The second operand: the same numbers for all lines, the lines of a, or those of b. */
enum other { NUMBERS, THEMSELVES, LINES };

/* Advances the chains by `count` numbers of a block. Returns 1, and leaves the sums as they
 * are, if items of a byte have NaN or Inf and `all` is 0. */
TF_INLINE int advance(enum width width, enum other other, int all, int groups,
                      const struct tf_dot_operands *in, const struct reading *reading,
                      buffer a, buffer b, const float *numbers, size_t count,
                      __m256 *restrict sums)
{
    const size_t each = (size_t)(4 / size_of(width));
    __m256 chains[GROUPS];
    struct seen seen = seen_nothing();
    UNROLLED for (int g = 0; g < groups; g++) {
        chains[g] = sums[g];
    }
    for (size_t k = 0, w = 0; k < count; k += each, w++) {
        UNROLLED for (int g = 0; g < groups; g++) {
            __m256 x[MOST], y[MOST];
            if (all) {
                all_numbers_of_words(reading, in->table, a[w][g], x);
            } else {
                numbers_of_words(width, reading, a[w][g], &seen, x);
            }
            if (other == LINES && all) {
                all_numbers_of_words(reading, in->table, b[w][g], y);
            } else if (other == LINES) {
                numbers_of_words(width, reading, b[w][g], &seen, y);
            }
            UNROLLED for (size_t i = 0; i < each; i++) {
                const __m256 factor = other == NUMBERS
                                          ? _mm256_broadcast_ss(numbers + k + i)
                                      : other == THEMSELVES ? x[i]
                                                            : y[i];
                chains[g] = _mm256_fmadd_ps(x[i], factor, chains[g]);
            }
        }
    }
    if (width == BYTES && !all && saw_specials(reading, seen)) {
        return 1;
    }
    UNROLLED for (int g = 0; g < groups; g++) {
        sums[g] = chains[g];
    }
    return 0;
}

/* Computes the chains of some groups of lines. The last word of a line may have items after
 * `depth`: -0 in one operand and 0 in the other. Adding -0 changes no sum, while +0 would
 * change a sum of -0. Bytes have no such sums (see dot.c), and both operands have code
 * 0. */
TF_INLINE void chain(enum width width, enum other other, int groups,
                     const struct tf_dot_operands *in, size_t depth, float *sums)
{
    const size_t itemsize = (size_t)size_of(width), size = depth * itemsize;
    const struct reading reading = begin_reading(width, in->table, in->used);
    const int is_table = width == BYTES && !reading.is_possible;
    buffer a, b;
    __m256 chains[GROUPS];
    UNROLLED for (int g = 0; g < groups; g++) {
        chains[g] = _mm256_setzero_ps();
    }
    for (size_t at = 0; at < size; at += BLOCK) {
        const size_t here = tf_min_size(BLOCK, size - at), count = here / itemsize;
        const float *numbers = other == NUMBERS ? in->numbers + at / itemsize : NULL;
        fill(in->a, (size_t)groups, at, here,
             width == BF16 && other == LINES ? UINT16_C(0x8000) : 0, a);
        if (other == LINES) {
            fill(in->b, (size_t)groups, at, here, 0, b);
        }
        if (is_table || advance(width, other, 0, groups, in, &reading, a, b, numbers,
                                count, chains)) {
            advance(width, other, width == BYTES, groups, in, &reading, a, b, numbers,
                    count, chains);
        }
    }
    UNROLLED for (int g = 0; g < groups; g++) {
        _mm256_storeu_ps(sums + g * LANES, chains[g]);
    }
}

TF_INLINE void chains_of(enum width width, int groups, const struct tf_dot_operands *in,
                         size_t depth, float *sums)
{
    if (in->numbers) {
        chain(width, NUMBERS, groups, in, depth, sums);
    } else if (in->a == in->b) {
        chain(width, THEMSELVES, groups, in, depth, sums);
    } else {
        chain(width, LINES, groups, in, depth, sums);
    }
}

#endif
