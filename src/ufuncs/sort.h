/* Sorts items of any format as NumPy sorts float16: ascending or descending, -0 equal to
 * +0, every NaN last whatever its sign and payload. Unused bits of an item do not matter
 * for the order. Items are moved, never changed. */
#ifndef TF32DTYPE_UFUNCS_SORT_H
#define TF32DTYPE_UFUNCS_SORT_H

#include <stddef.h>

#include "formats/formats.h"

/* Returns a number below 2^width that orders codes as their values are ordered, with all
 * NaNs equal and largest. */
static inline uint32_t tf_order_key(struct tf_format f, uint32_t code)
{
    const uint32_t mask = tf_magnitude_mask(f);
    const uint32_t zero = f.is_signed ? mask : 0;
    const uint32_t magnitude = code & mask;
    const uint32_t key = code & tf_sign_mask(f) ? zero - magnitude : zero + magnitude;
    return tf_is_nan(f, code) ? mask + tf_sign_mask(f) : key;
}

/* Sorts `count` contiguous, aligned items in place. Equal items keep their order if
 * `stable`. Returns 0, or -1 with unsorted items if memory is short. */
int tf_sort(int format, void *items, ptrdiff_t count, int stable,
            int descending);

/* A function that sorts integers faster than this file, given the integers, their count and
 * NULL: NumPy's, or NULL if there is none. */
typedef int tf_integer_sort(void *numbers, ptrdiff_t count, void *array);
void tf_sort_integers_by(tf_integer_sort *int16, tf_integer_sort *int32,
                         tf_integer_sort *int64);

/* Writes to `index`, which is not read, the order of the items: items[index[0]] comes
 * first, equal items in their order. Returns 0, or -1 if memory is short. */
int tf_argsort(int format, const void *items, ptrdiff_t *index, ptrdiff_t count,
               int descending);

/* Sorts indices, each of one of the items, by the items in ascending order. Equal ones keep
 * their order. Returns 0, or -1 with unchanged indices if memory is short. */
int tf_argsort_next(int format, const void *items, ptrdiff_t *index, ptrdiff_t count);

#endif
