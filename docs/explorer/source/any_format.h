/* The formats of the page by index: those of src/formats/formats.h, then float16,
 * float32 and float64. Codes here have up to 64 bits; src/formats/codec.h handles all
 * but float64. */
#ifndef EXPLORER_ANY_FORMAT_H
#define EXPLORER_ANY_FORMAT_H

#include "exact.h"

enum {
    ANY_FLOAT16 = TF_FORMAT_COUNT,
    ANY_FLOAT32,
    ANY_FLOAT64,
    ANY_COUNT
};

/* Properties of formats; the functions of formats.h take those of all except float64. */
struct tf_format any_format(int index);

uint64_t any_magnitude_mask(int index);
uint64_t any_sign_mask(int index);
uint64_t any_maximum(int index); /* magnitude bits of the largest finite number */
uint64_t any_nan(int index);     /* 0 if the format has no NaN */
int any_has_infinity(int index);
int any_has_negative_zero(int index);

int any_is_code(int index, uint64_t code);
struct tf_value any_decode(int index, uint64_t code);
void any_exact(struct exact *x, int index, uint64_t code);

/* any_at_place returns the code of the number at a position in the order of all finite
 * numbers: 0 for zero, or for the smallest number of a format without zero. any_place
 * returns the position of a finite number. */
uint64_t any_at_place(int index, int64_t place);
int64_t any_place(int index, uint64_t code);

enum { ANY_INEXACT = 16 }; /* a flag in addition to those of runtime/fp_flags.h */

/* Returns the code of x, rounded once. Sets *flags. */
uint64_t any_encode(int index, const struct exact *x, enum tf_rounding rounding,
                    enum tf_overflow overflow, uint64_t draw, unsigned *flags);

/* Returns the exponent of the last bit that the format keeps of x, which is not zero,
 * before a carry. */
int any_last_place(int index, struct tf_value x);

#endif
