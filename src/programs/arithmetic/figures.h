/* Figures: counts and errors of results that were rounded to a format, against float64. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_FIGURES_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* The properties of a format that errors depend on. */
struct tf_grid {
    int mantissa_bits;
    double least_normal;
    double beyond; /* the smallest magnitude that overflows when it is rounded */
};

struct tf_grid tf_grid_of(int format);

struct tf_figures {
    uint64_t calls;    /* of inner loops, each for at most one row of a broadcast operand */
    uint64_t operands, rounded_operands; /* read by loops; of them, not in the format */
    uint64_t operand_overflows, operand_underflows; /* rounded operands, as below */
    uint64_t results;
    uint64_t inexact;   /* finite reference, and the result differs from it */
    uint64_t overflows; /* finite reference, and it is >= beyond or the result not finite */
    uint64_t underflows; /* inexact, and the reference is below the normal numbers */
    uint64_t nans;      /* NaN from operands without NaN, other than overflows */
    uint64_t measured;  /* results with an error in ulps: the reference is finite, and
                         * the result did not overflow */
    double largest_ulps, sum_of_ulps;
    /* Sums and differences of finite operands that are not all zero. A zero sum is exactly
     * zero. Another sum that is smaller than its largest operand loses as many bits as
     * their exponents differ by. A canceled sum loses more than half the format's bits. */
    uint64_t sums, zero_sums, canceled_sums;
    /* Sums of two operands that equal the larger one, though the exact sum does not. */
    uint64_t absorbed_sums;
    int most_bits_lost;
};

/* Results, their reference values in float64 (`truth`), and the operands. */
struct tf_observed {
    const double *result, *truth;
    size_t n;
    int input_count;
    const double *inputs[3];
    size_t steps[3]; /* 1; or 0 for an operand that is the same for all results */
    int adds;        /* bits may cancel: the operation is a sum or a difference */
};

/* Adds `more` to `total`. */
void tf_add_figures(struct tf_figures *total, const struct tf_figures *more);

#endif
