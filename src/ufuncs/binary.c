/* Binary operations on strided arrays: which of the ways a call takes (a few items, a
 * fused loop, a table of pairs, float64), and each way but the first. */
#include "ufuncs/binary.h"

#include <math.h>

#include "formats/byte_tables.h"
#include "formats/fast_codec.h"
#include "ufuncs/few.h"
#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "formats/items.h"
#include "ufuncs/compare.h"
#include "ufuncs/pair_tables.h"
#include "ufuncs/exact_binary.h"

const struct tf_binary_row tf_binary_rows[TF_BINARY_COUNT] = {
#define ROW(op, name, expression, ...) [TF_##op] = {#name, __VA_ARGS__},
    TF_BINARY_OPS(ROW)
#undef ROW
};

/* What the general path needs to know of an operation besides. */
struct operation {
    double (*odd)(double, double); /* of what double leaves in doubt */
    uint8_t cancels;               /* a small result may have lost its digits, or all */
};

/* Small powers are exact in double, and often halfway between two numbers. */
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
    [TF_HYPOT] = {.odd = tf_odd_hypot},
    [TF_LOGADDEXP] = {.odd = tf_odd_logaddexp, .cancels = 1},
    [TF_LOGADDEXP2] = {.odd = tf_odd_logaddexp2, .cancels = 1},
};

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

/* By a short way, and of results that this leaves in doubt by the long one. */
static void compute_near(struct tf_format f, enum tf_binary_op op, const float *a,
                         const float *b, double *wide, size_t n)
{
    uint16_t which[TF_CHUNK];
    tf_isa->ufuncs->binary_near[op](a, b, wide, n);
    const size_t count = tf_isa->ufuncs->doubtful(wide, n, f.mantissa_bits, which);
    for (size_t k = 0; k < count; k++) {
        const size_t i = which[k];
        tf_isa->ufuncs->binary_f64[op](a + i, b + i, wide + i, 1);
        if (operations[op].odd) {
            recompute_exactly(f, &operations[op], a + i, b + i, wide + i, 1);
        }
    }
}

/* The results in double, rounded to odd to float32. */
static void compute_in_double(struct tf_format f, enum tf_binary_op op, const float *a,
                              const float *b, double *wide, float *r, size_t n)
{
    if (tf_isa->ufuncs->binary_near[op] && f.itemsize > 1) {
        compute_near(f, op, a, b, wide, n);
    } else {
        tf_isa->ufuncs->binary_f64[op](a, b, wide, n);
        if (operations[op].odd) {
            recompute_exactly(f, &operations[op], a, b, wide, n);
        }
    }
    tf_isa->formats->narrow(wide, r, n);
}

static unsigned binary_block(int format, enum tf_binary_op op, const float *a,
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

    /* 3. Exceptions. Overflow never gives Inf here (see tf_power_of): this is a pole. */
    if (tf_binary_rows[op].silent || (!suspects.beyond && !suspects.tiny)) {
        return 0;
    }
    const unsigned rounding = conversions->flags(r, out, n);
    if (f.specials == TF_EXPONENT_ONLY) {
        return rounding;
    }
    return (rounding & TF_UNDER) | tf_isa->ufuncs->exceptions(tf_beyond(f), 0, a, b, r, n);
}

/* What a table of all pairs is made of. */
static void binary_pairs(int format, int op, const uint8_t *a, const uint8_t *b,
                         uint8_t *results, uint8_t *flags, size_t n)
{
    float x[TF_CHUNK], y[TF_CHUNK];
    tf_isa->formats->conversions[format].to_float32(a, x, n);
    tf_isa->formats->conversions[format].to_float32(b, y, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned raised =
            binary_block(format, (enum tf_binary_op)op, &x[i], &y[i], &results[i], 1);
        flags[i] = (uint8_t)raised;
    }
}

const struct tf_pair_table *tf_binary_table(int format, enum tf_binary_op op,
                                            ptrdiff_t n)
{
    return tf_pair_table(format, (int)op, n, binary_pairs);
}

/* -- the common operations -------------------------------------------------------- */

/* What results whose greatest magnitude is known can have raised, but for underflow. */
static unsigned may_have_raised(enum tf_binary_op op, uint32_t beyond, uint32_t greatest)
{
    const uint32_t infinity = TF_INF_BITS;
    const unsigned pole = op == TF_TRUE_DIVIDE ? TF_DIVIDE : 0;
    return greatest > infinity    ? TF_OVER | TF_INVALID | pole
           : greatest == infinity ? TF_OVER | pole
           : greatest >= beyond   ? TF_OVER
                                  : 0;
}

/* A block in one pass, and another for what results beyond the range have raised that
 * had not been raised before. Whether it is settled. */
static int fused_block(int format, enum tf_binary_op op, struct operand *a,
                       struct operand *b, const void *x, const void *y, void *out,
                       size_t n, unsigned *flags)
{
    const struct tf_format f = *tf_format_rows[format];
    const struct tf_fused *fused = &tf_isa->ufuncs->fused[op];
    struct tf_settled seen;
    TF_ASSERT(!tf_overlap(x, out, n * f.itemsize) && !tf_overlap(y, out, n * f.itemsize));
    if (f.itemsize == 1) {
        const float *p = operand_numbers(a, format, x, n);
        const float *q = operand_numbers(b, format, y, n);
        tf_fused_bytes_fn *bytes =
            f.specials == TF_EXPONENT_ONLY ? fused->bytes_of_powers : fused->bytes;
        seen = bytes(&tf_byte_tables[format].rounding, p, q, out, n);
    } else if (f.itemsize == 2) {
        seen = fused->halves(x, y, out, n);
    } else {
        seen = fused->words(x, y, out, n);
    }
    *flags |= seen.flags;
    if (seen.unsettled) {
        return 0;
    }
    const uint32_t beyond = tf_beyond(f);
    if (may_have_raised(op, beyond, seen.greatest) & ~*flags) {
        const float *p = operand_numbers(a, format, x, n);
        const float *q = operand_numbers(b, format, y, n);
        _Alignas(64) float r[TF_CHUNK];
        tf_isa->ufuncs->binary_f32[op](p, q, r, n);
        *flags |= tf_isa->ufuncs->exceptions(beyond, 1, p, q, r, n);
    }
    return 1;
}

/* -- items of a byte with one other ----------------------------------------------- */

enum { ITEMS = 256 };

/* All results of one operand with every item of the other. */
static void make_line(int format, enum tf_binary_op op, const char *item, int which,
                      struct tf_pair_line *line)
{
    uint8_t items[ITEMS], same[ITEMS];
    struct operand a, b;
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (uint8_t)i;
        same[i] = *(const uint8_t *)item;
    }
    const uint8_t *x = which == 0 ? same : items, *y = which == 0 ? items : same;
    operand_begin(&a, NULL, 1, 0);
    operand_begin(&b, NULL, 1, 0);
    line->all_flags = 0;
    fused_block(format, op, &a, &b, x, y, line->results, ITEMS, &line->all_flags);
    for (int i = 0; i < ITEMS && line->all_flags; i++) {
        unsigned flags = 0;
        uint8_t result;
        fused_block(format, op, &a, &b, x + i, y + i, &result, 1, &flags);
        line->flags[i] = (uint8_t)flags;
    }
}

/* Its blocks take so much of the stack that few items would wait for it. */
static __attribute__((noinline)) void
binary_blocks(int format, enum tf_binary_op op, char *const data[3],
              const ptrdiff_t strides[3], ptrdiff_t n)
{
    enum { WORTH_A_LINE = 1 << 15 };
    const struct tf_fp saved = tf_fp_begin();
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const int serial = tf_is_serial(data, strides);
    if (!tf_isa->ufuncs->binary_f32[op] || tf_format_rows[format]->width == TF_FEW_BITS) {
        const struct tf_pair_table *table = tf_binary_table(format, op, n);
        if (table) {
            tf_fp_end(saved, tf_look_up_pairs(table, data, strides, n, serial));
            return;
        }
    }
    const ptrdiff_t block = serial ? 1 : TF_CHUNK;
    const int is_fused = tf_isa->ufuncs->fused[op].bytes != NULL;
    if (is_fused && itemsize == 1 && !serial && n >= WORTH_A_LINE &&
        (strides[0] == 0) != (strides[1] == 0)) {
        const int which = strides[0] == 0 ? 0 : 1;
        struct tf_pair_line line;
        make_line(format, op, data[which], which, &line);
        const unsigned raised = tf_look_up_line(
            &line, data[1 - which], strides[1 - which], data[2], strides[2], n);
        tf_fp_end(saved, raised);
        return;
    }

    TF_BUFFER(buffer);
    struct operand a, b;
    operand_begin(&a, data[0], strides[0], !serial);
    operand_begin(&b, data[1], strides[1], 1);
    unsigned flags = tf_fp_raised(saved);
    for (ptrdiff_t done = 0; done < n; done += block) {
        const size_t count = tf_min_size(n - done, block);
        const void *x = operand_items(&a, itemsize, count);
        const void *y = operand_items(&b, itemsize, count);
        char *out = data[2] + done * strides[2];
        void *target =
            operand_target(out, strides[2], itemsize, x, y, itemsize, count, buffer);
        if (!is_fused ||
            !fused_block(format, op, &a, &b, x, y, target, count, &flags)) {
            const float *p = operand_numbers(&a, format, x, count);
            const float *q = operand_numbers(&b, format, y, count);
            flags |= binary_block(format, op, p, q, target, count);
        }
        tf_scatter(target, out, strides[2], itemsize, count);
    }
    tf_fp_end(saved, flags);
}

/* From item `done` on. */
static __attribute__((noinline)) void
binary_from(ptrdiff_t done, int format, enum tf_binary_op op, char *const data[3],
            const ptrdiff_t strides[3], ptrdiff_t n)
{
    if (tf_isa->ufuncs->extreme[op].bytes) {
        tf_extreme(format, op, data, strides, n);
        return;
    }
    const int serial =
        tf_format_rows[format]->itemsize > 1 && tf_is_serial(data, strides);
    const int by_steps = n <= TF_FEW || serial;
    for (ptrdiff_t count; done < n; done += count) {
        char *const rest[3] = {data[0] + done * strides[0], data[1] + done * strides[1],
                               data[2] + done * strides[2]};
        count = by_steps ? tf_few(format, op, rest, strides, n - done) : 0;
        if (count == 0) {
            count = serial ? 1 : n - done;
            binary_blocks(format, op, rest, strides, count);
        }
    }
}

void tf_binary(int format, enum tf_binary_op op, char *const data[3],
               const ptrdiff_t strides[3], ptrdiff_t n)
{
    /* A few items should not wait for anything else. */
    const ptrdiff_t done = n <= TF_FEW ? tf_few(format, op, data, strides, n) : 0;
    if (done < n) {
        binary_from(done, format, op, data, strides, n);
    }
}

void tf_divmod(int format, char *const data[4], const ptrdiff_t strides[4],
               ptrdiff_t n)
{
    /* Either result may be written over an operand: block by block, keep the
     * first until the second is known. */
    TF_BUFFER(quotients);
    const size_t itemsize = tf_format_rows[format]->itemsize;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const ptrdiff_t count = tf_min_size(n - done, TF_CHUNK);
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
