/* The kernels of exact products, for the table. */
#ifndef TF32DTYPE_EXACT_KERNELS_DECLS_H
#define TF32DTYPE_EXACT_KERNELS_DECLS_H

#include "exact/kernels.h"
#include "runtime/kernels/common.h"

void TF_PLAIN_NAME(tf_load_rows)(const char *items, ptrdiff_t step, ptrdiff_t along,
                                 size_t rows, size_t k, double *out, int is_float);
void TF_PLAIN_NAME(tf_facts_of_rows)(const char *items, ptrdiff_t step, ptrdiff_t along,
                                     size_t rows, size_t k, struct tf_row_facts *facts,
                                     int is_float);
void TF_PLAIN_NAME(tf_slice_row)(double *rest, void *slice, size_t k, int exponent,
                                 int is_float, double *norms);
void TF_PLAIN_NAME(tf_compensated_dot)(const double *x, const double *y, size_t n,
                                       double *sums);
void TF_PLAIN_NAME(tf_split_products)(const double *x, const double *y, size_t k,
                                      const int64_t *pairs, size_t count, double *terms);
void TF_PLAIN_NAME(tf_compensated_sum)(const double *x, size_t n, double *sums);
size_t TF_PLAIN_NAME(tf_round_sums)(const struct tf_row_of_sums *sums,
                                    enum tf_rounding rounding, int is_float,
                                    void *results, uint8_t *undecided);

#endif
