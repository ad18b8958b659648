/* Sums and products as if exact: float64 results, the slots that keep them between the
 * calls of a ufunc, and their one rounding. reduce.h and segments.h have the calls.
 *
 * `format` is a format's index or TF_REDUCE_FLOAT32. */
#ifndef TF32DTYPE_UFUNCS_EXACT_SUM_H
#define TF32DTYPE_UFUNCS_EXACT_SUM_H

#include <math.h>
#include <string.h>

#include "ufuncs/pages.h"

/* float32 in place of a format's index, for sums that are left unrounded. */
enum { TF_REDUCE_FLOAT32 = -1 };

/* Returns whether sums begin with NaN, as those of e8m0, which has no zero. This NaN counts
 * as nothing, and stays if nothing is added. */
int tf_sum_begins_with_nan(int format);

/* Returns the size of an item in bytes. */
static inline size_t tf_summand_size(int format)
{
    return format == TF_REDUCE_FLOAT32 ? sizeof(float)
                                       : tf_format_rows[format]->itemsize;
}

/* Converts n items to float32, exactly. */
static inline void tf_load_summands(int format, const void *items, float *out, size_t n)
{
    if (format == TF_REDUCE_FLOAT32) {
        memcpy(out, items, n * sizeof *out);
    } else {
        tf_isa->formats->conversions[format].to_float32(items, out, n);
    }
}

/* Returns the float64 bits of the smallest magnitude that rounds out of range. Returns
 * those of Inf if such a rounding is not an overflow but an invalid operation. */
uint64_t tf_first_beyond(int format);

/* The outcome of rounding results. */
struct tf_rounded {
    unsigned flags;  /* all but overflow */
    unsigned beyond; /* as in struct tf_flag_hints */
};

/* Rounds n results to items, once. Flags in `known` are raised, and may be left out. */
struct tf_rounded tf_round_results(int format, enum tf_reduction op,
                                   const double *results, void *items, size_t n,
                                   unsigned known);

/* The product of this many numbers of magnitudes from 2^-149 to 2^128 stays within
 * float64's range, where a power of two changes no other bit. */
enum { TF_TOGETHER = 6 };

/* Returns value * 2^exponent. Out of 2^+-1000 every format over- or underflows alike. */
static inline double tf_product_value(double value, int64_t exponent)
{
    const int near = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : (int)exponent;
    return near == 0 ? value : ldexp(value, near);
}

/* Multiplies *value * 2^*exponent by n numbers. Finite values but 0 end in [1, 2). */
void tf_multiply_all(double *value, int64_t *exponent, const float *numbers, size_t n);

/* Adds n items to *value in the order of a reduction, chunk by chunk, or multiplies
 * *value * 2^*exponent by them. Returns the flags raised before the rounding. */
unsigned tf_reduce_line(int format, enum tf_reduction op, const char *in, ptrdiff_t stride,
                        ptrdiff_t n, double *value, int64_t *exponent);

/* Does one step of a reduction: adds data[1] to the results so far in data[0] (data[2] is
 * the same), or multiplies these by it. Adds raised flags to *flags, except overflow, which
 * `partials` counts. Returns -1 if memory is short. */
int tf_reduce_into_pages(int format, enum tf_reduction op, struct tf_partials *partials,
                         char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n,
                         unsigned *flags);

/* Returns whether one of n numbers is NaN: a NaN sum or product then raises nothing. */
int tf_has_nan(const float *numbers, size_t n);

int tf_has_infinity(const float *numbers, size_t n);

#endif
