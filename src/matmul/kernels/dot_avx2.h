/* Chains along lines of memory in vectors of eight: what dot.c does without AVX-512.
 *
 * Pieces of 32 bytes of eight lines become, in three rounds of exchange, eight vectors
 * with a word of each line. Behind the end of lines stand -0 and 0. */
#ifndef TF32DTYPE_MATMUL_KERNELS_DOT_AVX2_H
#define TF32DTYPE_MATMUL_KERNELS_DOT_AVX2_H

#include "matmul/kernels/transpose.h"
#include "runtime/sizes.h"

enum { PIECE = 32, LANES = 8 };

/* A word of each of eight lines, for the words of a piece. */
TF_INLINE void load_piece(const char *const lines[LANES], size_t at, __m256i out[LANES])
{
    UNROLLED for (int i = 0; i < LANES; i++) {
        out[i] = _mm256_loadu_si256((const void *)(lines[i] + at));
    }
    tf_transpose_registers(out);
}

/* The numbers of words, of which the bits in `used` count: one, or two of bfloat16. */
TF_INLINE void numbers_of_vector(int is_bf16, __m256i used, __m256i x, __m256 out[2])
{
    if (is_bf16) {
        out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
        out[1] = _mm256_castsi256_ps(
            _mm256_and_si256(x, _mm256_set1_epi32((int)TF_UPPER_HALF)));
    } else {
        out[0] = _mm256_castsi256_ps(_mm256_and_si256(x, used));
    }
}

/* A piece of eight lines; `numbers`, if given, are those of its k. */
TF_INLINE __m256 multiply_piece(int is_bf16, __m256i used, const char *const *a,
                                const char *const *b, size_t at, const float *numbers,
                                __m256 sums)
{
    const int count = is_bf16 ? 2 : 1;
    __m256i p[LANES], q[LANES];
    load_piece(a, at, p);
    if (!numbers) {
        load_piece(b, at, q);
    }
    UNROLLED for (int w = 0; w < LANES; w++) {
        __m256 x[2], y[2];
        numbers_of_vector(is_bf16, used, p[w], x);
        if (!numbers) {
            numbers_of_vector(is_bf16, used, q[w], y);
        }
        UNROLLED for (int k = 0; k < count; k++) {
            const __m256 factor = numbers ? _mm256_broadcast_ss(numbers + w * count + k)
                                          : y[k];
            sums = _mm256_fmadd_ps(x[k], factor, sums);
        }
    }
    return sums;
}

/* Copies of what is left of lines, with `filler` behind; where they begin. */
static void copy_rest(const char *const lines[LANES], size_t at, size_t size,
                      int32_t filler, char copies[LANES][PIECE],
                      const char *places[LANES])
{
    for (int i = 0; i < LANES; i++) {
        for (size_t word = 0; word < PIECE; word += sizeof filler) {
            memcpy(copies[i] + word, &filler, sizeof filler);
        }
        memcpy(copies[i], lines[i] + at, size);
        places[i] = copies[i];
    }
}

/* Of operands that have `numbers`, or NULL. */
TF_INLINE void chain(int is_bf16, const float *numbers, const struct tf_dot_operands *in,
                     size_t depth, size_t count, float *sums)
{
    const size_t itemsize = is_bf16 ? 2 : 4, size = depth * itemsize;
    const size_t whole = size / PIECE * PIECE;
    const __m256i used = _mm256_set1_epi32((int32_t)in->used);
    const size_t lines = tf_round_up(count, LANES);
    for (size_t i = 0; i < lines; i += LANES) {
        _mm256_storeu_ps(sums + i, _mm256_setzero_ps());
    }
    /* All lines advance together: chains of one group alone would wait for their sums. */
    for (size_t at = 0; at < whole; at += PIECE) {
        const float *here = numbers ? numbers + at / itemsize : NULL;
        for (size_t i = 0; i < lines; i += LANES) {
            _mm256_storeu_ps(sums + i,
                             multiply_piece(is_bf16, used, in->a + i, in->b + i, at,
                                            here,
                                            _mm256_loadu_ps(sums + i)));
        }
    }
    if (whole < size) {
        const int32_t filler = numbers  ? 0 /* behind the numbers stand -0 */
                               : is_bf16 ? (int32_t)UINT32_C(0x80008000)
                                        : INT32_MIN;
        const float *here = numbers ? numbers + whole / itemsize : NULL;
        char copies[2][LANES][PIECE];
        const char *a[LANES], *b[LANES] = {NULL};
        for (size_t i = 0; i < lines; i += LANES) {
            copy_rest(in->a + i, whole, size - whole, filler, copies[0], a);
            if (!numbers) {
                copy_rest(in->b + i, whole, size - whole, 0, copies[1], b);
            }
            _mm256_storeu_ps(sums + i, multiply_piece(is_bf16, used, a, b, 0, here,
                                                      _mm256_loadu_ps(sums + i)));
        }
    }
}

/* -- one instance a width, with numbers and without ---------------------------------- */

TF_INLINE void chain_lines(int is_bf16, const struct tf_dot_operands *in, size_t depth,
                           size_t count, float *sums)
{
    if (in->numbers) {
        chain(is_bf16, in->numbers, in, depth, count, sums);
    } else {
        chain(is_bf16, NULL, in, depth, count, sums);
    }
}

static void bf16(const struct tf_dot_operands *in, size_t depth, size_t count,
                 float *sums)
{
    chain_lines(1, in, depth, count, sums);
}

static void singles(const struct tf_dot_operands *in, size_t depth, size_t count,
                    float *sums)
{
    chain_lines(0, in, depth, count, sums);
}

#endif
