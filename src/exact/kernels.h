/* Kernels of exact products: facts of rows, slices of rows, compensated dot products, and
 * the test of rounding. Every bound that they return is rigorous. Their other results may
 * differ between instruction sets, but never the rounded results. */
#ifndef TF32DTYPE_EXACT_KERNELS_H
#define TF32DTYPE_EXACT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/codec.h"

/* The facts of a row: what bounds of its dot products need. */
struct tf_row_facts {
    double norm;    /* at least the square root of the sum of squares */
    double unit;    /* all numbers are multiples of this power of two; Inf if all are 0 */
    double largest; /* magnitude */
    int special;    /* whether a number is Inf or NaN; then the others do not count */
};

/* One row of sums and their bounds. The sum of element j is exact, or its error is at most
 * the sum of row_bounds[t] * column_bounds[t * step + j] over t < ranks. It is exact if
 * row_ratio * column_ratios[j] <= 2^53, or without ranks, bounds and ratios. */
struct tf_row_of_sums {
    size_t n;
    const double *terms; /* `count` numbers for each sum, `term_step` elements apart */
    size_t count, term_step;
    const double *row_bounds, *column_bounds;
    size_t ranks, row_step, column_step;
    double row_ratio;
    const double *column_ratios;
    /* The sums are multiplied by 2^(row_exponent + column_exponents[j]); NULL: by 1. */
    int64_t row_exponent;
    const int64_t *column_exponents;
};

struct tf_exact_kernels {
    /* Converts rows of float32 (if `is_float`) or float64 to rows of float64 that adjoin.
     * Rows are `step` bytes apart, and their numbers `along` bytes. */
    void (*load)(const char *items, ptrdiff_t step, ptrdiff_t along, size_t rows, size_t k,
                 double *out, int is_float);
    /* Writes the facts of rows, which are given as to `load`. */
    void (*facts)(const char *items, ptrdiff_t step, ptrdiff_t along, size_t rows, size_t k,
                  struct tf_row_facts *facts, int is_float);
    /* Moves multiples of 2^exponent from a row to a slice: rounds each number to such a
     * multiple, and leaves the rest. The slice has float64 numbers, or float32 ones, which
     * must hold them. Magnitudes must be at most 2^(exponent + 50). Returns
     * the norms of the slice and the rest in norms[0] and norms[1], as tf_row_facts. */
    void (*slice)(double *rest, void *slice, size_t k, int exponent, int is_float,
                  double *norms);
    /* Writes sums[0] + sums[1], the sum of n products. Its error is at most the product of
     * the norms times 2 ((n / 8 + 64) 2^-53)^2. All products must be multiples of 2^-960,
     * and their sums at most 2^960. */
    void (*dot)(const double *x, const double *y, size_t n, double *sums);
    /* Writes 2 k numbers for each of `count` pairs of rows, whose sum is the dot product,
     * `count` elements apart. There is a NaN or an Inf if products may leave float64's
     * range. Pairs are given as to tf_exact_dots. */
    void (*products)(const double *x, const double *y, size_t k, const int64_t *pairs,
                     size_t count, double *terms);
    /* Writes sums[0] + sums[1], the sum of n numbers, and in sums[2] a bound of its error,
     * which is Inf or NaN if the sums left float64's range. n is at most 2^20. */
    void (*sum)(const double *x, size_t n, double *sums);
    /* Rounds sums to float64 or float32, where their bounds decide. Sets undecided[j] to 1
     * for the others, and to 0 for those. Returns the number of undecided sums. `rounding`
     * is one of ties to even or away, the directed modes and to odd. */
    size_t (*round)(const struct tf_row_of_sums *sums, enum tf_rounding rounding,
                    int is_float, void *results, uint8_t *undecided);
};

#endif
