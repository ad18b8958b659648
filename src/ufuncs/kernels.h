/* Kernels of operations on elements, and of reductions. All take contiguous, aligned
 * chunks. */
#ifndef TF32DTYPE_UFUNCS_KERNELS_H
#define TF32DTYPE_UFUNCS_KERNELS_H

#include "formats/byte_order.h"
#include "formats/kernels.h"
#include "ufuncs/binary_ops.h"

enum tf_compare_op {
    TF_EQUAL,
    TF_NOT_EQUAL,
    TF_LESS,
    TF_LESS_EQUAL,
    TF_COMPARE_KERNELS, /* a > b is b < a */
    TF_GREATER = TF_COMPARE_KERNELS,
    TF_GREATER_EQUAL,
    TF_COMPARE_COUNT
};

enum tf_sign_op { TF_COPYSIGN, TF_POSITIVE, TF_NEGATIVE, TF_ABSOLUTE };

/* Unary functions that are computed in float32: see quick.c, and quick_near.c. */
enum tf_quick_op {
    TF_NOT_QUICK,
    TF_QUICK_SQUARE,
    TF_QUICK_RECIPROCAL,
    TF_QUICK_SQRT,
    TF_QUICK_RINT,
    TF_QUICK_FLOOR,
    TF_QUICK_CEIL,
    TF_QUICK_TRUNC,
    TF_QUICK_SIGN,
    TF_QUICK_NEAR, /* from this one on, some results are left open */
    TF_QUICK_EXP = TF_QUICK_NEAR,
    TF_QUICK_EXP2,
    TF_QUICK_EXPM1,
    TF_QUICK_LOG,
    TF_QUICK_LOG2,
    TF_QUICK_LOG10,
    TF_QUICK_LOG1P,
    TF_QUICK_SIN,
    TF_QUICK_COS,
    TF_QUICK_TAN,
    TF_QUICK_ARCSIN,
    TF_QUICK_ARCCOS,
    TF_QUICK_ARCTAN,
    TF_QUICK_SINH,
    TF_QUICK_COSH,
    TF_QUICK_TANH,
    TF_QUICK_ARCSINH,
    TF_QUICK_ARCCOSH,
    TF_QUICK_ARCTANH,
    TF_QUICK_CBRT,
    TF_QUICK_DEGREES,
    TF_QUICK_RADIANS,
    TF_QUICK_COUNT
};

struct tf_byte_table; /* formats/byte_tables.h */

/* Which of a function's 65536 results on bfloat16 are needed: see unary.c. */
struct tf_index_bounds {
    uint16_t odd;        /* the sign bit, if f(-x) = -f(x) */
    int16_t identity;    /* f(x) = x for magnitudes up to this; -1 if for none */
    int16_t least[2];    /* magnitudes up to this have one result, by sign */
    int16_t greatest[2]; /* and so do those from this on, Inf included */
};

typedef void tf_binary_f32_fn(const float *, const float *, float *, size_t);
typedef void tf_binary_f64_fn(const float *, const float *, double *, size_t);

/* Maps two chunks of items to a third, or to bools. Items of a byte need the table.
 * Functions for several operations need the operation. */
typedef void tf_items_fn(int op, const struct tf_byte_table *, const void *restrict,
                         const void *restrict, void *restrict, size_t);
struct tf_by_size {
    tf_items_fn *words, *bf16, *bytes; /* tf32, bfloat16, the others */
};

/* Clips a chunk of items: x, the lower bound and the upper bound. */
typedef void tf_clip_fn(const struct tf_byte_table *, const void *restrict,
                        const void *restrict, const void *restrict, void *restrict,
                        size_t);
struct tf_clip_by_size {
    tf_clip_fn *words, *bf16, *bytes;
};

/* Maps items of bfloat16 or tf32 to results that do not overlap them. Returns flags. */
typedef unsigned tf_fused_fn(const void *restrict, const void *restrict, void *restrict,
                             size_t);
/* Maps numbers of e8m0 to items. Returns flags. */
typedef unsigned tf_fused_powers_fn(const float *restrict, const float *restrict,
                                    uint8_t *restrict, size_t);

/* The four most frequent operations in one pass; NULL for others. */
struct tf_fused {
    tf_fused_fn *words, *bf16;  /* tf32, bfloat16 */
    tf_fused_powers_fn *powers; /* e8m0 */
};

struct tf_parts {
    /* Maps items of tf32 and bfloat16 to `out`, which does not overlap. Returns flags. */
    unsigned (*nextafter[2])(const void *from, const void *toward, void *out, size_t n);
    void (*modf)(const float *x, float *part, float *whole, size_t n);
    void (*frexp)(const float *x, float *part, int32_t *exponent, size_t n);
    /* Rounds to odd; exponents have `size` bytes, 4 or 8. */
    void (*ldexp)(const float *x, const void *exponents, size_t size, float *out,
                  size_t n);
};

/* Maps up to TF_CHUNK items to results, which do not overlap. Returns how many results are
 * left open, and lists their indices. It may return n and list none if more than `most` are
 * open, or without a look at them if `most` is 0. Adds the flags of the other results to
 * `flags`. */
typedef size_t tf_quick_fn(const void *items, void *results, uint16_t *which, size_t n,
                           size_t most, unsigned *flags);
typedef void tf_compare_fn(const float *, const float *, uint8_t *, size_t);

/* Near: |x - y| <= absolute + relative |y| for finite y, and NaN to NaN if equal_nan. */
struct tf_nearness {
    double relative, absolute;
    int equal_nan;
};

/* Sums in float64 of numbers and of their squares. As bits, the largest magnitude, and the
 * smallest nonzero one minus 1. Loops continue from present values. See moments.c. */
struct tf_moments {
    double sum, squares;
    int32_t greatest, least;
};

/* The same for lines side by side; `squares` may be NULL. */
struct tf_moment_rows {
    double *sums, *squares;
    int32_t *greatest, *least;
};

enum { TF_MOMENT_ROWS = 4 }; /* rows that are processed at once */

struct tf_moment_loops {
    /* Add a line of numbers, without and with squares, or of products of two numbers. */
    void (*numbers)(const float *in, size_t n, struct tf_moments *moments);
    void (*squares)(const float *in, size_t n, struct tf_moments *moments);
    void (*products)(const float *in, const float *weights, size_t n,
                     struct tf_moments *moments);
    /* Adds TF_MOMENT_ROWS rows, TF_CHUNK apart, of one number of each of n lines. */
    void (*side_by_side)(const float *in, size_t n,
                         const struct tf_moment_rows *found);
    /* Multiplies value 2^exponent; the final value is in [1, 2), zero or not finite. */
    void (*multiply)(const float *in, size_t n, double *value, int64_t *exponent);
    /* Replace numbers that are NaN, or have a zero in the mask, by `nothing`. Return how
     * many remain. If `counts` is given, add one for each number that remains. */
    size_t (*leave_out_nans)(float *x, size_t n, float nothing, double *counts);
    size_t (*leave_out_masked)(float *x, size_t n, const uint8_t *mask, int nans,
                               float nothing, double *counts);
};

struct tf_ufunc_kernels {
    tf_binary_f32_fn *const *binary_f32; /* NULL where float32 is too narrow */
    tf_binary_f64_fn *const *binary_f64;
    /* Near the exact results, or NaN; NULL except for functions of the C library. */
    tf_binary_f64_fn *const *binary_near;
    /* Lists the indices of such results whose rounding to bfloat16 or tf32 is in doubt.
     * Returns how many there are, at most TF_CHUNK. */
    size_t (*doubtful)(const double *r, size_t n, int mantissa_bits, uint16_t *which);
    const struct tf_fused *fused; /* by operation */
    tf_quick_fn *const (*quick)[2]; /* of tf32 and bfloat16 */
    tf_quick_fn *const (*quick_near)[2]; /* from TF_QUICK_NEAR on */
    const struct tf_parts *parts;
    tf_compare_fn *const *compare;
    void (*are_near)(struct tf_nearness nearness, const float *a, const float *b,
                     uint8_t *r, size_t n);
    const struct tf_by_size *extreme; /* of maximum, minimum, fmax, fmin */
    const struct tf_clip_by_size *clip;
    const struct tf_by_size *compare_items;
    const struct tf_by_size *sign; /* of all tf_sign_op: one operand is given twice */
    /* Returns the flags of magnitudes r from `beyond` on, Inf and NaN. Inf from finite
     * numbers is a pole. */
    unsigned (*exceptions)(uint32_t beyond, const float *a, const float *b,
                           const float *r, size_t n);

    /* Map codes to the indices of needed results, and results back, with the sign of odd
     * functions; the latter returns which of the `wanted` flags these may have raised. */
    void (*compress_index)(const struct tf_index_bounds *bounds, const uint16_t *in,
                    uint16_t *index, size_t n);
    unsigned (*expand_result)(const struct tf_index_bounds *bounds, const uint16_t *in,
                          const uint16_t *results, uint16_t *out, size_t n,
                          unsigned wanted);

    /* Running sums and products in float64, side by side: see reduce.c, exact_sum.c. A
     * product is a value times a power of two; `results` has it as one number. */
    void (*add_wide)(const float *in, double *values, size_t n);
    void (*times_wide)(const float *in, double *values, int64_t *exponents,
                       double *results, size_t n);
    /* Returns whether a result is NaN but neither the number nor the value before is. */
    int (*makes_nan)(const float *in, const double *before, const double *after,
                     size_t n);
    /* Marks finite numbers whose magnitudes have at least these float64 bits with 1, others
     * with 0. Returns how many more are marked than before. */
    int (*mark_beyond)(const double *in, uint64_t bits, uint8_t *marks, size_t n);

    double (*sum)(const float *in, size_t n); /* in float64, in one fixed order */
    /* As `bounds` of tf_format_kernels, for bfloat16, with or without NaN. */
    void (*bf16_bounds)(const uint16_t *in, size_t n, int without_nans, int32_t *least,
                        int32_t *greatest);
    /* The bounds of n bytes' ranks. The rank of NaN is TF_RANK_OF_NAN. */
    void (*byte_bounds)(struct tf_byte_order order, const uint8_t *in, size_t n,
                        int without_nans, uint8_t *least, uint8_t *greatest);

    const struct tf_moment_loops *moments;
};

#endif
