#include "extremes.h"

#include <math.h>

#include "binary.h"
#include "bytes.h"
#include "fpstatus.h"
#include "strided.h"

static float float_of_order(int32_t order)
{
    return tf_float_of((uint32_t)tf_total_order((uint32_t)order));
}

/* A block's least and greatest number, or whether a NaN is there. */
static int block_bounds(int format, const void *items, size_t n, float *least,
                        float *greatest)
{
    const struct tf_format *f = tf_format_rows[format];
    int32_t low, high;
    if (f->itemsize == 1) {
        const struct tf_byte_table *table = &tf_byte_tables[format];
        uint8_t ranks[2];
        tf_isa->byte_bounds(table->rank, items, n, &ranks[0], &ranks[1]);
        tf_isa->formats[format].unpack(&table->item[ranks[0]], least, 1);
        tf_isa->formats[format].unpack(&table->item[ranks[1]], greatest, 1);
        return isnan(*greatest);
    }
    if (f->itemsize == 2) {
        tf_isa->half_bounds(items, n, &low, &high);
    } else {
        tf_isa->bounds(items, n, &low, &high);
    }
    /* Without their unused bits numbers have the same order. */
    const uint32_t used = tf_used_bits(*f);
    *least = tf_float_of(tf_bits_of(float_of_order(low)) & used);
    *greatest = tf_float_of(tf_bits_of(float_of_order(high)) & used);
    return isnan(*least) || isnan(*greatest);
}

void tf_reduce_extreme(int format, enum tf_binary_op op, char *const data[3],
                       ptrdiff_t stride, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    TF_BUFFER(buffer);
    float numbers[TF_BLOCK], result;
    const size_t itemsize = tf_format_rows[format]->itemsize;
    memcpy(buffer, data[0], itemsize);
    tf_isa->formats[format].unpack(buffer, &result, 1);
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        const void *items =
            tf_gather(data[1] + done * stride, stride, itemsize, count, buffer);
        float least, greatest;
        if (block_bounds(format, items, count, &least, &greatest)) {
            tf_isa->formats[format].unpack(items, numbers, count);
            for (size_t i = 0; i < count; i++) {
                tf_isa->binary_f32[op](&result, &numbers[i], &result, 1);
            }
        } else {
            const float *extreme =
                op == TF_MAXIMUM || op == TF_FMAX ? &greatest : &least;
            tf_isa->binary_f32[op](&result, extreme, &result, 1);
        }
    }
    tf_isa->canonical_nans(&result, 1);
    tf_isa->formats[format].pack(&result, buffer, 1);
    memcpy(data[2], buffer, itemsize);
    tf_fp_end(saved, 0);
}

/* Numbers in the order of integers, upwards or downwards, where NaN is beyond them all: at
 * the end that a running maximum stays at, or at the other, where it is passed over. */
struct order {
    int32_t flip, nan;
};

static int32_t order_of(struct order order, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? order.nan : tf_total_order(bits) ^ order.flip;
}

void tf_accumulate_extreme(int format, enum tf_binary_op op, char *const data[3],
                           const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct order order = {
        .flip = op == TF_MAXIMUM || op == TF_FMAX ? 0 : -1,
        .nan = op == TF_MAXIMUM || op == TF_MINIMUM ? INT32_MAX : INT32_MIN,
    };
    TF_BUFFER(buffer);
    float numbers[TF_BLOCK], first;
    const struct tf_conversions *conversions = &tf_isa->formats[format];
    const size_t itemsize = tf_format_rows[format]->itemsize;
    memcpy(buffer, data[0], itemsize);
    conversions->unpack(buffer, &first, 1);
    int32_t greatest = order_of(order, first);
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        char *out = data[2] + done * strides[2];
        conversions->unpack(tf_gather(data[1] + done * strides[1], strides[1], itemsize,
                                      count, buffer),
                            numbers, count);
        for (size_t i = 0; i < count; i++) {
            const int32_t here = order_of(order, numbers[i]);
            greatest = here > greatest ? here : greatest;
            numbers[i] =
                greatest == order.nan ? NAN : float_of_order(greatest ^ order.flip);
        }
        void *items = tf_target(out, strides[2], itemsize, buffer);
        conversions->pack(numbers, items, count);
        tf_scatter(items, out, strides[2], itemsize, count);
    }
    tf_fp_end(saved, 0);
}

ptrdiff_t tf_arg_extreme(int format, int greatest, const char *items, ptrdiff_t n)
{
    TF_BUFFER(buffer);
    float numbers[TF_BLOCK], best = 0;
    const ptrdiff_t itemsize = tf_format_rows[format]->itemsize;
    ptrdiff_t found = -1;
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        const void *block = tf_gather(items + done * itemsize, itemsize,
                                      (size_t)itemsize, count, buffer);
        float low, high;
        const int nan = block_bounds(format, block, count, &low, &high);
        const float extreme = greatest ? high : low;
        if (!nan && found >= 0 && !(greatest ? extreme > best : extreme < best)) {
            continue;
        }
        tf_isa->formats[format].unpack(block, numbers, count);
        size_t i = 0;
        while (i + 1 < count && (nan ? !isnan(numbers[i]) : numbers[i] != extreme)) {
            i++;
        }
        found = done + (ptrdiff_t)i;
        best = extreme;
        if (nan) {
            break;
        }
    }
    return found;
}
