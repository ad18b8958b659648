/* Operands of products on their way to packed words: kernels/micro_kernel.c says what
 * those are. */
#ifndef TF32DTYPE_MATMUL_PACK_H
#define TF32DTYPE_MATMUL_PACK_H

#include <stddef.h>

#include "matmul/kernels.h"
#include "matmul/operand.h"
#include "matmul/workspace.h"
#include "runtime/stops.h"

/* Whether numbers of a line lie closer together than those of a k. */
int tf_runs_along(struct tf_operand x);

/* Packed words of so many k, each as an enum tf_packing says. */
size_t tf_packed_words(size_t depth, int packing);

/* From row to row of A. */
static inline size_t tf_lda_of(size_t words)
{
    return words < TF_KC ? words : words + TF_GAP;
}

/* Numbers of a kind as float32: a format's exactly, float64 rounded to nearest. Where
 * they lie in memory, or in the buffer. */
const float *tf_load_floats(int kind, const char *data, ptrdiff_t stride, size_t n,
                            float *buffer);

/* The same of whole lines of up to TF_CHUNK numbers, one after the other in `out`. */
void tf_load_lines(struct tf_operand x, size_t k, size_t count, float *out);

/* Numbers of a line as bfloat16, in every part, `distance` apart: in `out`, or one part
 * where it lies in memory. `scales` are one for all numbers (step 0) or one for each
 * (1). What magnitudes they have is noted if `range` is not NULL. */
const uint16_t *tf_load_bf16(struct tf_operand x, ptrdiff_t stride, size_t n,
                               ptrdiff_t step, uint16_t *out, size_t distance,
                               struct tf_magnitude_range *range);

/* `count` lines of x that run along k, `ld` words apart; parts `distance` apart. */
void tf_pack_along(struct tf_workspace *work, struct tf_operand x, size_t count,
                   size_t depth, int pairs, float *out, size_t ld, size_t distance,
                   struct tf_magnitude_range *range);

/* A whole line as float32, as it is multiplied: part after part, `distance` apart.
 * Whether there is an Inf or NaN among numbers that are split. */
int tf_load_line(struct tf_operand x, size_t n, float *out, size_t distance);

/* Numbers of lines, as they are stored: all of `line` (step 0), or one of each line
 * from it on (1). */
typedef void tf_visit_fn(const float *numbers, size_t n, size_t line, size_t step,
                         void *context);

/* All numbers of `count` lines, in the order of memory, unless the call is stopped. */
void tf_visit_lines(struct tf_operand x, size_t count, ptrdiff_t k, tf_visit_fn *visit,
                    void *context, struct tf_watch *watch, int asks);

/* An MC panel of A, line after line, `lda` words apart, filled up to a multiple of
 * `whole` lines with zeros; and B in panels of `width`: in each, the words of one k side by
 * side. Returns the number of words of a line. */
void tf_pack_a(struct tf_workspace *work, struct tf_operand a, size_t rows, size_t whole,
               size_t depth, int packing, size_t lda, struct tf_magnitude_range *range);
size_t tf_pack_b(struct tf_workspace *work, struct tf_operand b, size_t columns,
                 size_t depth, int packing, size_t width,
                 struct tf_magnitude_range *range);

/* Bytes that will be read soon, but by no order that a processor foresees: lines far
 * apart are pages apart. */
enum { TF_AHEAD = 16 };

static inline void tf_prefetch(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i += 64) {
        __builtin_prefetch(data + i);
    }
}

#endif
