/* ufunc.reduceat of sums and products: short segments one chunk at a time, each other
 * segment as a reduction of its own. */
#include "ufuncs/segments.h"

#include <math.h>

#include "runtime/fp_environment.h"
#include "runtime/strided.h"
#include "ufuncs/exact_sum.h"

/* Returns the sum or product of n numbers, as a reduction computes it that begins with the
 * first one. */
static inline double reduce_numbers(enum tf_reduction op, const float *numbers, size_t n)
{
    double value = numbers[0];
    if (op == TF_SUM && n > TF_TOGETHER) {
        return value + tf_isa->ufuncs->sum(numbers + 1, n - 1);
    }
    if (op == TF_SUM) { /* as tf_isa->ufuncs->sum adds few, without a call */
        double rest = -0.0;
        for (size_t i = 1; i < n; i++) {
            rest += numbers[i];
        }
        return value + rest;
    }
    if (n > TF_TOGETHER) {
        int64_t exponent = 0;
        tf_multiply_all(&value, &exponent, numbers + 1, n - 1);
        return tf_product_value(value, exponent);
    }
    for (size_t i = 1; i < n; i++) {
        value *= numbers[i];
    }
    return value;
}

/* Reduces segments that follow each other within a chunk. */
static void reduce_together(int format, enum tf_reduction op,
                           const struct tf_segments *segments, ptrdiff_t first,
                           size_t count, char *out, unsigned *flags)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK];
    double results[TF_CHUNK];
    uint8_t marks[TF_CHUNK];
    const size_t size = tf_summand_size(format);
    const ptrdiff_t start = segments->starts[first];
    const char *in = segments->items + start * segments->stride;
    const ptrdiff_t end = tf_segment_end(segments, first + (ptrdiff_t)count - 1);
    const size_t n = (size_t)(end - start);
    const char *items = tf_gather(in, segments->stride, size, n, buffer);
    tf_load_summands(format, items, numbers, n);
    int has_single = 0;
    for (size_t i = 0, at = 0, next; i < count; i++, at = next) {
        next = (size_t)(tf_segment_end(segments, first + (ptrdiff_t)i) - start);
        results[i] = reduce_numbers(op, numbers + at, next - at);
        has_single |= next - at == 1;
    }
    const struct tf_rounded rounding = tf_round_results(format, op, results, out, count, 0);
    *flags |= rounding.flags;
    if (rounding.beyond) {
        memset(marks, 0, count);
        const uint64_t bits = tf_first_beyond(format);
        *flags |= tf_isa->ufuncs->mark_beyond(results, bits, marks, count) ? TF_OVER : 0;
    }
    const int may_be_nan = rounding.beyond == TF_NOT_FINITE;
    for (size_t i = 0, at = 0, next; (has_single || may_be_nan) && i < count;
         i++, at = next) {
        next = (size_t)(tf_segment_end(segments, first + (ptrdiff_t)i) - start);
        if (next - at == 1) { /* copied as it is */
            memcpy(out + i * size, items + at * size, size);
        } else if (isnan(results[i]) && !tf_has_nan(numbers + at, next - at)) {
            *flags |= TF_INVALID;
        }
    }
}

int tf_reduce_segments(int format, enum tf_reduction op,
                       const struct tf_segments *segments, char *out, unsigned *flags)
{
    const ptrdiff_t size = (ptrdiff_t)tf_summand_size(format);
    const struct tf_fp saved = tf_fp_begin();
    struct tf_partials *partials = tf_partials_new(0);
    int failed = partials ? 0 : -1;
    for (ptrdiff_t i = 0; !failed && i < segments->count;) {
        const size_t together = tf_segments_together(segments, i);
        const ptrdiff_t next = i + (together ? (ptrdiff_t)together : 1);
        if (together) {
            reduce_together(format, op, segments, i, together, out + i * size, flags);
            i = next;
        }
        for (; !failed && i < next; i++) {
            const char *in = segments->items + segments->starts[i] * segments->stride;
            const ptrdiff_t n = tf_segment_end(segments, i) - segments->starts[i];
            char *const data[3] = {out + i * size, (char *)in + segments->stride,
                                   out + i * size};
            const ptrdiff_t strides[3] = {0, segments->stride, 0};
            memcpy(data[0], in, (size_t)size);
            if (n > 1) {
                failed = tf_reduce_into_pages(format, op, partials, data, strides, n - 1,
                                           flags);
            }
        }
    }
    if (partials) {
        *flags |= partials->overflowed > 0 ? TF_OVER : 0;
        tf_partials_free(partials);
    }
    tf_fp_end(saved, 0);
    return failed;
}
