/* What rounding to a format did to results: counts and errors, against float64. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_FIGURES_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* The numbers of a format, as far as errors ask for them. */
struct tf_grid {
    int mantissa_bits;
    double least_normal;
    double beyond; /* from here on magnitudes lie beyond the greatest number */
};

struct tf_grid tf_grid_of(int format);

struct tf_figures {
    uint64_t calls;    /* of inner loops: no more than a row of a broadcast operand each */
    uint64_t operands, rounded_operands; /* that were read; that were not in the format */
    uint64_t operand_overflows, operand_underflows; /* of these, as of results below */
    uint64_t results;
    uint64_t inexact;   /* another number than the truth */
    uint64_t overflows; /* not finite or the greatest number, where the truth is beyond */
    uint64_t underflows; /* inexact, and the truth is below the normal numbers */
    uint64_t nans;      /* NaN from operands that had none */
    uint64_t measured;  /* results that have an error in ulps: the truth is finite, and
                         * they did not overflow */
    double largest_ulps, sum_of_ulps;
    /* Of sums and differences of finite operands that are not all zero. Those that vanish
     * are exactly zero; the others lose bits if they are less than the greatest operand,
     * as many as their exponents differ by. */
    uint64_t sums, zero_sums, canceled_sums; /* canceled: more than half the format's bits */
    /* Sums of two operands that are the larger one, though the other is not zero. */
    uint64_t absorbed_sums;
    int most_bits_lost;
};

/* Results, what they should be, and the numbers they were made of. */
struct tf_observed {
    const double *result, *truth;
    size_t n;
    int input_count;
    const double *inputs[3];
    size_t steps[3]; /* 1, or 0: the same for all */
    int adds;        /* whether bits may cancel */
};

/* Adds figures to others. */
void tf_add_figures(struct tf_figures *total, const struct tf_figures *more);

#endif
