/* Comparisons, clip and nextafter with numbers that the format may not have. */
#include "ufuncs/exact_compare.h"

#include <math.h>

#include "ufuncs/binary.h"
#include "formats/casts.h"
#include "formats/scalar_ops.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "formats/items.h"
#include "ufuncs/compare.h"

float tf_exact_from_double(double x, int more)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits |= more ? 1 : 0;
    memcpy(&x, &bits, sizeof bits);
    const struct tf_fp saved = tf_fp_begin();
    float odd;
    tf_isa->formats->narrow(&x, &odd, 1);
    tf_fp_end(saved, 0);
    return odd;
}

static float load_exact(const char *item)
{
    float x;
    memcpy(&x, item, sizeof x);
    return x;
}

/* Returns the code of the format's largest number, or of its smallest. */
static uint32_t last_code(struct tf_format f, int is_greatest)
{
    const uint32_t least = f.is_signed ? tf_maximum_magnitude(f) | tf_sign_mask(f) : 0;
    return is_greatest ? tf_maximum_magnitude(f) : least;
}

/* -- comparisons --------------------------------------------------------------------- */

/* A comparison with one exact number, as one with a number of the format if possible. */
struct comparison {
    int is_known; /* all numbers give one result, */
    uint8_t result; /* which is this */
    enum tf_compare_op op;
    char item[4];
};

static struct comparison comparison_with(struct tf_format f, enum tf_compare_op op,
                                         float v)
{
    struct comparison with = {.op = op};
    if (isnan(v)) {
        with.is_known = 1;
        with.result = op == TF_NOT_EQUAL;
        return with;
    }
    /* 1. Find the nearest number, or the largest or smallest if the format has none. */
    unsigned ignored = 0;
    uint32_t code = tf_code_from_double(f, v, &ignored);
    if (tf_is_nan(f, code)) {
        code = last_code(f, v > 0);
    }
    tf_store_code(f, with.item, code);
    /* 2. Adapt the comparison: no number of the format is between `nearest` and v. */
    const double nearest = tf_double_from_code(f, code);
    const int is_below = nearest < v;
    if (nearest == v) {
        return with;
    }
    switch (op) {
    case TF_LESS:
    case TF_LESS_EQUAL: with.op = is_below ? TF_LESS_EQUAL : TF_LESS; break;
    case TF_GREATER:
    case TF_GREATER_EQUAL: with.op = is_below ? TF_GREATER : TF_GREATER_EQUAL; break;
    case TF_EQUAL:
    case TF_NOT_EQUAL:
    case TF_COMPARE_COUNT:
        with.is_known = 1;
        with.result = op == TF_NOT_EQUAL;
    }
    return with;
}

void tf_exact_compare(int format, enum tf_compare_op op, int exact, char *const data[3],
                      const ptrdiff_t strides[3], ptrdiff_t n)
{
    if (strides[exact] != 0) {
        tf_compare_kinds(exact == 0 ? TF_FLOAT32 : format,
                         exact == 1 ? TF_FLOAT32 : format, op, data, strides, n);
        return;
    }
    struct comparison with =
        comparison_with(*tf_format_rows[format], exact == 0 ? tf_mirrored[op] : op,
                        load_exact(data[exact]));
    if (!with.is_known) {
        char *const same[3] = {data[1 - exact], with.item, data[2]};
        const ptrdiff_t same_strides[3] = {strides[1 - exact], 0, strides[2]};
        tf_compare(format, with.op, same, same_strides, n);
        return;
    }
    const char result = (char)with.result;
    tf_copy(1, data[2], strides[2], &result, 0, (size_t)n);
}

/* -- bounds ---------------------------------------------------------------------------- */

/* Rounds a number within the format's range to the format; returns others unchanged. */
static float round_within_range(struct tf_format f, float v, unsigned *flags)
{
    unsigned raised = 0;
    const uint32_t code = tf_code_from_double(f, v, &raised);
    if (!isnan(v) && raised & (TF_OVER | TF_INVALID)) {
        return v;
    }
    *flags |= raised;
    return (float)tf_double_from_code(f, code);
}

/* Writes the item of one exact number. Returns 0 if it is out of the format's range. */
static int item_of(struct tf_format f, const char *exact, char item[4], unsigned *flags)
{
    const float v = round_within_range(f, load_exact(exact), flags);
    unsigned raised = 0;
    tf_store_code(f, item, tf_code_from_double(f, v, &raised));
    return !(raised & (TF_OVER | TF_INVALID));
}

struct bounded {
    struct loop_operand operand;
    int is_exact;
    _Alignas(64) float rounded[TF_CHUNK];
};

static void bounded_begin(struct bounded *x, const char *data, ptrdiff_t stride,
                          int is_exact)
{
    operand_begin(&x->operand, data, stride, 1);
    x->is_exact = is_exact;
}

static const float *bounded_next(struct bounded *x, int format, size_t n,
                                 unsigned *flags)
{
    if (!x->is_exact) {
        return operand_next(&x->operand, format, n);
    }
    const int is_known = x->operand.has_numbers;
    const float *numbers = operand_next(&x->operand, TF_FLOAT32, n);
    for (size_t i = 0; i < n && !is_known; i++) {
        x->rounded[i] =
            i > 0 && x->operand.stride == 0
                ? x->rounded[0]
                : round_within_range(*tf_format_rows[format], numbers[i], flags);
    }
    return x->rounded;
}

/* Writes the items of n results. Returns the flags of those that overflow. */
static unsigned store_results(int format, float *r, char *out, ptrdiff_t stride, size_t n)
{
    TF_BUFFER(buffer);
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    const size_t itemsize = tf_format_rows[format]->itemsize;
    void *target = tf_target(out, stride, itemsize, buffer);
    tf_isa->formats->canonical_nans(r, n);
    const struct tf_flag_hints hints = conversions->from_float32(r, target, n);
    const unsigned flags = tf_rounding_flags(format, hints, r, target, n, 0);
    tf_scatter(target, out, stride, itemsize, n);
    return flags;
}

void tf_exact_extreme(int format, enum tf_binary_op op, int exact, char *const data[3],
                      const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct tf_format f = *tf_format_rows[format];
    unsigned flags = 0;
    char item[4];
    if (strides[exact] == 0 && item_of(f, data[exact], item, &flags)) {
        char *const same[3] = {exact == 0 ? item : data[0], exact == 1 ? item : data[1],
                               data[2]};
        tf_extreme(format, op, same, strides, n);
        tf_fp_end(saved, flags);
        return;
    }
    struct bounded a, b;
    _Alignas(64) float r[TF_CHUNK];
    bounded_begin(&a, data[0], strides[0], exact == 0);
    bounded_begin(&b, data[1], strides[1], exact == 1);
    char *out = data[2];
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const float *x = bounded_next(&a, format, count, &flags);
        const float *y = bounded_next(&b, format, count, &flags);
        tf_isa->ufuncs->binary_f32[op](x, y, r, count);
        flags |= store_results(format, r, out, strides[2], count);
        out += (ptrdiff_t)count * strides[2];
    }
    tf_fp_end(saved, flags);
}

void tf_exact_clip(int format, int x_is_exact, char *const data[4],
                   const ptrdiff_t strides[4], ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct tf_format f = *tf_format_rows[format];
    unsigned flags = 0;
    char low_item[4], high_item[4];
    if (!x_is_exact && strides[1] == 0 && strides[2] == 0 &&
        item_of(f, data[1], low_item, &flags) && item_of(f, data[2], high_item, &flags)) {
        char *const same[4] = {data[0], low_item, high_item, data[3]};
        tf_clip(format, same, strides, n);
        tf_fp_end(saved, flags);
        return;
    }
    struct bounded a, low, high;
    _Alignas(64) float r[TF_CHUNK];
    bounded_begin(&a, data[0], strides[0], x_is_exact);
    bounded_begin(&low, data[1], strides[1], 1);
    bounded_begin(&high, data[2], strides[2], 1);
    char *out = data[3];
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const float *x = bounded_next(&a, format, count, &flags);
        tf_isa->ufuncs->binary_f32[TF_MAXIMUM](x, bounded_next(&low, format, count, &flags), r,
                                       count);
        tf_isa->ufuncs->binary_f32[TF_MINIMUM](r, bounded_next(&high, format, count, &flags), r,
                                       count);
        flags |= store_results(format, r, out, strides[3], count);
        out += (ptrdiff_t)count * strides[3];
    }
    tf_fp_end(saved, flags);
}

/* -- the next number ------------------------------------------------------------------- */

/* An exact number that nextafter goes toward. */
struct goal {
    uint32_t rounded; /* its rounding to the format, */
    unsigned flags;   /* which raises these */
    int is_beyond;    /* out of the format's range */
    uint32_t toward;  /* the number of the format on its side */
};

static struct goal goal_of(struct tf_format f, float v)
{
    struct goal goal = {.flags = 0};
    goal.rounded = tf_code_from_double(f, v, &goal.flags);
    goal.is_beyond = !isnan(v) && goal.flags & (TF_OVER | TF_INVALID);
    goal.toward = goal.is_beyond ? last_code(f, v > 0) : goal.rounded;
    return goal;
}

void tf_exact_nextafter(int format, char *const data[3], const ptrdiff_t strides[3],
                        ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct tf_format f = *tf_format_rows[format];
    struct goal goal = {0};
    unsigned flags = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i == 0 || strides[1] != 0) {
            goal = goal_of(f, load_exact(data[1] + i * strides[1]));
        }
        const uint32_t from = tf_load_code(f, data[0] + i * strides[0]);
        uint32_t next;
        if (goal.is_beyond && from == goal.toward) {
            next = goal.rounded;
            flags |= goal.flags;
        } else {
            next = tf_nextafter(f, from, goal.toward, &flags);
            flags |= goal.is_beyond ? 0 : goal.flags;
        }
        tf_store_code(f, data[2] + i * strides[2], next);
    }
    tf_fp_end(saved, flags);
}
