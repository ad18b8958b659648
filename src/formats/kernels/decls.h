/* Declares the functions and tables of src/formats for this build: see table.c. */
#ifndef TF32DTYPE_FORMATS_KERNELS_DECLS_H
#define TF32DTYPE_FORMATS_KERNELS_DECLS_H

#include "formats/kernels.h"
#include "runtime/kernels/common.h"

extern const struct tf_conversions TF_NAME(tf_conversions)[TF_FORMAT_COUNT + 1];
extern tf_unpack_fn *const TF_PLAIN_NAME(tf_loads)[];
extern tf_store_fn *const TF_PLAIN_NAME(tf_stores)[];
void TF_NAME(tf_narrow)(const double *in, float *out, size_t n);
void TF_NAME(tf_widen)(const float *in, double *out, size_t n);
extern tf_predicate_fn *const TF_NAME(tf_predicate)[TF_PREDICATE_COUNT][2];
void TF_NAME(tf_byte_predicate)(enum tf_predicate_op op, struct tf_byte_order order,
                                const uint8_t *items, uint8_t *restrict r, size_t n);
int TF_NAME(tf_canonical_nans)(float *x, size_t n);
/* Store the ranks of items, and the items of ranks. */
void TF_NAME(tf_rank_bytes)(struct tf_byte_order order, const uint8_t *items,
                            uint8_t *restrict ranks, size_t n);
void TF_NAME(tf_bytes_of_ranks)(struct tf_byte_order order, const uint8_t *ranks,
                                uint8_t *restrict items, size_t n);
void TF_NAME(tf_lookup)(const uint8_t table[256], const uint8_t *in, uint8_t *out,
                        size_t n);
unsigned TF_NAME(tf_lookup_any)(const uint8_t table[256], unsigned wanted,
                                const uint8_t *in, size_t n);
void TF_NAME(tf_bounds)(const float *in, size_t n, int32_t last, int32_t *least,
                        int32_t *greatest);
void TF_NAME(tf_bf16_of_bytes)(const struct tf_byte_table *table, const uint8_t *in,
                               uint16_t *out, size_t n);

#endif
