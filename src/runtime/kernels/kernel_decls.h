/* What the files of this folder give to this build's table. */
#ifndef TF32DTYPE_LOOPS_BLOCKS_H
#define TF32DTYPE_LOOPS_BLOCKS_H

#include <string.h>

#include "runtime/kernel_table.h"

/* -0 below +0 (IEEE 754-2019 maximum, minimum): a sum of two zeros has the sign
 * wanted, -0 + -0 is -0 and any other +0. A comparison with NaN is false, which
 * leaves x. */
#define TF_ZEROS(x, y) (((x) == 0) & ((y) == 0))
#define TF_GREATER_OF(x, y) (TF_ZEROS(x, y) ? (x) + (y) : (y) > (x) ? (y) : (x))
#define TF_LESSER_OF(x, y) (TF_ZEROS(x, y) ? -(-(x) - (y)) : (y) < (x) ? (y) : (x))

/* Lists the indices, from `first` on, of the marks that are not 0, and returns how many.
 * Few are: 8 are read at a time, for which there is room after the last one. */
TF_INLINE size_t tf_list_marked(uint8_t *marks, size_t n, size_t first, uint16_t *which)
{
    size_t count = 0;
    memset(marks + n, 0, 8);
    for (size_t start = 0; start < n; start += 8) {
        uint64_t eight;
        memcpy(&eight, marks + start, 8);
        if (eight) {
            for (size_t i = start; i < start + 8; i++) {
                which[count] = (uint16_t)(first + i);
                count += marks[i] != 0;
            }
        }
    }
    return count;
}

extern const struct tf_conversions TF_NAME(tf_conversions)[TF_FORMAT_COUNT + 1];
extern tf_unpack_fn *const TF_NAME(tf_loads)[];
extern tf_store_fn *const TF_NAME(tf_stores)[];
void TF_NAME(tf_narrow)(const double *in, float *out, size_t n);
void TF_NAME(tf_widen)(const float *in, double *out, size_t n);

extern tf_binary_f32_fn *const TF_NAME(tf_binary_f32)[TF_BINARY_COUNT];
extern tf_binary_f64_fn *const TF_NAME(tf_binary_f64)[TF_BINARY_COUNT];
extern tf_binary_f64_fn *const TF_NAME(tf_binary_near)[TF_BINARY_COUNT];
size_t TF_NAME(tf_doubtful)(const double *r, size_t n, int mantissa_bits,
                            uint16_t *which);
extern const struct tf_fused TF_NAME(tf_fused)[TF_BINARY_COUNT];
extern tf_quick_fn *const TF_NAME(tf_quick)[TF_QUICK_NEAR][2];
extern tf_quick_fn *const TF_NAME(tf_quick_near)[TF_QUICK_COUNT - TF_QUICK_NEAR][2];
extern const struct tf_parts TF_NAME(tf_parts);
extern tf_compare_fn *const TF_NAME(tf_compare)[TF_COMPARE_COUNT];
void TF_NAME(tf_are_near)(struct tf_nearness nearness, const float *a, const float *b,
                          uint8_t *r, size_t n);
extern const struct tf_by_size TF_NAME(tf_extreme)[TF_BINARY_COUNT];
extern const struct tf_by_size TF_NAME(tf_compare_items)[TF_COMPARE_COUNT];
extern const struct tf_by_size TF_NAME(tf_sign)[TF_SIGN_COUNT];
extern tf_predicate_fn *const TF_NAME(tf_predicate)[TF_PREDICATE_COUNT][2];
int TF_NAME(tf_canonical_nans)(float *x, size_t n);
unsigned TF_NAME(tf_exceptions)(uint32_t beyond, int overflows, const float *a,
                                const float *b, const float *r, size_t n);
void TF_NAME(tf_lookup)(const uint8_t table[256], const uint8_t *in, uint8_t *out,
                        size_t n);
void TF_NAME(tf_copy_seconds)(size_t itemsize, const char *in, char *out, size_t n);
void TF_NAME(tf_pair_with_zeros)(size_t itemsize, const char *restrict in,
                                 char *restrict out, size_t n);
void TF_NAME(tf_compress_index)(const struct tf_index_bounds *bounds, const uint16_t *in,
                         uint16_t *index, size_t n);
unsigned TF_NAME(tf_expand_result)(const struct tf_index_bounds *bounds, const uint16_t *in,
                               const uint16_t *results, uint16_t *out, size_t n,
                               unsigned wanted);
void TF_NAME(tf_add_wide)(const float *in, double *values, size_t n);
void TF_NAME(tf_times_wide)(const float *in, double *values, int64_t *exponents,
                            double *results, size_t n);
int TF_NAME(tf_makes_nan)(const float *in, const double *before, const double *after,
                          size_t n);
int TF_NAME(tf_mark_beyond)(const double *in, uint64_t bits, uint8_t *marks, size_t n);
double TF_NAME(tf_sum)(const float *in, size_t n);
void TF_NAME(tf_bounds)(const float *in, size_t n, int32_t last, int32_t *least,
                        int32_t *greatest);
void TF_NAME(tf_half_bounds)(const uint16_t *in, size_t n, int without_nans,
                             int32_t *least, int32_t *greatest);
void TF_NAME(tf_byte_bounds)(const uint8_t ranks[256], const uint8_t *in, size_t n,
                             int without_nans, uint8_t *least, uint8_t *greatest);
extern const struct tf_moment_loops TF_NAME(tf_moment_loops);
extern const struct tf_product TF_NAME(tf_product);
extern const struct tf_int8_kernels TF_NAME(tf_int8_kernels);
extern const struct tf_dot TF_NAME(tf_dot);
extern const struct tf_block_product TF_NAME(tf_block_product);
extern const struct tf_mma_kernels TF_NAME(tf_mma_kernels);
extern const struct tf_block_loops TF_NAME(tf_block_loops)[];
extern const struct tf_scaled TF_NAME(tf_scaled);

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VBMI__)
/* A table of 256 bytes in registers: a store may not be told from a change of the
 * table, which would be read anew each time. */
struct tf_byte_registers {
    __m512i first, second, third, fourth;
};

TF_INLINE struct tf_byte_registers tf_load_bytes(const uint8_t table[256])
{
    const struct tf_byte_registers loaded = {
        .first = _mm512_loadu_si512(table),
        .second = _mm512_loadu_si512(table + 64),
        .third = _mm512_loadu_si512(table + 128),
        .fourth = _mm512_loadu_si512(table + 192),
    };
    return loaded;
}

/* 64 lookups: two permutations of 128 bytes each, chosen between by the index's
 * top bit. */
TF_INLINE __m512i tf_permute_bytes(struct tf_byte_registers table, __m512i index)
{
    const __m512i low = _mm512_permutex2var_epi8(table.first, index, table.second);
    const __m512i high = _mm512_permutex2var_epi8(table.third, index, table.fourth);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}
#endif

#endif
