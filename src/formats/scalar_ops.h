/* Operations on one element at a time, which need no loops of their own. */
#ifndef TF32DTYPE_FORMATS_SCALAR_OPS_H
#define TF32DTYPE_FORMATS_SCALAR_OPS_H

#include <stddef.h>
#include <string.h>

#include "formats/codec.h"
#include "formats/float_bits.h"

/* Returns item i of a contiguous, aligned array. */
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

/* Returns the code in an item anywhere in memory; tf_store_code() writes it. */
static inline uint32_t tf_load_code(struct tf_format f, const char *item)
{
    uint32_t bits = 0;
    if (f.itemsize == 4) {
        memcpy(&bits, item, 4);
    } else if (f.itemsize == 2) {
        uint16_t two;
        memcpy(&two, item, 2);
        bits = two;
    } else {
        bits = *(const uint8_t *)item;
    }
    return bits >> f.shift & (tf_magnitude_mask(f) | tf_sign_mask(f));
}

TF_INLINE void tf_store_code(struct tf_format f, char *item, uint32_t code)
{
    const uint32_t bits = code << f.shift;
    if (f.itemsize == 4) {
        memcpy(item, &bits, 4);
    } else if (f.itemsize == 2) {
        const uint16_t two = (uint16_t)bits;
        memcpy(item, &two, 2);
    } else {
        *(uint8_t *)item = (uint8_t)bits;
    }
}

double tf_double_from_code(struct tf_format f, uint32_t code);
/* Rounds once to nearest, ties to even; or-es the exceptions into *flags. */
uint32_t tf_code_from_double(struct tf_format f, double x, unsigned *flags);

/* Rounds like tf_code_from_double(), in a few operations, and returns 1. Returns 0 for
 * e8m0, zero, Inf, NaN, overflow, and numbers far below the range. */
TF_INLINE int tf_round_usual(struct tf_format f, double x, uint32_t *code,
                             unsigned *flags)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7FF);
    /* 1. The significand, and its bits to truncate: more below the normal range. */
    const int below = 1023 + 1 - f.bias - field;
    const int is_tiny = below > 0;
    const int cut = 52 - f.mantissa_bits + (is_tiny ? below : 0);
    if (field == 0 || cut > 62 || f.specials == TF_EXPONENT_ONLY) {
        return 0;
    }
    const uint64_t one = UINT64_C(1);
    const uint64_t significand = (bits & ((one << 52) - 1)) | one << 52;
    const uint64_t rest = significand & ((one << cut) - 1);
    /* 2. Add half a unit less one, plus the last kept bit. A carry moves into the
     *    exponent, and so does the leading bit. */
    const uint64_t rounded =
        (significand + (one << (cut - 1)) - 1 + (significand >> cut & 1)) >> cut;
    const uint64_t magnitude =
        rounded + (is_tiny ? 0 : (uint64_t)-below << f.mantissa_bits);
    if (magnitude > tf_maximum_magnitude(f)) {
        return 0;
    }
    *flags |= is_tiny && rest != 0 ? TF_UNDER : 0;
    const uint32_t sign = bits >> 63 ? tf_sign_mask(f) : 0;
    const int is_signless = magnitude == 0 && f.specials == TF_FNUZ;
    *code = (uint32_t)magnitude | (is_signless ? 0 : sign);
    return 1;
}

/* Returns the number of the format, or the middle of two, that is within 16 float64 ulps
 * of x; if there is none, returns x. */
double tf_snapped(struct tf_format f, double x);

/* Returns `code` with the sign of `sign`. */
uint32_t tf_copysign(struct tf_format f, uint32_t code, uint32_t sign);

/* C's nextafter, and the distance to the next number toward +Inf, as NumPy defines them
 * for float16. */
uint32_t tf_nextafter(struct tf_format f, uint32_t from, uint32_t toward,
                      unsigned *flags);
uint32_t tf_spacing(struct tf_format f, uint32_t code, unsigned *flags);

#endif
