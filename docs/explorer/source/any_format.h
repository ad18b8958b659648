/* The formats of the page by index: those of src/formats/formats.h, then float16, float32
 * and float64. Codes have up to 64 bits here; what is narrower is codec.h's. */
#ifndef EXPLORER_ANY_FORMAT_H
#define EXPLORER_ANY_FORMAT_H

#include "exact.h"

enum {
    ANY_FLOAT16 = TF_FORMAT_COUNT,
    ANY_FLOAT32,
    ANY_FLOAT64,
    ANY_COUNT
};

/* Facts; the functions of formats.h take all but float64's. */
struct tf_format any_format(int index);

uint64_t any_magnitude_mask(int index);
uint64_t any_sign_mask(int index);
uint64_t any_maximum(int index); /* magnitude of the greatest finite number */
uint64_t any_nan(int index);     /* 0 if there is none */
int any_has_infinity(int index);
int any_has_negative_zero(int index);

int any_is_code(int index, uint64_t code);
struct tf_value any_decode(int index, uint64_t code);
void any_exact(struct exact *x, int index, uint64_t code);

/* The number with this place in the order of all finite ones, 0 being zero (or, where
 * there is none, the least); and the place of a finite number. */
uint64_t any_at_place(int index, int64_t place);
int64_t any_place(int index, uint64_t code);

enum { ANY_INEXACT = 16 }; /* beside the flags of runtime/fp_flags.h */

/* The code of x, rounded once. Sets *flags. */
uint64_t any_encode(int index, const struct exact *x, enum tf_rounding rounding,
                    enum tf_overflow overflow, uint64_t draw, unsigned *flags);

/* The exponent of the last place of what x, not zero, is rounded to, before a carry. */
int any_last_place(int index, struct tf_value x);

#endif
