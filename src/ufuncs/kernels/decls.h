/* The kernels of src/ufuncs that this build's table contains: see table.c. */
#ifndef TF32DTYPE_UFUNCS_KERNELS_DECLS_H
#define TF32DTYPE_UFUNCS_KERNELS_DECLS_H

#include "formats/kernels/decls.h"
#include "ufuncs/kernels.h"

extern tf_binary_f32_fn *const TF_NAME(tf_binary_f32)[TF_BINARY_COUNT];
extern tf_binary_f64_fn *const TF_NAME(tf_binary_f64)[TF_BINARY_COUNT];
extern tf_binary_f64_fn *const TF_PLAIN_NAME(tf_binary_near)[TF_BINARY_COUNT];
size_t TF_PLAIN_NAME(tf_doubtful)(const double *r, size_t n, int mantissa_bits,
                            uint16_t *which);
extern const struct tf_fused TF_PLAIN_NAME(tf_fused)[TF_BINARY_COUNT];
/* Makes NaN among the results of operands a and b canonical. Returns the flags of all
 * results except underflow: an Inf that no operand is has b = 0, or it overflowed. */
unsigned TF_PLAIN_NAME(tf_finish_words)(const uint32_t *restrict a,
                                        const uint32_t *restrict b,
                                        uint32_t *restrict out, size_t n);
unsigned TF_PLAIN_NAME(tf_finish_bf16)(const uint16_t *restrict a,
                                       const uint16_t *restrict b,
                                       uint16_t *restrict out, size_t n);
extern tf_quick_fn *const TF_PLAIN_NAME(tf_quick)[TF_QUICK_NEAR][2];
extern tf_quick_fn *const TF_PLAIN_NAME(tf_quick_near)[TF_QUICK_COUNT - TF_QUICK_NEAR][2];
extern const struct tf_parts TF_PLAIN_NAME(tf_parts);
extern tf_compare_fn *const TF_NAME(tf_compare)[TF_COMPARE_KERNELS];
void TF_NAME(tf_are_near)(struct tf_nearness nearness, const float *a, const float *b,
                          uint8_t *r, size_t n);
extern const struct tf_by_size TF_NAME(tf_extreme)[TF_BINARY_COUNT];
extern const struct tf_clip_by_size TF_NAME(tf_clip_items);
extern const struct tf_by_size TF_NAME(tf_compare_items)[TF_COMPARE_KERNELS];
extern const struct tf_by_size TF_NAME(tf_sign);
unsigned TF_NAME(tf_exceptions)(uint32_t beyond, const float *a, const float *b,
                                const float *r, size_t n);
void TF_NAME(tf_compress_index)(const struct tf_index_bounds *bounds, const uint16_t *in,
                         uint16_t *index, size_t n);
unsigned TF_NAME(tf_expand_result)(const struct tf_index_bounds *bounds, const uint16_t *in,
                               const uint16_t *results, uint16_t *out, size_t n,
                               unsigned wanted);
void TF_PLAIN_NAME(tf_add_wide)(const float *in, double *values, size_t n);
void TF_PLAIN_NAME(tf_times_wide)(const float *in, double *values, int64_t *exponents,
                            double *results, size_t n);
int TF_PLAIN_NAME(tf_makes_nan)(const float *in, const double *before, const double *after,
                          size_t n);
int TF_PLAIN_NAME(tf_mark_beyond)(const double *in, uint64_t bits, uint8_t *marks,
                                  size_t n);
double TF_NAME(tf_sum)(const float *in, size_t n);
void TF_NAME(tf_bf16_bounds)(const uint16_t *in, size_t n, int without_nans,
                             int32_t *least, int32_t *greatest);
void TF_NAME(tf_byte_bounds)(struct tf_byte_order order, const uint8_t *in, size_t n,
                             int without_nans, uint8_t *least, uint8_t *greatest);
extern const struct tf_moment_loops TF_PLAIN_NAME(tf_moment_loops);

#endif
