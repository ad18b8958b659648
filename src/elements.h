/* One element at a time: what is not worth a loop of its own. */
#ifndef TF32DTYPE_ELEMENTS_H
#define TF32DTYPE_ELEMENTS_H

#include <stddef.h>
#include <string.h>

#include "codec.h"

/* The item at a place in a contiguous, aligned array. */
static inline uint32_t tf_item_at(struct tf_format f, const void *items, size_t i)
{
    switch (f.itemsize) {
    case 4: return ((const uint32_t *)items)[i];
    case 2: return ((const uint16_t *)items)[i];
    default: return ((const uint8_t *)items)[i];
    }
}

static inline void tf_item_put(struct tf_format f, void *items, size_t i, uint32_t item)
{
    switch (f.itemsize) {
    case 4: ((uint32_t *)items)[i] = item; break;
    case 2: ((uint16_t *)items)[i] = (uint16_t)item; break;
    default: ((uint8_t *)items)[i] = (uint8_t)item;
    }
}

/* The code in an item anywhere in memory, and back. */
static inline uint32_t tf_load_code(struct tf_format f, const char *item)
{
    uint32_t bits = 0;
    if (f.itemsize == 4) {
        memcpy(&bits, item, 4);
    } else if (f.itemsize == 2) {
        uint16_t half;
        memcpy(&half, item, 2);
        bits = half;
    } else {
        bits = *(const uint8_t *)item;
    }
    return bits >> f.shift & (tf_magnitude_mask(f) | tf_sign_mask(f));
}
void tf_store_code(struct tf_format f, char *item, uint32_t code);

double tf_double_from_code(struct tf_format f, uint32_t code);
/* One rounding to nearest, ties to even. */
uint32_t tf_code_from_double(struct tf_format f, double x, unsigned *flags);

/* x, or the number of the format, or halfway between two, that lies within 16
 * units of double's last place from it. */
double tf_snapped(struct tf_format f, double x);

/* A code with another's sign. */
uint32_t tf_copysign(struct tf_format f, uint32_t code, uint32_t sign);

/* C's nextafter, and the distance to the next number toward +Inf: as NumPy
 * has them for float16. */
uint32_t tf_nextafter(struct tf_format f, uint32_t from, uint32_t toward,
                      unsigned *flags);
uint32_t tf_spacing(struct tf_format f, uint32_t code, unsigned *flags);

/* Operations on codes, or with integers, on three strided arrays. */
enum tf_other_op {
    TF_NEXTAFTER, /* T, T -> T */
    TF_MODF,      /* T -> T, T */
    TF_FREXP,     /* T -> T, int32 */
    TF_LDEXP,     /* T, int64 -> T */
    TF_LDEXP_INT, /* T, int32 -> T */
    TF_OTHER_COUNT
};

void tf_other(int format, enum tf_other_op op, char *const *data,
              const ptrdiff_t *strides, ptrdiff_t n);

#endif
