/* What one instruction set's build of the loops offers.
 *
 * Every file in a folder kernels/ is compiled once per instruction set; each build
 * fills one `struct tf_isa`, and src/runtime/cpu_dispatch.c picks one when the package is
 * imported. Most functions work on contiguous, aligned chunks; all give the
 * same bits in every build.
 */
#ifndef TF32DTYPE_LOOPS_ISA_H
#define TF32DTYPE_LOOPS_ISA_H

#include <stddef.h>
#include <stdint.h>

#include "formats/codec.h"
#include "formats/float_bits.h"
#include "tensor_core/mma_model.h"
#include "tensor_core/scaled_mma_model.h"

/* Elements a block: three float32 blocks fill half of a first-level cache. */
enum { TF_CHUNK = 1024 };

enum { TF_NOT_FINITE = 2 };

/* What a block of numbers may raise when it is rounded to a format. */
struct tf_flag_hints {
    /* Some magnitude rounds beyond the range, or is NaN: 1, or TF_NOT_FINITE where one
     * is Inf or NaN, as float32. */
    unsigned beyond;
    unsigned tiny;   /* some nonzero magnitude lies below the normal range */
    unsigned nan;    /* some number may be NaN */
};

enum tf_binary_op {
    TF_ADD,
    TF_SUBTRACT,
    TF_MULTIPLY,
    TF_TRUE_DIVIDE,
    TF_FLOOR_DIVIDE,
    TF_REMAINDER,
    TF_FMOD,
    TF_POWER,
    TF_ARCTAN2,
    TF_HYPOT,
    TF_LOGADDEXP,
    TF_LOGADDEXP2,
    TF_HEAVISIDE,
    TF_MAXIMUM,
    TF_MINIMUM,
    TF_FMAX,
    TF_FMIN,
    TF_BINARY_COUNT
};

enum tf_compare_op {
    TF_EQUAL,
    TF_NOT_EQUAL,
    TF_LESS,
    TF_LESS_EQUAL,
    TF_GREATER,
    TF_GREATER_EQUAL,
    TF_COMPARE_COUNT
};

enum tf_sign_op { TF_COPYSIGN, TF_POSITIVE, TF_NEGATIVE, TF_ABSOLUTE, TF_SIGN_COUNT };

enum tf_predicate_op {
    TF_ISNAN,
    TF_ISINF,
    TF_ISFINITE,
    TF_SIGNBIT,
    TF_LOGICAL_NOT,
    TF_PREDICATE_COUNT
};

/* Unary functions that float32 computes: see quick.c, and quick_near.c. */
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
    TF_QUICK_NEAR, /* those from here on leave some results open */
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

/* Which of a function's 65536 results on bfloat16 are enough: see unary.c. */
struct tf_index_bounds {
    uint16_t odd;        /* the sign bit, if f(-x) = -f(x) */
    int16_t identity;    /* f(x) = x for magnitudes up to it; -1 if for none */
    int16_t least[2];    /* magnitudes up to it all give one result, by sign */
    int16_t greatest[2]; /* and so do those from it on, Inf included */
};

typedef void tf_binary_f32_fn(const float *, const float *, float *, size_t);
typedef void tf_binary_f64_fn(const float *, const float *, double *, size_t);

/* Two blocks of items to a third, or to bools; one of a byte has a table. */
struct tf_byte_table;
typedef void tf_items_fn(const struct tf_byte_table *, const void *restrict,
                         const void *restrict, void *restrict, size_t);
struct tf_by_size {
    tf_items_fn *words, *halves, *bytes; /* tf32, bfloat16, the others */
};

/* What a block of results showed on the way to their items. */
struct tf_settled {
    uint32_t greatest; /* magnitude in float32, as bits: NaN is beyond Inf */
    unsigned flags;    /* but for what `greatest` tells: results beyond the range */
    unsigned unsettled; /* some are left to the general path */
};

/* Of items of bfloat16 or tf32; the results lie apart from the operands. */
typedef struct tf_settled tf_fused_fn(const void *restrict, const void *restrict,
                                      void *restrict, size_t);
/* Of numbers of a format of one byte. */
struct tf_byte_rounding;
typedef struct tf_settled tf_fused_bytes_fn(const struct tf_byte_rounding *,
                                            const float *restrict, const float *restrict,
                                            uint8_t *restrict, size_t);

/* The commonest operations in one pass; NULL for the others. */
struct tf_fused {
    tf_fused_fn *words, *halves;              /* tf32, bfloat16 */
    tf_fused_bytes_fn *bytes, *bytes_of_powers; /* the others; e8m0 */
};

struct tf_parts {
    /* Of items of tf32 and bfloat16, to items that lie apart; what they raise. */
    unsigned (*nextafter[2])(const void *from, const void *toward, void *out, size_t n);
    void (*modf)(const float *x, float *part, float *whole, size_t n);
    void (*frexp)(const float *x, float *part, int32_t *exponent, size_t n);
    /* To odd; exponents of 4 or 8 bytes. */
    void (*ldexp)(const float *x, const void *exponents, size_t size, float *out,
                  size_t n);
};

/* Items to items, which lie apart; returns how many results are left open, TF_CHUNK at
 * most, and lists their indices. Where they are more than some, it may say that all are,
 * and list none. */
typedef size_t tf_quick_fn(const void *, void *, uint16_t *, size_t, size_t);
typedef void tf_compare_fn(const float *, const float *, uint8_t *, size_t);

/* |x - y| <= absolute + relative |y| for finite y; and whether NaN is near NaN. */
struct tf_nearness {
    double relative, absolute;
    int equal_nan;
};
typedef void tf_predicate_fn(const void *, uint8_t *, size_t);

/* Parts of matrix products: see matmul/kernels/micro_kernel.c. */
enum {
    TF_KC = 256,      /* k of a chain of fused multiply-adds: the contract's */
    TF_MR = 6, /* of a block of C, where kernels do not say another number */
    TF_TALL_ROWS = 14,   /* of the tallest block */
    TF_LANES = 32,       /* of bounds of magnitudes */
    TF_ROW_COLUMNS = 64, /* that one row's product takes at a time: side by side */
};

/* What a slot holds: a float32, two bfloat16 numbers, or four integers. */
enum tf_slot { TF_SINGLES, TF_PAIRS, TF_QUADS };
enum { TF_QUAD = 4 };

/* One product of a chain: which parts of A and B, as distances in slots, and what the
 * sums so far are multiplied by before it. */
struct tf_split_product {
    size_t a, b;
    float scale;
};

/* c = s or c + s, for a block of C, where s is the chain of some terms: each `depth`
 * slots of every row of A, which lie `lda` slots apart, and of a panel of B. Of the
 * kernel's rows `rows` count; the others are there, and may be left out. */
typedef void tf_micro_kernel_fn(const float *a, size_t lda, const float *b, size_t depth,
                            const struct tf_split_product *terms, size_t count, size_t rows,
                            float *c, size_t ldc, int adds);

/* And what blocks it multiplies. */
struct tf_kernel {
    tf_micro_kernel_fn *multiply;
    size_t rows, columns;
};

/* What magnitudes some bfloat16 numbers, or upper halves of float32, have: the
 * least ones but zero, less one, and the greatest. Lanes lie side by side, since
 * bringing them together costs more than a short line. */
struct tf_magnitude_range {
    uint16_t min_minus_1[TF_LANES], greatest[TF_LANES];
};

struct tf_product {
    struct tf_kernel singles, tall; /* slots of one float32; the same in other blocks */
    /* The chains of n pairs of lines, of `depth` numbers each, one after the other. */
    void (*chains)(const float *a, const float *b, size_t depth,
                   const struct tf_split_product *terms, size_t count, size_t n, float *sums);
    /* The greatest finite magnitude: of n numbers; of what is in n places so far. */
    float (*greatest_of_all)(const float *in, size_t n);
    void (*greatest_of_each)(const float *in, size_t n, float *greatest);
    /* Rows of n slots, one after the other, to panels of `width` columns, `distance`
     * apart. */
    void (*lay_out)(const float *in, size_t rows, size_t n, float *out, size_t width,
                    size_t distance);
    /* What all lanes have together, in the first of them. */
    void (*reduce_range)(struct tf_magnitude_range *range);
    /* Numbers to their parts (see operand_split.h), `distance` apart. */
    void (*split_singles)(const float *in, size_t n, int p, int parts, float *out,
                          size_t distance, struct tf_magnitude_range *range);
    void (*transpose)(const float *in, size_t ld_in, size_t rows, size_t columns,
                      float *out, size_t ld_out);

    /* The rest is there with an instruction for pairs alone. */
    struct tf_kernel pairs; /* slots of two bfloat16 */
    void (*halves_of_bytes)(const struct tf_byte_table *table, const uint8_t *in,
                            uint16_t *out, size_t n);
    void (*pair_neighbours)(const uint16_t *in, float *out, size_t n);
    void (*pair_rows)(const uint16_t *first, const uint16_t *second, float *out,
                      size_t n);
    /* The same of many rows, `step` bytes apart, to panels of `width`, each `slots`
     * long; after an odd number of rows follows a row of zeros. */
    void (*pair_matrix)(const uint16_t *rows, ptrdiff_t step, size_t depth,
                        size_t columns, size_t width, size_t slots, float *out,
                        struct tf_magnitude_range *range);
    void (*note_least)(const uint16_t *in, size_t n, struct tf_magnitude_range *range);
    /* Parts that are not scaled: x = x0 + x1 + x2, where that is exact. */
    void (*split_halves)(const float *in, size_t n, int parts, uint16_t *out,
                         size_t distance, struct tf_magnitude_range *range);
    const struct tf_gemv_kernels *row;
};

/* One row times a matrix that is read once: see gemv.c. */
struct tf_across_operands {
    const float *x;   /* the row */
    const char *rows; /* of the matrix, which lie `step` bytes apart */
    ptrdiff_t step;
    const struct tf_byte_table *table; /* of items of a byte */
    uint32_t used;                     /* bits of float32 items that count */
};

/* The sums of columns side by side, a multiple of TF_ROW_COLUMNS, or of 16 of float32. */
typedef void tf_across_fn(const struct tf_across_operands *in, size_t depth,
                          size_t columns, float *sums);

struct tf_gemv_kernels {
    tf_across_fn *across_singles;
    tf_across_fn *across_halves, *across_bytes; /* NULL where there is none */
};

/* Parts of products of block arrays: see blocks/kernels/block_matmul.c. */

/* One product of a block's elements: where those of A and B, and their scales, begin. */
struct tf_block_term {
    size_t a, b, a_scales, b_scales;
};

/* Slots of a block, of which the last one may have fewer, and of all. */
struct tf_block_chain {
    const struct tf_block_term *terms;
    size_t count;
    size_t block, slots, blocks;
};

/* Goes on with c, or from +0, for TF_MR x columns of C: block after block and
 * term after term, c + s t is rounded once, where s is the chain of the term's slots
 * from +0, and t the product of the row's and the column's scales, rounded. Scales lie
 * as slots do, one for each block. */
typedef void tf_multiply_blocks_fn(const struct tf_block_chain *chain, const float *a,
                                   const float *a_scales, const float *b,
                                   const float *b_scales, float *c, size_t ldc,
                                   int adds);

struct tf_code_table;

/* Slots of n consecutive codes, TF_KC at most, of whole blocks. */
typedef void tf_slots_of_codes_fn(const struct tf_code_table *table,
                                  const uint8_t *codes, size_t n, float *out);

struct tf_block_product {
    size_t columns; /* of a block of C */
    tf_multiply_blocks_fn *singles;
    tf_slots_of_codes_fn *singles_of_codes;
    /* With an instruction for pairs alone; of codes of a byte or less. */
    tf_multiply_blocks_fn *pairs;
    tf_slots_of_codes_fn *pairs_of_codes;
};

/* Chains of a tensor core's blocks. */
enum {
    TF_TENSOR_DEPTH = 64,   /* k that is multiplied at a time: at least a block */
    TF_TENSOR_ZERO = -8000, /* the exponent of what has none */
    TF_TENSOR_SPECIAL = 16000, /* of Inf and NaN */
};

struct tf_mma_plan {
    struct tf_mma_model model;
    const struct tf_split_product *terms; /* which parts of A and B are multiplied */
    size_t count;
    /* k whose blocks start from zero, and whose sum is added to the accumulator in its
     * own format: at most TF_TENSOR_DEPTH. 0: the accumulator goes through all blocks. */
    size_t stretch;
    /* If not 0, what is multiplied by 2^scales_inside before a term is not rounded. */
    int scales_inside;
    uint32_t mask; /* bits that a float32 result has, or a float16 one at first */
    float zero;    /* added to a float16 result: the zero that a negative one becomes */
};

/* The least exponent of a format, and what stands for that of zero. */
struct tf_tensor_exponents {
    int32_t least, of_zero;
};

struct tf_mma_kernels {
    size_t columns; /* of a panel of B, TF_NR_MAX at most */
    /* Goes on with the accumulators c: TF_MR or fewer rows, a multiple of 3,
     * of A, `lda` slots of one number apart, times a panel of `depth` rows of B. */
    void (*chains)(const struct tf_mma_plan *plan, const float *a,
                   const uint32_t *a_exponents, size_t lda, const float *b,
                   const uint32_t *b_exponents, size_t depth, size_t rows, float *c,
                   size_t ldc);
    /* Of n numbers of rows, biased, each twice in a word; of panels, n / columns rows of
     * them, two columns to a word. */
    void (*exponents_of_rows)(const float *in, size_t n,
                              struct tf_tensor_exponents exponents, uint32_t *out);
    void (*exponents_of_columns)(const float *in, size_t n,
                                 struct tf_tensor_exponents exponents, uint32_t *out);
};

/* Blocks with a common scale, for one element: see quantize_block.h. All blocks are whole
 * and lie one after the other, `draws` like the numbers. */
struct tf_block_plan;

struct tf_block_loops {
    void (*quantize)(const struct tf_block_plan *plan, const float *x, size_t count,
                     const uint64_t *draws, uint8_t *codes, uint8_t *scales,
                     uint8_t *residuals);
    /* What dequantize makes of what quantize makes. */
    void (*round)(const struct tf_block_plan *plan, const float *x, size_t count,
                  const uint64_t *draws, float *out);
    /* To nearest, or to odd. */
    void (*dequantize)(const struct tf_block_plan *plan, const uint8_t *codes,
                       const uint8_t *scales, const uint8_t *residuals, size_t count,
                       int odd, float *out);
};

/* Chains of instructions whose operands have scales: see scaled_mma.c. */
enum {
    TF_SCALED_K = 512,     /* that is multiplied at a time: whole instructions */
    TF_SCALED_LONGEST = 64 /* instruction */
};

/* Elements of a row of A or a column of B, filled up to whole instructions with zeros,
 * and as tf_scaled_instruction has them. */
struct tf_scaled_line {
    /* Group 1: significands, with TF_SCALED_BITS fraction bits and the sign; exponents,
     * with those of their scales. Else: twice the elements; the scale of each group. */
    int32_t significands[TF_SCALED_K], exponents[TF_SCALED_K];
    int32_t factors[TF_SCALED_K]; /* else: the scales' significands */
    uint32_t bits[TF_SCALED_K];
    uint8_t scales[TF_SCALED_K];
    /* Of each instruction: whether an element is Inf or NaN, or a scale is NaN. */
    uint8_t special[TF_SCALED_K];
};

struct tf_scaled {
    /* Goes on with the accumulators c of one row, and columns, over k elements. */
    void (*chains)(const struct tf_scaled_model *model, const struct tf_scaled_line *row,
                   const struct tf_scaled_line *columns, size_t count, size_t k,
                   float *c);
    /* sums = fma(scale * scales, block, sums), the first product rounded; NaN is the
     * tensor core's. */
    void (*promote)(const float *block, float scale, const float *scales, float *sums,
                    size_t n);
};

/* Products of vectors: TF_DOT_CHAINS chains at a time, or TF_DOT_LINES. */
enum { TF_DOT_CHAINS = 16, TF_DOT_LINES = 2 * TF_DOT_CHAINS, TF_DOT_WHOLE = 64 };

/* Lines of contiguous items, and what they are multiplied with. */
struct tf_dot_operands {
    const char *const *a, *const *b; /* where TF_DOT_LINES lines begin */
    /* If given, the same numbers for all lines, with -0 behind up to a multiple of
     * TF_DOT_WHOLE; b is not read. */
    const float *numbers;
    const struct tf_byte_table *table; /* of items of a byte */
    float unit;                        /* of products of its integers */
    uint32_t used;                     /* bits of float32 items that count */
};

/* The chains of the first `count` lines; more sums may be written. */
typedef void tf_dot_fn(const struct tf_dot_operands *in, size_t depth, size_t count,
                       float *sums);

struct tf_dot {
    /* Numbers of the same k side by side, of TF_DOT_CHAINS chains. */
    void (*lanes)(const float *a, const float *b, size_t depth, float *sums);
    /* Of items of a byte, of bfloat16, of float32; NULL: see lanes. */
    tf_dot_fn *bytes, *halves, *singles;
};

/* Parts of products of small integers, where there is an instruction for them: see
 * matmul/kernels/int8_dot.c. The integers are those of codes of up to six bits; on the side of A none has a
 * sign. */
struct tf_int8_kernels {
    struct tf_kernel kernel; /* a term's scale is the unit of its products */
    /* Lines along k, `step` bytes apart, to slots: `ld` from line to line. */
    void (*lay_lines)(const int8_t integers[64], int unsigned_side, const char *lines,
                      ptrdiff_t step, size_t count, size_t depth, float *out,
                      size_t ld);
    /* Rows of numbers of one k, `step` bytes apart, to panels of `width`, each `slots`
     * long. */
    void (*lay_rows)(const int8_t integers[64], int unsigned_side, const char *rows,
                     ptrdiff_t step, size_t depth, size_t columns, size_t width,
                     size_t slots, float *out);
    /* The first slots of the chains of B's panels. */
    void (*begin_chains)(float *panels, size_t columns, size_t width, size_t slots);
    tf_dot_fn *dot; /* of items of a byte whose table has integers */
};

/* Sums of numbers in float64, their squares' and, as bits, their greatest magnitude and
 * the least but zero, less one: what there was before goes on. See moments.c. */
struct tf_moments {
    double sum, squares;
    int32_t greatest, least;
};

/* The same of lines side by side; `squares` may be NULL. */
struct tf_moment_rows {
    double *sums, *squares;
    int32_t *greatest, *least;
};

enum { TF_MOMENT_ROWS = 4 }; /* at a time */

struct tf_moment_loops {
    /* A line of numbers, without its squares and with them; of products of two. */
    void (*numbers)(const float *in, size_t n, struct tf_moments *moments);
    void (*squares)(const float *in, size_t n, struct tf_moments *moments);
    void (*products)(const float *in, const float *weights, size_t n,
                     struct tf_moments *moments);
    /* TF_MOMENT_ROWS rows, TF_CHUNK apart, of n numbers, each of another line. */
    void (*side_by_side)(const float *in, size_t n,
                         const struct tf_moment_rows *found);
    /* value 2^exponent goes on; in the end value is in [1, 2), zero or not finite. */
    void (*multiply)(const float *in, size_t n, double *value, int64_t *exponent);
    /* Numbers that are NaN, or have a zero in the mask, become `nothing`. How many
     * remain, and, if `counts` is given, one more in each place where one remains. */
    size_t (*leave_out_nans)(float *x, size_t n, float nothing, double *counts);
    size_t (*leave_out_masked)(float *x, size_t n, const uint8_t *mask, int nans,
                               float nothing, double *counts);
};

struct tf_isa {
    const struct tf_conversions *conversions;

    /* By enum tf_number_kind, NumPy's but float16: to float32, to odd, and back; NULL
     * where it is float32 already. */
    tf_unpack_fn *const *loads;
    tf_store_fn *const *stores;

    /* Round to odd: a later rounding to 22 bits or fewer is as if single. */
    void (*narrow)(const double *in, float *out, size_t n);
    void (*widen)(const float *in, double *out, size_t n);

    tf_binary_f32_fn *const *binary_f32; /* NULL where float32 is not wide enough */
    tf_binary_f64_fn *const *binary_f64;
    /* Near the exact results, or NaN; NULL but for functions of the C library. */
    tf_binary_f64_fn *const *binary_near;
    /* Which of such results do not tell what rounding to bfloat16 or tf32 gives: how
     * many, at most TF_CHUNK, and their indices. */
    size_t (*doubtful)(const double *r, size_t n, int mantissa_bits, uint16_t *which);
    const struct tf_fused *fused; /* by operation */
    tf_quick_fn *const (*quick)[2]; /* of tf32 and bfloat16 */
    tf_quick_fn *const (*quick_near)[2]; /* from TF_QUICK_NEAR on */
    const struct tf_parts *parts;
    tf_compare_fn *const *compare;
    void (*are_near)(struct tf_nearness nearness, const float *a, const float *b,
                     uint8_t *r, size_t n);
    const struct tf_by_size *extreme; /* of maximum, minimum, fmax, fmin */
    const struct tf_by_size *compare_items;
    const struct tf_by_size *sign; /* of one operand: both are that */
    tf_predicate_fn *const (*predicate)[2]; /* of items of tf32 and bfloat16 */
    /* Every NaN becomes the positive quiet one; whether some number is not finite. */
    int (*canonical_nans)(float *x, size_t n);
    /* What results r from a certain magnitude on raised, and Inf and NaN among them.
     * Inf from finite numbers is a pole, or, if it may overflow, that too. */
    unsigned (*exceptions)(uint32_t beyond, int overflows, const float *a, const float *b,
                           const float *r, size_t n);

    /* out[i] = table[in[i]] for bytes. */
    void (*lookup)(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n);

    /* Every second of 2 n items, of 1, 2, 4, 8 or 16 bytes; n items of 4 or 8 bytes,
     * each followed by a zero. */
    void (*copy_seconds)(size_t itemsize, const char *in, char *out, size_t n);
    void (*pair_with_zeros)(size_t itemsize, const char *restrict in,
                            char *restrict out, size_t n);

    /* Indices of the results that are enough; and the sign of odd functions,
     * with what of `wanted` results such as these may have raised. */
    void (*compress_index)(const struct tf_index_bounds *bounds, const uint16_t *in,
                    uint16_t *index, size_t n);
    unsigned (*expand_result)(const struct tf_index_bounds *bounds, const uint16_t *in,
                          const uint16_t *results, uint16_t *out, size_t n,
                          unsigned wanted);

    /* Running sums and products in float64, side by side: see reduce.c. A product is a
     * value times a power of two, and `results` that in one number. */
    void (*add_wide)(const float *in, double *values, size_t n);
    void (*times_wide)(const float *in, double *values, int64_t *exponents,
                       double *results, size_t n);
    /* Is a result NaN where neither the number was, nor the value before (if given)? */
    int (*makes_nan)(const float *in, const double *before, const double *after,
                     size_t n);
    /* Marks with 1, others with 0, finite numbers whose magnitudes have at least these
     * float64 bits; how many more are marked now. */
    int (*mark_beyond)(const double *in, uint64_t bits, uint8_t *marks, size_t n);

    double (*sum)(const float *in, size_t n); /* in float64, in one fixed order */
    /* Bounds in tf_total_order, of what lies no farther out than `last`: of all, if that
     * is INT32_MAX. Where nothing does they lie beyond it. */
    void (*bounds)(const float *in, size_t n, int32_t last, int32_t *least,
                   int32_t *greatest);
    void (*bf16_bounds)(const uint16_t *in, size_t n, int without_nans, int32_t *least,
                        int32_t *greatest);
    /* The bounds of up to TF_CHUNK bytes' ranks; that of NaN is UINT8_MAX. */
    void (*byte_bounds)(const uint8_t ranks[256], const uint8_t *in, size_t n,
                        int without_nans, uint8_t *least, uint8_t *greatest);

    const struct tf_moment_loops *moments;
    const struct tf_product *product;
    const struct tf_int8_kernels *quads;
    const struct tf_dot *dot;
    const struct tf_block_product *block_product;
    const struct tf_mma_kernels *tensor;
    const struct tf_block_loops *block; /* by element */
    const struct tf_scaled *scaled;
};

/* name -> name_x86_64_v4 in the x86-64-v4 build. */
#define TF_JOIN2(a, b) a##_##b
#define TF_JOIN(a, b) TF_JOIN2(a, b)
#define TF_NAME(name) TF_JOIN(name, TF_ISA)

extern const struct tf_isa *tf_isa; /* the one in use */

#endif
