/* Items as numbers: of one item, or of an operand of a loop, chunk after chunk. */
#ifndef TF32DTYPE_FORMATS_ITEMS_H
#define TF32DTYPE_FORMATS_ITEMS_H

#include "formats/byte_tables.h"
#include "formats/kernels.h"
#include "formats/number_kinds.h"
#include "formats/scalar_ops.h"
#include "runtime/asserts.h"
#include "runtime/strided.h"

/* Returns the number in an item of format f, whose index is `format`. It uses only
 * integer operations, on which the caller's rounding mode, FTZ and DAZ have no effect. */
TF_INLINE double tf_double_of_item(struct tf_format f, int format, const char *item)
{
    uint32_t bits; /* of a float32 */
    if (f.itemsize == 1) {
        bits = tf_byte_tables[format].bits[*(const uint8_t *)item];
    } else {
        bits = tf_load_code(f, item) << (32 - f.width);
    }
    const uint64_t magnitude = bits & TF_MAGNITUDE_BITS;
    const uint64_t sign = (uint64_t)(bits >> 31) << 63;
    uint64_t wide = sign | (magnitude + ((uint64_t)(1023 - 127) << 23)) << 29;
    if (magnitude == 0) {
        wide = sign;
    } else if (magnitude >= TF_INF_BITS) {
        const int nan = magnitude > TF_INF_BITS;
        wide = sign | (uint64_t)(nan ? 0x7FF8 : 0x7FF0) << 48;
    } else if (magnitude < UINT32_C(0x00800000)) {
        return tf_double_from_code(f, tf_load_code(f, item));
    }
    double x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

struct loop_operand {
    const char *data;
    ptrdiff_t stride;
    int repeats;                /* stride 0: its item is gathered and unpacked once */
    int has_items, has_numbers; /* whether that is done */
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

/* Returns the next n items, contiguous. */
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

/* Returns the float32 numbers of n items of a format, or of float32. */
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

/* Returns the next n numbers. */
static inline const float *operand_next(struct loop_operand *operand, int kind, size_t n)
{
    const size_t itemsize =
        kind == TF_FLOAT32 ? sizeof(float) : tf_format_rows[kind]->itemsize;
    return operand_numbers(operand, kind, operand_items(operand, itemsize, n), n);
}

/* Returns where a loop writes n results: in `buffer` if `out` is strided or unaligned, or
 * overlaps items of x or y. They have `itemsize` bytes, and results not more. */
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
