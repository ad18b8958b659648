/* Binary operations on a few items, one by one: the overhead of a call dominates. */
#include "ufuncs/few.h"

#include <math.h>
#include <string.h>

#include "ufuncs/binary_chunk.h"
#include "ufuncs/common_ops.h"
#include "formats/fast_codec.h"
#include "formats/scalar_ops.h"
#include "runtime/fp_environment.h"
#include "runtime/indices.h"
#include "ufuncs/pair_tables.h"
#include "ufuncs/special_results.h"
#include "ufuncs/surely.h"

/* -- items of tf32 and bfloat16 ------------------------------------------------------ */

TF_INLINE uint32_t load(const char *item, size_t itemsize)
{
    if (itemsize == 2) {
        uint16_t bf16;
        memcpy(&bf16, item, sizeof bf16);
        return (uint32_t)bf16 << 16;
    }
    uint32_t word;
    memcpy(&word, item, sizeof word);
    return word;
}

TF_INLINE void store(char *item, size_t itemsize, uint32_t bits)
{
    const uint16_t bf16 = (uint16_t)(bits >> 16);
    memcpy(item, itemsize == 2 ? (const void *)&bf16 : (const void *)&bits, itemsize);
}

/* Whether a step is done, and whether its operations may have raised flags wrongly. */
enum { IN_DOUBT, DONE, DONE_RARELY };

/* Does a step with a rare result: an operand that is Inf or NaN, zero, or a result below
 * the normal numbers. Float64 holds products, and the second rounding of other results is
 * right (see elementwise.c). */
static __attribute__((noinline)) int step_rarely(enum tf_binary_op op, struct tf_format f,
                                                 float x, float y, uint32_t *item,
                                                 unsigned *flags)
{
    if (isnan(x) || isnan(y)) {
        *item = TF_QUIET_NAN_BITS;
        return DONE_RARELY;
    }
    const double a = x, b = y;
    const double result = op == TF_ADD        ? a + b
                          : op == TF_SUBTRACT ? a - b
                          : op == TF_MULTIPLY ? a * b
                                              : a / b;
    if (result == 0 || (isinf(result) && (isinf(x) || isinf(y)))) {
        *item = tf_bits_of((float)result);
        return DONE_RARELY;
    }
    uint32_t code;
    if (!isfinite(result) || !tf_round_usual(f, result, &code, flags)) {
        return IN_DOUBT;
    }
    *item = code << tf_cut(f);
    return DONE_RARELY;
}

/* Does a step in float32, which is wide enough for items that are its upper bits (see
 * fused.c). step_rarely does results out of range, or that may have lost digits. */
TF_INLINE int step(enum tf_binary_op op, struct tf_format f, uint32_t a, uint32_t b,
                   uint32_t *item, unsigned *flags)
{
    const int cut = tf_cut(f);
    const uint32_t used = UINT32_MAX << cut;
    const uint32_t least = tf_least_normal(f), beyond = tf_beyond(f);
    const float x = tf_float_of(a & used), y = tf_float_of(b & used);
    const uint32_t bits = tf_bits_of(tf_common_result(op, x, y));
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
    *item = tf_encode_upper_bits(f, bits) << cut;
    const int is_exact = op == TF_ADD || op == TF_SUBTRACT; /* if they are tiny */
    const int is_zero = x == 0 || (op == TF_MULTIPLY && y == 0);
    if (is_exact ? magnitude < beyond
                 : magnitude - least < beyond - least || (magnitude == 0 && is_zero)) {
        return DONE;
    }
    return step_rarely(op, f, x, y, item, flags);
}

/* Does a step of an operation that kernels/plain/near.c computes. */
TF_INLINE int step_near(enum tf_binary_op op, tf_binary_f64_fn *near, struct tf_format f,
                        uint32_t a, uint32_t b, uint32_t *item, unsigned *flags)
{
    const uint32_t used = UINT32_MAX << tf_cut(f);
    const float x = tf_float_of(a & used), y = tf_float_of(b & used);
    double result;
    uint64_t bits;
    uint32_t code;
    near(&x, &y, &result, 1);
    memcpy(&bits, &result, sizeof bits);
    *item = tf_surely_rounded(result, f.mantissa_bits);
    if (tf_rounds_surely(bits & INT64_MAX, f.mantissa_bits)) {
        return DONE;
    }
    const int is_special = tf_special_result(op, x, y, &result);
    if (result == 0 || (is_special && !isfinite(result))) {
        *item = isnan(result) ? TF_QUIET_NAN_BITS : tf_bits_of((float)result);
        return DONE;
    }
    const int is_sure = is_special || op == TF_HYPOT ||
                        tf_tiny_rounds_surely(result, f.mantissa_bits);
    if (!is_sure || !tf_round_usual(f, result, &code, flags)) {
        return IN_DOUBT;
    }
    *item = code << tf_cut(f);
    return DONE;
}

/* The first operand and the result of each step: items of an array in order, or items that
 * indices name. */
struct steps {
    const char *x, *y, *indices;
    char *out;
    ptrdiff_t x_stride, y_stride, out_stride, index_stride;
    ptrdiff_t size, n;
    unsigned *flags;
    int *is_rare; /* whether a step returned DONE_RARELY */
};

/* Returns the address of the item that the i-th index names, for ufunc.at. */
TF_INLINE char *place_of(struct steps s, ptrdiff_t i)
{
    return s.out + tf_index_at(s.indices, s.index_stride, s.size, i) * s.out_stride;
}

TF_INLINE ptrdiff_t step_all(enum tf_binary_op op, tf_binary_f64_fn *near,
                             struct tf_format f, struct steps s)
{
    /* Whether each first operand is the previous result, which need not be read again. */
    const int goes_on = !s.indices && s.out - s.x == s.out_stride &&
                        s.x_stride == s.out_stride;
    uint32_t item = goes_on && s.n > 0 ? load(s.x, f.itemsize) : 0;
    for (ptrdiff_t i = 0; i < s.n; i++) {
        const char *x = s.x + i * s.x_stride, *y = s.y + i * s.y_stride;
        char *out = s.out + i * s.out_stride;
        if (s.indices) {
            if (i < s.n - TF_INDICES_AHEAD) {
                __builtin_prefetch(place_of(s, i + TF_INDICES_AHEAD), 1);
            }
            x = out = place_of(s, i);
        }
        const uint32_t a = goes_on ? item : load(x, f.itemsize);
        const uint32_t b = load(y, f.itemsize);
        const int how = near ? step_near(op, near, f, a, b, &item, s.flags)
                             : step(op, f, a, b, &item, s.flags);
        if (how == IN_DOUBT) {
            return i;
        }
        *s.is_rare |= how == DONE_RARELY;
        store(out, f.itemsize, item);
    }
    return s.n;
}

TF_INLINE ptrdiff_t step_format(struct tf_format f, enum tf_binary_op op, struct steps s)
{
    switch (op) {
    case TF_ADD: return step_all(TF_ADD, NULL, f, s);
    case TF_SUBTRACT: return step_all(TF_SUBTRACT, NULL, f, s);
    case TF_MULTIPLY: return step_all(TF_MULTIPLY, NULL, f, s);
    case TF_TRUE_DIVIDE: return step_all(TF_TRUE_DIVIDE, NULL, f, s);
    default: return step_all(op, tf_isa->ufuncs->binary_near[op], f, s);
    }
}

TF_INLINE ptrdiff_t step_any(int format, enum tf_binary_op op, struct steps s)
{
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    int is_rare = 0;
    s.flags = &flags;
    s.is_rare = &is_rare;
    const ptrdiff_t done = tf_format_rows[format]->itemsize == 2
                               ? step_format(tf_bfloat16, op, s)
                               : step_format(tf_tf32, op, s);
    /* A step in doubt, a rare step and binary_near may have raised flags wrongly. */
    if (done < s.n || is_rare || tf_isa->ufuncs->binary_near[op]) {
        tf_fp_end(saved, flags);
    } else {
        tf_fp_end_quietly(saved, 0);
    }
    return done;
}

/* Returns whether an operation has such steps. */
static int has_steps(enum tf_binary_op op)
{
    return tf_isa->ufuncs->fused[op].powers || tf_isa->ufuncs->binary_near[op];
}

/* -- entries ---------------------------------------------------------------------------- */

TF_INLINE ptrdiff_t few(int format, enum tf_binary_op op, char *const data[3],
                        const ptrdiff_t strides[3], struct steps steps)
{
    if (!has_steps(op)) {
        return 0;
    }
    if (tf_format_rows[format]->itemsize > 1) {
        return step_any(format, op, steps);
    }
    const struct tf_pair_table *table = tf_binary_table(format, op, steps.n);
    if (!table) {
        return 0;
    }
    const struct tf_fp saved = tf_fp_begin();
    tf_fp_end_quietly(
        saved, steps.indices
                   ? tf_look_up_pairs_at(table, data, strides, steps.size, steps.n)
                   : tf_look_up_pairs(table, data, strides, steps.n, 1));
    return steps.n;
}

ptrdiff_t tf_few(int format, enum tf_binary_op op, char *const data[3],
                 const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct steps steps = {
        .x = data[0], .x_stride = strides[0],
        .y = data[1], .y_stride = strides[1],
        .out = data[2], .out_stride = strides[2],
        .n = n,
    };
    return few(format, op, data, strides, steps);
}

ptrdiff_t tf_few_at(int format, enum tf_binary_op op, char *const data[3],
                    const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n)
{
    const struct steps steps = {
        .out = data[0], .out_stride = strides[0],
        .indices = data[1], .index_stride = strides[1],
        .y = data[2], .y_stride = strides[2],
        .size = size, .n = n,
    };
    return few(format, op, data, strides, steps);
}
