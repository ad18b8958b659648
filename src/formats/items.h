/* Items as numbers: one, or those of an operand of a loop, chunk after chunk. */
#ifndef TF32DTYPE_FORMATS_ITEMS_H
#define TF32DTYPE_FORMATS_ITEMS_H

#include "formats/byte_tables.h"
#include "formats/kernels.h"
#include "formats/number_kinds.h"
#include "formats/scalar_ops.h"
#include "runtime/asserts.h"
#include "runtime/strided.h"

/* The number in an item of the format of an index: in a few operations on integers, on
 * which no state of the caller's floating point has a say. */
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
