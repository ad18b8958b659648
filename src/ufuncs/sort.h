/* Sorting items of any format, as NumPy sorts float16: ascending or descending,
 * -0 equal to +0, every NaN last whatever its sign and payload. Unused bits of an
 * item do not matter for the order; items are moved, never changed.
 */
#ifndef TF32DTYPE_UFUNCS_SORT_H
#define TF32DTYPE_UFUNCS_SORT_H

#include <stddef.h>

#include "formats/formats.h"

/* A number that orders codes: less, equal or greater as the values are, with
 * all NaNs equal and greatest. Below 2^width. */
static inline uint32_t tf_order_key(struct tf_format f, uint32_t code)
{
    const uint32_t mask = tf_magnitude_mask(f);
    const uint32_t zero = f.is_signed ? mask : 0;
    const uint32_t magnitude = code & mask;
    const uint32_t key = code & tf_sign_mask(f) ? zero - magnitude : zero + magnitude;
    return tf_is_nan(f, code) ? mask + tf_sign_mask(f) : key;
}

/* Sort `count` contiguous, aligned items in place; equal ones keep their order
 * if `stable`. Returns 0, or -1 where memory cannot be had: items then are as
 * they were. */
int tf_sort(int format, void *items, ptrdiff_t count, int stable,
            int descending);

/* What sorts whole numbers faster than anything here: those of NumPy, or NULL. It takes
 * the numbers, their count and NULL. */
typedef int tf_integer_sort(void *numbers, ptrdiff_t count, void *array);
void tf_sort_integers_by(tf_integer_sort *int16, tf_integer_sort *int32,
                         tf_integer_sort *int64);

/* Write to `index` the order of the items: items[index[0]] comes first, equal
 * ones in their order. `index` is not read. Returns 0, or -1 where memory
 * cannot be had. */
int tf_argsort(int format, const void *items, ptrdiff_t *index, ptrdiff_t count,
               int descending);

/* Sort indices, each of one of the items, by these, upwards; equal ones keep their order.
 * Returns 0, or -1 where memory cannot be had: indices then are as they were. */
int tf_argsort_next(int format, const void *items, ptrdiff_t *index, ptrdiff_t count);

#endif
