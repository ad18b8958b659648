/* Converts operands of products to packed words, which kernels/micro_kernel.c defines. */
#ifndef TF32DTYPE_MATMUL_PACK_H
#define TF32DTYPE_MATMUL_PACK_H

#include <stddef.h>

#include "matmul/kernels.h"
#include "matmul/operand.h"
#include "matmul/workspace.h"
#include "runtime/stops.h"

/* Returns whether neighbors in a line are at most as far apart as neighboring lines. */
int tf_runs_along(struct tf_operand x);

/* Returns the number of packed words of `depth` k, for an enum tf_packing. */
size_t tf_packed_words(size_t depth, int packing);

/* Returns the distance of rows of packed A, in words. */
static inline size_t tf_lda_of(size_t words)
{
    return words < TF_KC ? words : words + TF_GAP;
}

/* Returns n numbers of a kind as float32, where they are in memory or in the buffer. n is
 * at most TF_CHUNK. Only float64 is rounded, to nearest. */
const float *tf_load_floats(int kind, const char *data, ptrdiff_t stride, size_t n,
                            float *buffer);

/* Writes `count` lines of k numbers, at most TF_CHUNK, to `out` as float32, without
 * gaps. */
void tf_load_lines(struct tf_operand x, size_t k, size_t count, float *out);

/* Returns n numbers as bfloat16, in `out` or where they are in memory. Components are in
 * `out`, `distance` apart. x.scales has one scale for all numbers (step 0) or one for each
 * (step 1). Notes the magnitudes if `range` is not NULL. */
const uint16_t *tf_load_bf16(struct tf_operand x, ptrdiff_t stride, size_t n,
                               ptrdiff_t step, uint16_t *out, size_t distance,
                               struct tf_magnitude_range *range);

/* Packs `count` lines of x, which run along k, `ld` words apart; components are `distance`
 * words apart. */
void tf_pack_along(struct tf_workspace *work, struct tf_operand x, size_t count,
                   size_t depth, int pairs, float *out, size_t ld, size_t distance,
                   struct tf_magnitude_range *range);

/* Writes the first n numbers of a line as float32, as they are multiplied; components are
 * `distance` apart. Returns whether numbers that are split have an Inf or NaN. */
int tf_load_line(struct tf_operand x, size_t n, float *out, size_t distance);

/* Visits n numbers as float32, before any rounding: neighbors in `line` (step 0), or a
 * number of each line from `line` on (step 1). */
typedef void tf_visit_fn(const float *numbers, size_t n, size_t line, size_t step,
                         void *context);

/* Visits all numbers of `count` lines, in the order of memory, unless the call is
 * stopped. */
void tf_visit_lines(struct tf_operand x, size_t count, ptrdiff_t k, tf_visit_fn *visit,
                    void *context, struct tf_watch *watch, int asks);

/* Packs rows of A, `lda` words apart, and fills them up to a multiple of `whole` rows with
 * zeros. */
void tf_pack_a(struct tf_workspace *work, struct tf_operand a, size_t rows, size_t whole,
               size_t depth, int packing, size_t lda, struct tf_magnitude_range *range);

/* Packs columns of B in panels of `width`, where the words of one k adjoin. Returns the
 * number of words of a column. */
size_t tf_pack_b(struct tf_workspace *work, struct tf_operand b, size_t columns,
                 size_t depth, int packing, size_t width,
                 struct tf_magnitude_range *range);

enum { TF_AHEAD = 16 }; /* lines between a line and the line that is prefetched */

/* Prefetches bytes that processors do not prefetch: lines far apart are pages apart. */
static inline void tf_prefetch(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i += 64) {
        __builtin_prefetch(data + i);
    }
}

#endif
