/* maximum, minimum, fmax and fmin: reductions, running results, segments, indices. */
#include "ufuncs/minmax.h"

#include <math.h>

#include "formats/fast_codec.h"
#include "formats/items.h"
#include "runtime/fp_environment.h"
#include "ufuncs/segments.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

static float float_of_order(int32_t order)
{
    return tf_float_of((uint32_t)tf_total_order((uint32_t)order));
}

struct extremes {
    float least, greatest;
};

/* Returns the bounds of a chunk's numbers, with NaN at either end of the order. If
 * `without_nans`, NaN is ignored; a chunk of nothing else has a NaN for a bound. */
static struct extremes chunk_extremes(int format, const void *items, size_t n,
                                      int without_nans)
{
    const struct tf_format *f = tf_format_rows[format];
    struct extremes found;
    int32_t low, high;
    if (f->itemsize == 1) {
        const struct tf_byte_table *table = &tf_byte_tables[format];
        uint8_t least, greatest;
        tf_isa->ufuncs->byte_bounds(table->order, items, n, without_nans, &least, &greatest);
        return (struct extremes){
            tf_float_of(table->bits[tf_byte_of_rank(table->order, least)]),
            tf_float_of(table->bits[tf_byte_of_rank(table->order, greatest)]),
        };
    }
    const uint32_t used = tf_used_bits(*f);
    if (f->itemsize == 2) {
        tf_isa->ufuncs->bf16_bounds(items, n, without_nans, &low, &high);
    } else { /* Inf with unused bits is Inf */
        const uint32_t infinity = TF_INF_BITS | ~used;
        tf_isa->formats->bounds(items, n, without_nans ? (int32_t)infinity : INT32_MAX, &low,
                       &high);
    }
    /* Without unused bits numbers keep their order, or become equal. */
    found.least = tf_float_of(tf_bits_of(float_of_order(low)) & used);
    found.greatest = tf_float_of(tf_bits_of(float_of_order(high)) & used);
    return found;
}

void tf_reduce_extreme(int format, enum tf_binary_op op, char *const data[3],
                       ptrdiff_t stride, ptrdiff_t n)
{
    enum { LONG = 1 << 14 };
    const struct tf_fp saved = tf_fp_begin();
    TF_BUFFER(buffer);
    const struct tf_format f = *tf_format_rows[format];
    const size_t itemsize = f.itemsize;
    const int is_greatest = op == TF_MAXIMUM || op == TF_FMAX;
    const int without_nans = op == TF_FMAX || op == TF_FMIN;
    float result = (float)tf_double_of_item(f, format, data[0]);
    /* Contiguous items need no buffer: more are taken at a time. */
    const int is_in_place = tf_is_contiguous(data[1], stride, itemsize);
    const ptrdiff_t most = is_in_place ? LONG : TF_CHUNK;
    for (ptrdiff_t done = 0; done < n; done += most) {
        if (isnan(result) && !without_nans) {
            break;
        }
        const size_t count = tf_min_size(n - done, most);
        const void *items =
            tf_gather(data[1] + done * stride, stride, itemsize, count, buffer);
        const struct extremes found =
            chunk_extremes(format, items, count, without_nans);
        float extreme = is_greatest ? found.greatest : found.least;
        if (isnan(found.least) || isnan(found.greatest)) {
            extreme = without_nans ? extreme : NAN;
        }
        tf_isa->ufuncs->binary_f32[op](&result, &extreme, &result, 1);
    }
    const uint32_t bits = isnan(result) ? TF_QUIET_NAN_BITS : tf_bits_of(result);
    tf_store_code(f, data[2], tf_code_of_single(f, bits));
    tf_fp_end(saved, 0);
}

/* Maps numbers to integers, ascending or descending (`flip`). NaN is above all, where a
 * running maximum stays, or below all, where it is ignored. */
struct order {
    int32_t flip, nan;
};

static struct order order_for(enum tf_binary_op op)
{
    return (struct order){
        .flip = op == TF_MAXIMUM || op == TF_FMAX ? 0 : -1,
        .nan = op == TF_MAXIMUM || op == TF_MINIMUM ? INT32_MAX : INT32_MIN,
    };
}

static int32_t order_of(struct order order, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? order.nan : tf_total_order(bits) ^ order.flip;
}

static float number_at(struct order order, int32_t place)
{
    return place == order.nan ? NAN : float_of_order(place ^ order.flip);
}

/* For items of a byte: their positions in the order, and the item at each position. */
struct byte_order {
    uint8_t places[256], items[256];
};

static void order_bytes(int format, struct order order, struct byte_order *made)
{
    const struct tf_byte_table *table = &tf_byte_tables[format];
    const int nan_first = order.nan == INT32_MIN, last = UINT8_MAX;
    const float nan = NAN;
    for (int item = 0; item < 256; item++) {
        const uint8_t rank = tf_rank_of_byte(table->order, (uint8_t)item);
        const int place = order.flip ? last - 1 - rank : rank;
        made->places[item] = (uint8_t)(rank == last ? (nan_first ? 0 : last)
                                                    : place + nan_first);
        made->items[made->places[item]] = tf_byte_of_rank(table->order, rank);
    }
    tf_isa->formats->conversions[format].from_float32(
        &nan, &made->items[nan_first ? 0 : last], 1);
}

static void accumulate_bytes(int format, struct order order, char *const data[3],
                             const ptrdiff_t strides[3], ptrdiff_t n)
{
    struct byte_order bytes;
    order_bytes(format, order, &bytes);
    const uint8_t *in = (const uint8_t *)data[1];
    uint8_t *out = (uint8_t *)data[2];
    uint8_t greatest = bytes.places[*(const uint8_t *)data[0]];
    for (ptrdiff_t i = 0; i < n; i++, in += strides[1], out += strides[2]) {
        const uint8_t here = bytes.places[*in];
        greatest = here > greatest ? here : greatest;
        *out = bytes.items[greatest];
    }
}

void tf_accumulate_extreme(int format, enum tf_binary_op op, char *const data[3],
                           const ptrdiff_t strides[3], ptrdiff_t n)
{
    enum { WORTH_AN_ORDER = 128 };
    const struct tf_fp saved = tf_fp_begin();
    const struct order order = order_for(op);
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK], first;
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    const size_t itemsize = tf_format_rows[format]->itemsize;
    if (itemsize == 1 && n >= WORTH_AN_ORDER) {
        accumulate_bytes(format, order, data, strides, n);
        tf_fp_end(saved, 0);
        return;
    }
    memcpy(buffer, data[0], itemsize);
    conversions->to_float32(buffer, &first, 1);
    int32_t greatest = order_of(order, first);
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        char *out = data[2] + done * strides[2];
        conversions->to_float32(tf_gather(data[1] + done * strides[1], strides[1], itemsize,
                                      count, buffer),
                            numbers, count);
        for (size_t i = 0; i < count; i++) {
            const int32_t here = order_of(order, numbers[i]);
            greatest = here > greatest ? here : greatest;
            numbers[i] = number_at(order, greatest);
        }
        void *items = tf_target(out, strides[2], itemsize, buffer);
        conversions->from_float32(numbers, items, count);
        tf_scatter(items, out, strides[2], itemsize, count);
    }
    tf_fp_end(saved, 0);
}

/* Reduces segments that follow each other within a chunk. */
static void extremes_together(int format, struct order order,
                              const struct tf_segments *segments, ptrdiff_t first,
                              size_t count, char *out)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK], results[TF_CHUNK];
    int32_t places[TF_CHUNK];
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const ptrdiff_t start = segments->starts[first];
    const ptrdiff_t end = tf_segment_end(segments, first + (ptrdiff_t)count - 1);
    const size_t n = (size_t)(end - start);
    const char *items = tf_gather(segments->items + start * segments->stride,
                                  segments->stride, itemsize, n, buffer);
    tf_isa->formats->conversions[format].to_float32(items, numbers, n);
    for (size_t i = 0; i < n; i++) {
        places[i] = order_of(order, numbers[i]);
    }
    for (size_t i = 0, at = 0; i < count; i++) {
        const ptrdiff_t next = tf_segment_end(segments, first + (ptrdiff_t)i) - start;
        int32_t greatest = places[at++];
        for (; (ptrdiff_t)at < next; at++) {
            greatest = places[at] > greatest ? places[at] : greatest;
        }
        results[i] = number_at(order, greatest);
    }
    tf_isa->formats->conversions[format].from_float32(results, out, count);
    for (size_t i = 0, at = 0; i < count; i++) { /* a single item is copied as it is */
        const ptrdiff_t next = tf_segment_end(segments, first + (ptrdiff_t)i) - start;
        if (next == (ptrdiff_t)at + 1) {
            memcpy(out + i * itemsize, items + at * itemsize, itemsize);
        }
        at = (size_t)next;
    }
}

void tf_extreme_segments(int format, enum tf_binary_op op,
                         const struct tf_segments *segments, char *out)
{
    const struct tf_fp saved = tf_fp_begin();
    const size_t itemsize = tf_format_rows[format]->itemsize;
    for (ptrdiff_t i = 0; i < segments->count;) {
        const size_t together = tf_segments_together(segments, i);
        if (together) {
            extremes_together(format, order_for(op), segments, i, together, out);
        } else {
            const ptrdiff_t stride = segments->stride;
            const char *in = segments->items + segments->starts[i] * stride;
            char *const data[3] = {out, (char *)in + stride, out};
            memcpy(out, in, itemsize);
            tf_reduce_extreme(format, op, data, stride,
                              tf_segment_end(segments, i) - segments->starts[i] - 1);
        }
        i += together ? (ptrdiff_t)together : 1;
        out += (together ? together : 1) * itemsize;
    }
    tf_fp_end(saved, 0);
}

/* Returns the index of the first number that equals `wanted`, or of the first NaN if that
 * is NaN; n if there is none. */
static size_t first_place(const float *numbers, size_t n, float wanted)
{
    enum { TOGETHER = 32 };
    const int nan = isnan(wanted);
    size_t i = 0;
    for (; i + TOGETHER <= n; i += TOGETHER) {
        int32_t found = 0;
        for (size_t j = 0; j < TOGETHER; j++) {
            const float x = numbers[i + j];
            found |= nan ? -(x != x) : -(x == wanted);
        }
        if (found) {
            break;
        }
    }
    while (i < n && (nan ? !isnan(numbers[i]) : numbers[i] != wanted)) {
        i++;
    }
    return i;
}

enum { FEW = 16 };

/* Returns the index of the extreme of a few items, one by one: bounds take longer. */
static ptrdiff_t place_among_few(int format, int greatest, const char *items, size_t n)
{
    float numbers[FEW];
    size_t found = 0;
    if (tf_format_rows[format]->itemsize == 1 && n < FEW) { /* fewer than a vector */
        for (size_t i = 0; i < n; i++) {
            numbers[i] = tf_float_of(tf_byte_tables[format].bits[(uint8_t)items[i]]);
        }
    } else {
        tf_isa->formats->conversions[format].to_float32(items, numbers, n);
    }
    for (size_t i = 1; i < n && !isnan(numbers[found]); i++) {
        const float x = numbers[i], best = numbers[found];
        found = isnan(x) || (greatest ? x > best : x < best) ? i : found;
    }
    return (ptrdiff_t)found;
}

ptrdiff_t tf_arg_extreme(int format, int greatest, const char *items, ptrdiff_t n)
{
    if (n <= FEW && tf_is_contiguous(items, (ptrdiff_t)tf_format_rows[format]->itemsize,
                                     tf_format_rows[format]->itemsize)) {
        return place_among_few(format, greatest, items, (size_t)n);
    }
    enum { STRIP = 128 }; /* numbers converted and compared at a time */
    enum { LONG = 4 * TF_CHUNK };
    TF_BUFFER(buffer);
    float numbers[STRIP], best = 0;
    const ptrdiff_t itemsize = tf_format_rows[format]->itemsize;
    const int is_in_place = tf_is_contiguous(items, itemsize, (size_t)itemsize);
    ptrdiff_t found = -1;
    size_t count;
    for (ptrdiff_t done = 0; done < n; done += (ptrdiff_t)count) {
        /* The first chunk is short, as it often has a NaN if any chunk does. */
        const ptrdiff_t most = is_in_place && done > 0 ? LONG : TF_CHUNK;
        count = tf_min_size(n - done, most);
        const char *chunk = tf_gather(items + done * itemsize, itemsize,
                                      (size_t)itemsize, count, buffer);
        const struct extremes ends = chunk_extremes(format, chunk, count, 0);
        const int nan = isnan(ends.least) || isnan(ends.greatest);
        const float extreme = nan ? NAN : greatest ? ends.greatest : ends.least;
        if (!nan && found >= 0 && !(greatest ? extreme > best : extreme < best)) {
            continue;
        }
        size_t i = 0;
        for (size_t strip, at; i < count; i += strip) {
            strip = tf_min_size(count - i, STRIP);
            tf_isa->formats->conversions[format].to_float32(chunk + i * (size_t)itemsize, numbers,
                                           strip);
            at = first_place(numbers, strip, extreme);
            if (at < strip) {
                i += at;
                break;
            }
        }
        found = done + (ptrdiff_t)i;
        best = extreme;
        if (nan) {
            break;
        }
    }
    return found;
}
