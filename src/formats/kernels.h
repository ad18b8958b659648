/* Kernels on numbers of a format: conversions, predicates, bounds and look-ups. All take
 * contiguous, aligned chunks. */
#ifndef TF32DTYPE_FORMATS_KERNELS_H
#define TF32DTYPE_FORMATS_KERNELS_H

#include "formats/byte_order.h"
#include "formats/codec.h"
#include "formats/float_bits.h"
#include "runtime/kernel_table.h"

enum { TF_NOT_FINITE = 2 };

/* Facts of a chunk of numbers that is rounded to a format. */
struct tf_flag_hints {
    /* 1 if some magnitude rounds above the range, TF_NOT_FINITE if one is Inf or NaN in
     * float32, else 0. */
    unsigned beyond;
    unsigned tiny;   /* some nonzero magnitude is below the normal range */
    unsigned nan;    /* some number may be NaN */
    unsigned raised; /* the exceptions but underflow; undefined from tf_round_fn */
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

/* Converts float32 to a NumPy kind; returns the exceptions raised. */
typedef unsigned tf_store_fn(const float *in, void *items, size_t n);

/* The conversions of one format. Index TF_FORMAT_COUNT is float16. */
struct tf_conversions {
    tf_unpack_fn *to_float32; /* items to float32, exact; NaN is quiet and keeps its sign */
    tf_pack_fn *from_float32; /* float32 to items, to nearest, ties to even */
    tf_round_fn *round;   /* float64 likewise, but not NaN; float32's subnormal numbers
                           * must be multiples of the format's smallest one */
    tf_suspect_fn *suspect; /* the hints of from_float32, without rounding */
    tf_flags_fn *underflow; /* TF_UNDER if rounding `in` to `items` raises it, else 0 */
};

/* Stores for each of n items whether an enum tf_predicate_op is true, as bool. */
typedef void tf_predicate_fn(const void *, uint8_t *, size_t);

struct tf_byte_table; /* formats/byte_tables.h */

struct tf_format_kernels {
    const struct tf_conversions *conversions; /* by format */

    /* By enum tf_number_kind, for NumPy's kinds except float16. `loads` convert to
     * float32, rounding to odd, and have NULL for float32; `stores` convert back. */
    tf_unpack_fn *const *loads;
    tf_store_fn *const *stores;

    /* Rounds to odd: a later rounding to at most 22 significant bits is as if single. */
    void (*narrow)(const double *in, float *out, size_t n);
    void (*widen)(const float *in, double *out, size_t n);

    tf_predicate_fn *const (*predicate)[2]; /* of items of tf32 and bfloat16 */
    void (*byte_predicate)(enum tf_predicate_op op, struct tf_byte_order order,
                           const uint8_t *items, uint8_t *restrict r, size_t n);
    /* Makes every NaN the positive quiet one; returns 1 if some number is Inf or NaN. */
    int (*canonical_nans)(float *x, size_t n);
    /* Finds the smallest and the largest tf_total_order() in [~last, last]; INT32_MAX
     * includes all numbers. If none is in that range, both results are outside. */
    void (*bounds)(const float *in, size_t n, int32_t last, int32_t *least,
                   int32_t *greatest);
    /* out[i] = table[in[i]] for bytes. */
    void (*lookup)(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n);
    /* Returns the or of all `wanted` bits of table[in[i]]. */
    unsigned (*lookup_any)(const uint8_t table[256], unsigned wanted, const uint8_t *in,
                           size_t n);
    /* Converts items of one byte to bfloat16, which holds all their numbers. NULL if the
     * processor has no instruction that looks bytes up. */
    void (*bf16_of_bytes)(const struct tf_byte_table *table, const uint8_t *in,
                          uint16_t *out, size_t n);
};

#endif
