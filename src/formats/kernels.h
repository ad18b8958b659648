/* Kernels on numbers of a format: conversions, and what numbers are. All take contiguous,
 * aligned chunks. */
#ifndef TF32DTYPE_FORMATS_KERNELS_H
#define TF32DTYPE_FORMATS_KERNELS_H

#include "formats/codec.h"
#include "formats/float_bits.h"
#include "runtime/kernel_table.h"

enum { TF_NOT_FINITE = 2 };

/* What a chunk of numbers may raise when it is rounded to a format. */
struct tf_flag_hints {
    /* Some magnitude rounds beyond the range, or is NaN: 1, or TF_NOT_FINITE where one
     * is Inf or NaN, as float32. */
    unsigned beyond;
    unsigned tiny;   /* some nonzero magnitude lies below the normal range */
    unsigned nan;    /* some number may be NaN */
};

enum tf_predicate_op {
    TF_ISNAN,
    TF_ISINF,
    TF_ISFINITE,
    TF_SIGNBIT,
    TF_LOGICAL_NOT,
    TF_PREDICATE_COUNT
};

typedef void tf_unpack_fn(const void *items, float *out, size_t n);
typedef struct tf_flag_hints tf_pack_fn(const float *in, void *items, size_t n);
typedef struct tf_flag_hints tf_round_fn(const double *in, void *items, size_t n);
typedef struct tf_flag_hints tf_suspect_fn(const float *in, size_t n);
typedef unsigned tf_flags_fn(const float *in, const void *items, size_t n);

/* float32 -> a number of NumPy's; what that raised. */
typedef unsigned tf_store_fn(const float *in, void *items, size_t n);

/* One format's conversions. Index TF_FORMAT_COUNT is float16. */
struct tf_conversions {
    tf_unpack_fn *to_float32; /* items to float32, exact; NaN quiet, its sign kept */
    tf_pack_fn *from_float32; /* float32 to items, to nearest, ties to even */
    tf_round_fn *round;   /* float64 likewise, but for NaN, where multiples of the least
                           * number of the format are rounded */
    tf_suspect_fn *suspect; /* may that raise something? from_float32 tells it too */
    tf_flags_fn *flags;     /* what rounding `in` to `items` raised; exact */
};

/* Whether each of n items is what an enum tf_predicate_op asks: bools. */
typedef void tf_predicate_fn(const void *, uint8_t *, size_t);

struct tf_byte_table; /* formats/byte_tables.h */

struct tf_format_kernels {
    const struct tf_conversions *conversions; /* by format */

    /* By enum tf_number_kind, NumPy's but float16: to float32, to odd, and back; NULL
     * where it is float32 already. */
    tf_unpack_fn *const *loads;
    tf_store_fn *const *stores;

    /* Round to odd: a later rounding to 22 bits or fewer is as if single. */
    void (*narrow)(const double *in, float *out, size_t n);
    void (*widen)(const float *in, double *out, size_t n);

    tf_predicate_fn *const (*predicate)[2]; /* of items of tf32 and bfloat16 */
    /* Every NaN becomes the positive quiet one; whether some number is not finite. */
    int (*canonical_nans)(float *x, size_t n);
    /* Bounds in tf_total_order, of what lies no farther out than `last`: of all, if that
     * is INT32_MAX. Where nothing does they lie beyond it. */
    void (*bounds)(const float *in, size_t n, int32_t last, int32_t *least,
                   int32_t *greatest);
    /* out[i] = table[in[i]] for bytes. */
    void (*lookup)(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n);
    /* Items of a byte to bfloat16, which holds all their numbers; NULL without an
     * instruction that looks bytes up. */
    void (*bf16_of_bytes)(const struct tf_byte_table *table, const uint8_t *in,
                          uint16_t *out, size_t n);
};

#endif
