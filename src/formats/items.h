/* One operand of a loop: its items as float32, chunk after chunk. */
#ifndef TF32DTYPE_FORMATS_ITEMS_H
#define TF32DTYPE_FORMATS_ITEMS_H

#include "formats/number_kinds.h"
#include "formats/kernels.h"
#include "runtime/asserts.h"
#include "runtime/strided.h"

struct loop_operand {
    const char *data;
    ptrdiff_t stride;
    int repeats;                /* one item: gathered and unpacked once */
    int has_items, has_numbers; /* and that has been done */
    _Alignas(64) float numbers[TF_CHUNK];
    _Alignas(64) unsigned char items[TF_CHUNK * sizeof(float)];
};

static inline void operand_begin(struct loop_operand *operand, const char *data,
                                 ptrdiff_t stride, int repeats)
{
    operand->data = data;
    operand->stride = stride;
    operand->repeats = repeats && stride == 0;
    operand->has_items = operand->has_numbers = 0;
}

/* The next n items, one after the other. */
static inline const void *operand_items(struct loop_operand *operand, size_t itemsize,
                                        size_t n)
{
    TF_ASSERT(n <= TF_CHUNK && itemsize <= sizeof(float));
    if (operand->has_items) {
        return operand->items;
    }
    const void *items =
        tf_gather(operand->data, operand->stride, itemsize, n, operand->items);
    operand->data += (ptrdiff_t)n * operand->stride;
    operand->has_items = operand->repeats;
    return items;
}

/* The numbers of a format, or of float32, that they are. */
static inline const float *operand_numbers(struct loop_operand *operand, int kind,
                                           const void *items, size_t n)
{
    if (operand->has_numbers) {
        return operand->numbers;
    }
    if (kind == TF_FLOAT32) {
        memcpy(operand->numbers, items, n * sizeof(float));
    } else {
        tf_isa->formats->conversions[kind].to_float32(items, operand->numbers, n);
    }
    operand->has_numbers = operand->repeats;
    return operand->numbers;
}

/* The next n numbers. */
static inline const float *operand_next(struct loop_operand *operand, int kind, size_t n)
{
    const size_t itemsize =
        kind == TF_FLOAT32 ? sizeof(float) : tf_format_rows[kind]->itemsize;
    return operand_numbers(operand, kind, operand_items(operand, itemsize, n), n);
}

/* Where n results go first: the buffer if they lie apart, or where items of x or y do,
 * which are as wide as `itemsize` says, and the results not wider. */
static inline void *operand_target(char *out, ptrdiff_t stride, size_t out_size,
                                   const void *x, const void *y, size_t itemsize,
                                   size_t n, void *buffer)
{
    void *target = tf_target(out, stride, out_size, buffer);
    const int overlaps = tf_overlap(x, target, n * itemsize) ||
                         tf_overlap(y, target, n * itemsize);
    return overlaps ? buffer : target;
}

#endif
