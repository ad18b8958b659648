/* Sums and products as if exact: float64 results, the slots that keep them between the
 * calls of a ufunc, and their one rounding. reduce.h says what calls are made of it.
 *
 * `format` is a format's index or TF_REDUCE_FLOAT32. */
#ifndef TF32DTYPE_UFUNCS_EXACT_SUM_H
#define TF32DTYPE_UFUNCS_EXACT_SUM_H

#include <math.h>
#include <string.h>

#include "ufuncs/pages.h"

/* float32 in place of a format's index: for sums left unrounded. */
enum { TF_REDUCE_FLOAT32 = -1 };

/* Returns whether sums begin with NaN, as those of e8m0, which has no zero. That NaN
 * counts as nothing, and stays if nothing is added. */
int tf_sum_begins_with_nan(int format);

/* Returns the bytes of an item. */
static inline size_t tf_summand_size(int format)
{
    return format == TF_REDUCE_FLOAT32 ? sizeof(float)
                                       : tf_format_rows[format]->itemsize;
}

/* Writes n items as float32, exactly. */
static inline void tf_load_summands(int format, const void *items, float *out, size_t n)
{
    if (format == TF_REDUCE_FLOAT32) {
        memcpy(out, items, n * sizeof *out);
    } else {
        tf_isa->formats->conversions[format].to_float32(items, out, n);
    }
}

/* Returns the bits of the first float64 magnitude that rounds beyond the range; of Inf
 * where that is no overflow but an invalid operation. */
uint64_t tf_first_beyond(int format);

/* What comes of rounding results. */
struct tf_rounded {
    unsigned flags;  /* but for overflow */
    unsigned beyond; /* as of struct tf_flag_hints */
};

/* Rounds n results to items, once. Flags in `known` are raised already, and need not be
 * found. */
struct tf_rounded tf_round_results(int format, enum tf_reduction op,
                                   const double *results, void *items, size_t n,
                                   unsigned known);

/* Products of so many numbers of magnitudes from 2^-149 to 2^128 do not leave float64's
 * range, where a power of two changes no other bit. */
enum { TF_TOGETHER = 6 };

/* Returns value * 2^exponent. Beyond 2^+-1000 every format over- or underflows alike. */
static inline double tf_product_value(double value, int64_t exponent)
{
    const int near = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : (int)exponent;
    return near == 0 ? value : ldexp(value, near);
}

/* Multiplies *value * 2^*exponent by n numbers, and leaves the value in [1, 2). */
void tf_multiply_all(double *value, int64_t *exponent, const float *numbers, size_t n);

/* Adds n numbers to *value in the order of a reduction, chunk by chunk, or multiplies
 * *value * 2^*exponent by them. Returns what that raises before it is rounded. */
unsigned tf_reduce_line(int format, enum tf_reduction op, const char *in, ptrdiff_t stride,
                        ptrdiff_t n, double *value, int64_t *exponent);

/* One step of a reduction: data[0] (and data[2], which is the same) are results so far,
 * data[1] what is added to them or multiplied by. What that raises is or-ed into *flags,
 * but for overflow, which `partials` counts. Returns -1 if memory is short. */
int tf_reduce_into_pages(int format, enum tf_reduction op, struct tf_partials *partials,
                         char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n,
                         unsigned *flags);

/* Whether one of n numbers is NaN: then a sum or product that is NaN raises nothing. */
int tf_has_nan(const float *numbers, size_t n);

int tf_has_infinity(const float *numbers, size_t n);

#endif
