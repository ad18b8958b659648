/* Chains along lines of memory in vectors of eight with AVX2, or of four with NEON: the loops
 * of dot_chains.h without AVX-512. The preconditions are those that dot.c lists.
 *
 * The first step reads BLOCK bytes of each line and transposes them: the buffer then has
 * words of the same k next to each other. The second step advances all chains by these k.
 * The first step finishes the lines of a vector before it reads the next ones, since lines
 * whose distance is a power of two share few sets of L1. With AVX2, pairs of lines of
 * bfloat16, or of floats with exact products, take a single step if they are whole pieces. */
#ifndef TF32DTYPE_MATMUL_KERNELS_DOT_LINES_H
#define TF32DTYPE_MATMUL_KERNELS_DOT_LINES_H

#include "matmul/kernels/transpose.h"
#include "runtime/sizes.h"

enum {
    LANES = WIDTH,
    GROUPS = TF_DOT_LINES / LANES,
    PIECE = 4 * WIDTH, /* bytes of a line */
    CACHE_LINE = 64,
    BLOCK = 256,
    WORDS = BLOCK / 4,
    AHEAD = 2 * BLOCK, /* distance of prefetches */
    SHARE = PIECE * LANES / CACHE_LINE, /* lines that are prefetched with a piece */
};

/* The words of a block: the first words of all lines, then the second words, and so on. */
typedef items buffer[WORDS][GROUPS];

typedef uint16_t pairs __attribute__((vector_size(4 * WIDTH)));

/* -- words of lines side by side ----------------------------------------------------- */

/* Transposes a piece of the lines of a vector: writes a vector for each of its words. */
TF_INLINE void load_piece(const char *const lines[LANES], size_t at,
                          items (*out)[GROUPS])
{
#if defined(__AVX2__)
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
#else
    int32x4_t x[4], y[4];
    UNROLLED for (int i = 0; i < 4; i++) {
        x[i] = vreinterpretq_s32_s8(vld1q_s8((const int8_t *)lines[i] + at));
    }
    UNROLLED for (int i = 0; i < 4; i += 2) {
        y[i] = vzip1q_s32(x[i / 2], x[i / 2 + 2]);
        y[i + 1] = vzip2q_s32(x[i / 2], x[i / 2 + 2]);
    }
    UNROLLED for (int i = 0; i < 2; i++) {
        out[2 * i][0] = (items)vzip1q_s32(y[i], y[i + 2]);
        out[2 * i + 1][0] = (items)vzip2q_s32(y[i], y[i + 2]);
    }
#endif
}

/* Transposes `size` bytes of some groups of lines, at most BLOCK. If `size` ends within a
 * piece, `filler` fills the piece up. */
static void fill(const char *const *lines, size_t groups, size_t at, size_t size,
                 uint16_t filler, buffer out)
{
    char copies[TF_DOT_LINES][BLOCK];
    const char *places[TF_DOT_LINES];
    if (size % PIECE) {
        const pairs fillers = (pairs){0} + filler;
        for (size_t i = 0; i < groups * LANES; i++) {
            for (size_t piece = 0; piece < size; piece += PIECE) {
                memcpy(copies[i] + piece, &fillers, sizeof fillers);
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
            UNROLLED for (size_t i = 0; i < SHARE; i++) {
                const size_t line = i + piece % CACHE_LINE / PIECE * SHARE;
                __builtin_prefetch(lines[line] + at + piece / CACHE_LINE * CACHE_LINE +
                                   AHEAD);
            }
            load_piece(lines, at + piece, (items (*)[GROUPS])(out[piece / 4] + g));
        }
    }
}

/* -- chains ---------------------------------------------------------------------------- */

/* The second operand: the same numbers for all lines, the lines of a, or those of b. */
enum other { NUMBERS, THEMSELVES, LINES };

/* Advances the chains by `count` numbers of a block. */
TF_INLINE void advance(enum width width, enum other other, int groups,
                       const struct reading *reading, buffer a, buffer b,
                       const float *numbers, size_t count, struct seen seen[GROUPS],
                       vector *restrict sums)
{
    const size_t each = (size_t)(4 / size_of(width));
    vector chains[GROUPS];
    UNROLLED for (int g = 0; g < groups; g++) {
        chains[g] = sums[g];
    }
    for (size_t k = 0, w = 0; k < count; k += each, w++) {
        UNROLLED for (int g = 0; g < groups; g++) {
            vector x[MOST], y[MOST];
#if defined(__AVX2__)
            if (width == FINITE && other != NUMBERS) {
                chains[g] = add_products_of_words(reading, a[w][g],
                                                  other == LINES ? b[w][g] : a[w][g],
                                                  &seen[g], chains[g]);
                continue;
            }
#endif
            numbers_of_words(width, reading, a[w][g], &seen[g], x);
            if (other == LINES) {
                numbers_of_words(width, reading, b[w][g], &seen[g], y);
            }
            UNROLLED for (size_t i = 0; i < each; i++) {
                const vector factor = other == NUMBERS      ? BROADCAST(numbers[k + i])
                                      : other == THEMSELVES ? x[i]
                                                            : y[i];
                chains[g] = FMA(x[i], factor, chains[g]);
            }
        }
    }
    UNROLLED for (int g = 0; g < groups; g++) {
        sums[g] = chains[g];
    }
}

/* Computes the chains of some groups of lines. Returns 0, and sums that do not count, if
 * FINITE items of a format with Inf are Inf or NaN. The last word of a line may have items after
 * `depth`: -0 in one operand and 0 in the other. Adding -0 changes no sum, while +0 would
 * change a sum of -0. Bytes have no such sums (see dot.c), and both operands have code
 * 0. */
TF_INLINE int chain(enum width width, enum other other, int groups,
                    const struct tf_dot_operands *in, size_t depth, float *sums)
{
    const size_t itemsize = (size_t)size_of(width), size = depth * itemsize;
    const struct reading reading = begin_reading(width, in->table, in->used);
    buffer a, b;
    vector chains[GROUPS];
    struct seen seen[GROUPS];
    UNROLLED for (int g = 0; g < groups; g++) {
        chains[g] = BROADCAST(0.0f);
        seen[g] = seen_nothing();
    }
    for (size_t at = 0; at < size; at += BLOCK) {
        const size_t here = tf_min_size(BLOCK, size - at), count = here / itemsize;
        const float *numbers = other == NUMBERS ? in->numbers + at / itemsize : NULL;
        fill(in->a, (size_t)groups, at, here,
             width == BF16 && other == LINES ? UINT16_C(0x8000) : 0, a);
        if (other == LINES) {
            fill(in->b, (size_t)groups, at, here, 0, b);
        }
        advance(width, other, groups, &reading, a, b, numbers, count, seen, chains);
    }
    UNROLLED for (int g = 0; g < groups; g++) {
#if defined(__AVX2__)
        if (width == FINITE) {
            if (other != NUMBERS) {
                chains[g] = _mm256_mul_ps(chains[g], reading.product);
            }
            const __m256i specials = seen_specials(&reading, seen[g]);
            if (reading.has_infinity && !_mm256_testz_si256(specials, specials)) {
                return 0;
            }
            const __m256i is_number = _mm256_cmpeq_epi32(specials, _mm256_setzero_si256());
            chains[g] = _mm256_blendv_ps(_mm256_set1_ps(NAN), chains[g],
                                         _mm256_castsi256_ps(is_number));
        }
#endif
        STORE(sums + g * LANES, chains[g]);
    }
    return 1;
}

TF_INLINE void any_chain(enum width width, enum other other, int groups,
                         const struct tf_dot_operands *in, size_t depth, float *sums)
{
    if (!chain(width, other, groups, in, depth, sums)) {
        chain(WITH_INF, other, groups, in, depth, sums);
    }
}

#if defined(__AVX2__)

/* -- pairs of lines in a single step --------------------------------------------------- */

/* The flags in MXCSR of products out of range. A product that underflows is inexact,
 * too. */
enum { OVERFLOW = 1 << 3, UNDERFLOW = 1 << 4 };

TF_INLINE int has_left_range(void) { return _mm_getcsr() & (OVERFLOW | UNDERFLOW); }

/* Advances the chains of eight pairs of lines by a piece. The products of two floats are
 * transposed, instead of the floats. */
TF_INLINE __m256 multiply_pieces(enum width width, const struct reading *reading,
                                 const char *const a[LANES], const char *const b[LANES],
                                 size_t at, __m256 chains)
{
    __m256i p[LANES], q[LANES];
    UNROLLED for (int i = 0; i < LANES; i++) {
        p[i] = _mm256_loadu_si256((const void *)(a[i] + at));
        q[i] = _mm256_loadu_si256((const void *)(b[i] + at));
        if (width == SINGLES) {
            const __m256 x = _mm256_castsi256_ps(_mm256_and_si256(p[i], reading->used));
            const __m256 y = _mm256_castsi256_ps(_mm256_and_si256(q[i], reading->used));
            p[i] = _mm256_castps_si256(_mm256_mul_ps(x, y));
        }
    }
    tf_transpose_registers(p);
    if (width == BF16) {
        tf_transpose_registers(q);
    }
    UNROLLED for (int w = 0; w < LANES; w++) {
        if (width == SINGLES) {
            chains = _mm256_add_ps(chains, _mm256_castsi256_ps(p[w]));
        } else {
            chains = _mm256_fmadd_ps(lower_half(p[w]), lower_half(q[w]), chains);
            chains = _mm256_fmadd_ps(upper_half(p[w]), upper_half(q[w]), chains);
        }
    }
    return chains;
}

/* Computes the chains of lines of `size` bytes, whole pieces. Two groups take turns: more
 * pairs of lines share too few sets of L1. Returns 0, and sums that do not count, if a
 * product of floats has left the range. */
TF_INLINE int chains_of_pairs(enum width width, int groups,
                              const struct tf_dot_operands *in, size_t size, float *sums)
{
    const int together = groups < 2 ? groups : 2;
    const struct reading reading = begin_reading(width, in->table, in->used);
    if (width == SINGLES) {
        _mm_setcsr(_mm_getcsr() & ~(unsigned)(OVERFLOW | UNDERFLOW));
        __asm__ volatile("" ::: "memory"); /* the compiler reads nothing before it */
    }
    for (int first = 0; first < groups; first += together) {
        __m256 chains[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        for (size_t at = 0; at < size; at += PIECE) {
            UNROLLED for (int g = 0; g < together; g++) {
                const int line = (first + g) * LANES;
                chains[g] = multiply_pieces(width, &reading, in->a + line, in->b + line, at,
                                            chains[g]);
            }
            if (width == SINGLES && at == 0 && has_left_range()) {
                return 0; /* products that overflow or underflow are slow */
            }
        }
        UNROLLED for (int g = 0; g < together; g++) {
            _mm256_storeu_ps(sums + (first + g) * LANES, chains[g]);
        }
    }
    __asm__ volatile("" ::: "memory"); /* all sums are stored before the flags are read */
    return width != SINGLES || !has_left_range();
}

/* Returns whether lines are whole pieces, of bfloat16 or of floats with up to 12 significant
 * bits, whose products are exact unless they leave the range. */
TF_INLINE int are_pairs(enum width width, const struct tf_dot_operands *in, size_t depth)
{
    const uint32_t twelve_bits = UINT32_C(0xFFFFF000);
    return depth * (size_t)size_of(width) % PIECE == 0 &&
           (width == BF16 || (width == SINGLES && !(in->used & ~twelve_bits)));
}

#endif

TF_INLINE void chains_of(enum width width, int groups, const struct tf_dot_operands *in,
                         size_t depth, float *sums)
{
    if (in->numbers) {
        any_chain(width, NUMBERS, groups, in, depth, sums);
#if defined(__AVX2__)
    } else if (are_pairs(width, in, depth) &&
               chains_of_pairs(width, groups, in, depth * (size_t)size_of(width), sums)) {
        return;
#endif
    } else if (in->a == in->b) {
        any_chain(width, THEMSELVES, groups, in, depth, sums);
    } else {
        any_chain(width, LINES, groups, in, depth, sums);
    }
}

#endif
