/* A binary operation on a chunk of arbitrary numbers: in float64, exactly if a result is
 * near a tie, then one rounding and the flags. Tables of all pairs are made by it, too. */
#include "ufuncs/binary_chunk.h"

#include <math.h>

#include "formats/casts.h"
#include "formats/fast_codec.h"
#include "ufuncs/exact_binary.h"
#include "ufuncs/special_results.h"

const struct tf_binary_row tf_binary_rows[TF_BINARY_COUNT] = {
#define ROW(op, name, expression, ...) [TF_##op] = {#name, __VA_ARGS__},
    TF_BINARY_OPS(ROW)
#undef ROW
};

/* Properties of an operation that only the general path needs. */
struct operation {
    double (*odd)(double, double); /* recomputes doubtful results */
    uint8_t cancels;               /* a small result may have lost some digits, or all */
    uint8_t near_is_sure;          /* results of kernels/plain/near.c are not in doubt */
};

/* Returns x**y. Small powers are exact in double, and often halfway between two numbers. */
static double odd_power(double x, double y)
{
    return y == 2   ? x * x
           : y == 3 ? x * x * x
           : y == 4 ? (x * x) * (x * x)
                    : tf_odd_power(x, y);
}

static const struct operation operations[TF_BINARY_COUNT] = {
    [TF_POWER] = {.odd = odd_power},
    [TF_ARCTAN2] = {.odd = tf_odd_arctan2},
    [TF_HYPOT] = {.near_is_sure = 1},
    [TF_LOGADDEXP] = {.odd = tf_odd_logaddexp, .cancels = 1},
    [TF_LOGADDEXP2] = {.odd = tf_odd_logaddexp2, .cancels = 1},
};

/* Returns whether r is within 16 ulps of double of a number halfway between two of the
 * format's, or may underflow, which depends on whether r is exact. Below a quarter of the
 * smallest number r rounds to zero and is inexact, whatever r is precisely. */
static int is_doubtful(struct tf_format f, double r)
{
    enum { DOUBT = 16 };
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    const int least = tf_least_exponent(f), least_normal = least + f.mantissa_bits;
    const uint64_t magnitude = bits & INT64_MAX;
    if (magnitude <= ((uint64_t)(least_normal + 1023) << 52) + DOUBT) {
        return magnitude >= (uint64_t)(least - 2 + 1023) << 52;
    }
    const uint64_t half = UINT64_C(1) << (51 - f.mantissa_bits);
    const uint64_t rest = bits & (2 * half - 1);
    return (rest > half ? rest - half : half - rest) <= DOUBT;
}

/* Replaces results that double leaves in doubt by the exact ones, rounded to odd. */
static void recompute_exactly(struct tf_format f, const struct operation *operation,
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

/* Computes results by kernels/plain/near.c, and the doubtful ones in double or exactly. */
static void compute_near(struct tf_format f, enum tf_binary_op op, const float *a,
                         const float *b, double *wide, size_t n)
{
    uint16_t which[TF_CHUNK];
    tf_isa->ufuncs->binary_near[op](a, b, wide, n);
    const size_t count = tf_isa->ufuncs->doubtful(wide, n, f.mantissa_bits, which);
    for (size_t k = 0; k < count; k++) {
        const size_t i = which[k];
        if (tf_special_result(op, a[i], b[i], wide + i)) {
            continue;
        }
        tf_isa->ufuncs->binary_f64[op](a + i, b + i, wide + i, 1);
        if (operations[op].odd) {
            recompute_exactly(f, &operations[op], a + i, b + i, wide + i, 1);
        }
    }
}

/* Computes results in double, and rounds them to odd to float32. */
static void compute_in_double(struct tf_format f, enum tf_binary_op op, const float *a,
                              const float *b, double *wide, float *r, size_t n)
{
    if (operations[op].near_is_sure) {
        tf_isa->ufuncs->binary_near[op](a, b, wide, n);
    } else if (tf_isa->ufuncs->binary_near[op] && f.itemsize > 1) {
        compute_near(f, op, a, b, wide, n);
    } else {
        tf_isa->ufuncs->binary_f64[op](a, b, wide, n);
        if (operations[op].odd) {
            recompute_exactly(f, &operations[op], a, b, wide, n);
        }
    }
    tf_isa->formats->narrow(wide, r, n);
}

unsigned tf_binary_chunk(int format, enum tf_binary_op op, const float *a,
                         const float *b, void *out, size_t n)
{
    const struct tf_format f = *tf_format_rows[format];
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    _Alignas(64) float r[TF_CHUNK];

    /* 1. The results. */
    if (tf_binary_rows[op].silent) {
        tf_isa->ufuncs->binary_f32[op](a, b, r, n);
    } else {
        double wide[TF_CHUNK];
        compute_in_double(f, op, a, b, wide, r, n);
    }

    /* 2. One rounding. */
    const struct tf_flag_hints suspects = conversions->from_float32(r, out, n);
    if (suspects.beyond) {
        tf_isa->formats->canonical_nans(r, n);
        conversions->from_float32(r, out, n);
    }

    /* 3. Exceptions. Overflow never gives Inf (see tf_power_of), so Inf means a pole. */
    if (tf_binary_rows[op].silent || (!suspects.beyond && !suspects.tiny)) {
        return 0;
    }
    const unsigned rounding = tf_rounding_flags(format, suspects, r, out, n, 0);
    if (f.specials == TF_EXPONENT_ONLY) {
        return rounding;
    }
    return (rounding & TF_UNDER) | tf_isa->ufuncs->exceptions(tf_beyond(f), a, b, r, n);
}

/* Computes the results and the flags of n pairs, for tf_pair_table. */
static void binary_pairs(int format, int op, const uint8_t *a, const uint8_t *b,
                         uint8_t *results, uint8_t *flags, size_t n)
{
    float x[TF_CHUNK], y[TF_CHUNK];
    tf_isa->formats->conversions[format].to_float32(a, x, n);
    tf_isa->formats->conversions[format].to_float32(b, y, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned raised =
            tf_binary_chunk(format, (enum tf_binary_op)op, &x[i], &y[i], &results[i], 1);
        flags[i] = (uint8_t)raised;
    }
}

const struct tf_pair_table *tf_binary_table(int format, enum tf_binary_op op,
                                            ptrdiff_t n)
{
    return tf_pair_table(format, (int)op, n, binary_pairs);
}
