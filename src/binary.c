#include "binary.h"

#include <math.h>

#include "fpstatus.h"
#include "operand.h"
#include "wide.h"

/* What the general path needs to know of an operation. */
struct operation {
    double (*odd)(double, double); /* settles what double leaves in doubt */
    uint8_t cancels;               /* a small result may have lost its digits, or all */
    uint8_t silent;                /* exact: raises nothing */
    uint8_t vanishes;              /* may leave float32's range for zero */
};

static const struct operation operations[TF_BINARY_COUNT] = {
    [TF_MULTIPLY] = {.vanishes = 1},
    [TF_TRUE_DIVIDE] = {.vanishes = 1},
    [TF_POWER] = {.odd = tf_odd_power},
    [TF_ARCTAN2] = {.odd = tf_odd_arctan2},
    [TF_HYPOT] = {.odd = tf_odd_hypot},
    [TF_LOGADDEXP] = {.odd = tf_odd_logaddexp, .cancels = 1},
    [TF_LOGADDEXP2] = {.odd = tf_odd_logaddexp2, .cancels = 1},
    [TF_HEAVISIDE] = {.silent = 1},
    [TF_MAXIMUM] = {.silent = 1},
    [TF_MINIMUM] = {.silent = 1},
    [TF_FMAX] = {.silent = 1},
    [TF_FMIN] = {.silent = 1},
};

/* The exceptions of results in float64 that were rounded to a format. */
static unsigned flags_of(struct tf_format f, const float *a, const float *b,
                         const double *r, size_t n)
{
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(r[i])) {
            flags |= isnan(a[i]) || isnan(b[i]) ? 0 : TF_INVALID;
        } else if (isinf(r[i])) {
            /* Overflow never gives Inf here (see power_of): this is a pole. */
            flags |= isfinite(a[i]) && isfinite(b[i]) ? TF_DIVIDE : 0;
        } else {
            uint64_t bits;
            memcpy(&bits, &r[i], sizeof bits);
            tf_encode(f, tf_value_from_double_bits(bits), TF_TIES_TO_EVEN,
                      TF_OVERFLOW_IEEE, 0, &flags);
        }
    }
    return flags;
}

/* Is r within 16 units of double's last place of a number halfway between two
 * of the format's, or small enough to underflow, which depends on its being
 * exact? */
static int is_doubtful(struct tf_format f, double r)
{
    enum { DOUBT = 16 };
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    const int least_normal = tf_least_exponent(f) + f.mantissa_bits;
    const uint64_t magnitude = bits & INT64_MAX;
    if (magnitude <= ((uint64_t)(least_normal + 1023) << 52) + DOUBT) {
        return r != 0;
    }
    const uint64_t half = UINT64_C(1) << (51 - f.mantissa_bits);
    const uint64_t rest = bits & (2 * half - 1);
    return (rest > half ? rest - half : half - rest) <= DOUBT;
}

static void settle(struct tf_format f, const struct operation *operation,
                   const float *a, const float *b, double *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]) || !isfinite(r[i])) {
            continue;
        }
        const int lost = operation->cancels &&
                         fabs(r[i]) <= fminf(fabsf(a[i]), fabsf(b[i])) * 0x1p-2;
        if (lost || is_doubtful(f, r[i])) {
            r[i] = operation->odd(a[i], b[i]);
        }
    }
}

/* The results in double, rounded to odd to float32. */
static void compute_in_double(struct tf_format f, enum tf_binary_op op, const float *a,
                              const float *b, double *wide, float *r, size_t n)
{
    tf_isa->binary_f64[op](a, b, wide, n);
    if (operations[op].odd) {
        settle(f, &operations[op], a, b, wide, n);
    }
    tf_isa->narrow(wide, r, n);
}

static unsigned binary_block(int format, enum tf_binary_op op, const float *a,
                             const float *b, void *out, size_t n)
{
    const struct tf_format f = *tf_format_rows[format];
    const struct operation *operation = &operations[op];
    const struct tf_conversions *conversions = &tf_isa->formats[format];
    _Alignas(64) float r[TF_BLOCK];
    double wide[TF_BLOCK];

    /* 1. The results, in float32 where they are exact enough there. */
    int in_float32 = tf_isa->binary_f32[op] != NULL &&
                     (f.mantissa_bits <= 7 || operation->silent);
    if (in_float32) {
        tf_isa->binary_f32[op](a, b, r, n);
    } else {
        compute_in_double(f, op, a, b, wide, r, n);
    }

    /* 2. One rounding. What float32 has rounded to zero is a number to e8m0, which
     * has no zero. */
    struct tf_suspects suspects = conversions->pack(r, out, n);
    if (suspects.beyond && in_float32 && operation->vanishes &&
        f.specials == TF_POWERS) {
        compute_in_double(f, op, a, b, wide, r, n);
        suspects = conversions->pack(r, out, n);
        in_float32 = 0;
    }
    if (suspects.beyond) {
        tf_isa->canonical_nans(r, n);
        conversions->pack(r, out, n);
    }

    /* 3. Exceptions, which are rare. */
    const int unusual =
        suspects.beyond || suspects.tiny ||
        (in_float32 && operation->vanishes && tf_isa->vanished(a, b, r, n));
    if (!unusual || operation->silent) {
        return 0;
    }
    if (in_float32) {
        tf_isa->binary_f64[op](a, b, wide, n);
    }
    return flags_of(f, a, b, wide, n);
}

/* A block of bfloat16 by the short path, or 0 if it has to take the long one. */
static int fused_block(enum tf_binary_op op, char *const data[3],
                       const ptrdiff_t strides[3], ptrdiff_t done, size_t n)
{
    TF_BUFFER(a_buffer);
    TF_BUFFER(b_buffer);
    uint16_t results[TF_BLOCK];
    const uint16_t *a =
        tf_gather(data[0] + done * strides[0], strides[0], 2, n, a_buffer);
    const uint16_t *b =
        tf_gather(data[1] + done * strides[1], strides[1], 2, n, b_buffer);
    if (tf_isa->fused[op](a, b, results, n)) {
        return 0;
    }
    char *out = data[2] + done * strides[2];
    if (tf_is_contiguous(out, strides[2], 2)) {
        memcpy(out, results, n * 2);
    } else {
        tf_scatter(results, out, strides[2], 2, n);
    }
    return 1;
}

void tf_binary(int format, enum tf_binary_op op, char *const data[3],
               const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const size_t itemsize = tf_format_rows[format]->itemsize;
    /* A reduction's or an accumulation's step needs the one before it. */
    const int reduces = data[0] == data[2] && strides[0] == 0 && strides[2] == 0;
    const int accumulates =
        data[2] == data[0] + strides[0] && strides[0] == strides[2];
    const int serial = reduces || accumulates;
    const ptrdiff_t block = serial ? 1 : TF_BLOCK;

    const int fused = format == tf_bfloat16_index && tf_isa->fused[op] && !serial;

    TF_BUFFER(buffer);
    struct operand a, b;
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += block) {
        const size_t count = (size_t)(n - done < block ? n - done : block);
        if (fused && fused_block(op, data, strides, done, count)) {
            continue;
        }
        if (done == 0 || fused) {
            operand_begin(&a, data[0] + done * strides[0], strides[0], !serial);
            operand_begin(&b, data[1] + done * strides[1], strides[1], 1);
        }
        char *out = data[2] + done * strides[2];
        const float *x = operand_next(&a, format, count);
        const float *y = operand_next(&b, format, count);
        void *target = tf_target(out, strides[2], itemsize, buffer);
        flags |= binary_block(format, op, x, y, target, count);
        tf_scatter(target, out, strides[2], itemsize, count);
    }
    tf_fp_end(saved, flags);
}

void tf_compare_kinds(int a_kind, int b_kind, enum tf_compare_op op,
                      char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    const int is_bfloat16 = a_kind == tf_bfloat16_index && b_kind == tf_bfloat16_index;
    const struct tf_fp saved = tf_fp_begin();
    TF_BUFFER(buffer);
    TF_BUFFER(a_buffer);
    TF_BUFFER(b_buffer);
    struct operand a, b;
    operand_begin(&a, data[0], strides[0], 1);
    operand_begin(&b, data[1], strides[1], 1);
    char *out = data[2];
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        void *target = tf_target(out, strides[2], 1, buffer);
        if (is_bfloat16) {
            tf_isa->fused_compare[op](
                tf_gather(data[0] + done * strides[0], strides[0], 2, count, a_buffer),
                tf_gather(data[1] + done * strides[1], strides[1], 2, count, b_buffer),
                target, count);
        } else {
            const float *x = operand_next(&a, a_kind, count);
            const float *y = operand_next(&b, b_kind, count);
            tf_isa->compare[op](x, y, target, count);
        }
        tf_scatter(target, out, strides[2], 1, count);
        out += (ptrdiff_t)count * strides[2];
    }
    tf_fp_end(saved, 0);
}

void tf_compare(int format, enum tf_compare_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n)
{
    tf_compare_kinds(format, format, op, data, strides, n);
}

void tf_predicate(int format, enum tf_predicate_op op, char *const data[2],
                  const ptrdiff_t strides[2], ptrdiff_t n)
{
    TF_BUFFER(buffer);
    struct operand a;
    operand_begin(&a, data[0], strides[0], 1);
    char *out = data[1];
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        const float *x = operand_next(&a, format, count);
        void *target = tf_target(out, strides[1], 1, buffer);
        tf_isa->predicate[op](x, target, count);
        tf_scatter(target, out, strides[1], 1, count);
        out += (ptrdiff_t)count * strides[1];
    }
}

void tf_divmod(int format, char *const data[4], const ptrdiff_t strides[4],
               ptrdiff_t n)
{
    /* Either result may be written over an operand: block by block, keep the
     * first until the second is known. */
    TF_BUFFER(quotients);
    const size_t itemsize = tf_format_rows[format]->itemsize;
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const ptrdiff_t count = n - done < TF_BLOCK ? n - done : TF_BLOCK;
        char *at[4];
        for (int i = 0; i < 4; i++) {
            at[i] = data[i] + done * strides[i];
        }
        char *const first[3] = {at[0], at[1], (char *)quotients};
        char *const second[3] = {at[0], at[1], at[3]};
        const ptrdiff_t first_strides[3] = {strides[0], strides[1],
                                            (ptrdiff_t)itemsize};
        const ptrdiff_t second_strides[3] = {strides[0], strides[1], strides[3]};
        tf_binary(format, TF_FLOOR_DIVIDE, first, first_strides, count);
        tf_binary(format, TF_REMAINDER, second, second_strides, count);
        tf_scatter(quotients, at[2], strides[2], itemsize, (size_t)count);
    }
}

void tf_clip(int format, char *const data[4], const ptrdiff_t strides[4], ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const size_t itemsize = tf_format_rows[format]->itemsize;
    TF_BUFFER(buffer);
    _Alignas(64) float r[TF_BLOCK];
    struct operand x, low, high;
    operand_begin(&x, data[0], strides[0], 1);
    operand_begin(&low, data[1], strides[1], 1);
    operand_begin(&high, data[2], strides[2], 1);
    char *out = data[3];
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        tf_isa->binary_f32[TF_MAXIMUM](operand_next(&x, format, count),
                                       operand_next(&low, format, count), r, count);
        tf_isa->binary_f32[TF_MINIMUM](r, operand_next(&high, format, count), r, count);
        tf_isa->canonical_nans(r, count);
        void *target = tf_target(out, strides[3], itemsize, buffer);
        tf_isa->formats[format].pack(r, target, count);
        tf_scatter(target, out, strides[3], itemsize, count);
        out += (ptrdiff_t)count * strides[3];
    }
    tf_fp_end(saved, 0);
}
