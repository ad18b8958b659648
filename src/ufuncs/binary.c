/* Binary operations on strided arrays, chunk by chunk. Chooses how to compute a call: a few
 * items one by one, a fused loop, a table of pairs, or float64. */
#include "ufuncs/binary.h"

#include "formats/fast_codec.h"
#include "ufuncs/binary_chunk.h"
#include "ufuncs/common_ops.h"
#include "ufuncs/few.h"
#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "formats/items.h"
#include "formats/scalar_ops.h"
#include "ufuncs/compare.h"
#include "ufuncs/pair_tables.h"

/* -- the common operations -------------------------------------------------------- */

/* Computes a chunk of items of a byte in float32, which is wide enough (see fused.c). Only
 * a quotient of numbers can be Inf or NaN there. */
static void byte_chunk(int format, enum tf_binary_op op, const float *a, const float *b,
                       void *out, size_t n, unsigned *flags)
{
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    _Alignas(64) float r[TF_CHUNK];
    tf_isa->ufuncs->binary_f32[op](a, b, r, n);
    const struct tf_flag_hints hints = conversions->from_float32(r, out, n);
    const int may_be_pole = op == TF_TRUE_DIVIDE && hints.beyond == TF_NOT_FINITE;
    const unsigned possible = may_be_pole ? TF_OVER | TF_DIVIDE | TF_INVALID
                                          : hints.raised | (hints.nan ? TF_INVALID : 0);
    if (!may_be_pole && !hints.nan) {
        *flags |= hints.raised;
    } else if (possible & ~*flags) {
        const uint32_t beyond = tf_beyond(*tf_format_rows[format]);
        *flags |= tf_isa->ufuncs->exceptions(beyond, a, b, r, n);
    }
    if (tf_may_underflow(op) && hints.tiny && !(*flags & TF_UNDER)) {
        *flags |= conversions->underflow(r, out, n);
    }
}

/* Computes a chunk of one of the four operations. */
static void fused_chunk(int format, enum tf_binary_op op, struct loop_operand *a,
                        struct loop_operand *b, const void *x, const void *y, void *out,
                        size_t n, unsigned *flags)
{
    const struct tf_format f = *tf_format_rows[format];
    const struct tf_fused *fused = &tf_isa->ufuncs->fused[op];
    TF_ASSERT(!tf_overlap(x, out, n * f.itemsize) && !tf_overlap(y, out, n * f.itemsize));
    if (f.itemsize == 1) {
        const float *p = operand_numbers(a, format, x, n);
        const float *q = operand_numbers(b, format, y, n);
        if (f.specials != TF_EXPONENT_ONLY) {
            byte_chunk(format, op, p, q, out, n, flags);
        } else {
            *flags |= fused->powers(p, q, out, n);
        }
    } else {
        *flags |= (f.itemsize == 2 ? fused->bf16 : fused->words)(x, y, out, n);
    }
}

/* -- one item with all items of a byte -------------------------------------------- */

enum { ITEMS = 256 };

/* Makes the results of one item, operand `which`, with every item of the other. */
static void make_line(int format, enum tf_binary_op op, const char *item, int which,
                      struct tf_pair_line *line)
{
    uint8_t items[ITEMS], same[ITEMS];
    struct loop_operand a, b;
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (uint8_t)i;
        same[i] = *(const uint8_t *)item;
    }
    const uint8_t *x = which == 0 ? same : items, *y = which == 0 ? items : same;
    operand_begin(&a, NULL, 1, 0);
    operand_begin(&b, NULL, 1, 0);
    line->all_flags = 0;
    fused_chunk(format, op, &a, &b, x, y, line->results, ITEMS, &line->all_flags);
    for (int i = 0; i < ITEMS && line->all_flags; i++) {
        unsigned flags = 0;
        uint8_t result;
        fused_chunk(format, op, &a, &b, x + i, y + i, &result, 1, &flags);
        line->flags[i] = (uint8_t)flags;
    }
}

/* Not inlined: its buffers take so much of the stack that few items would wait for it. */
static __attribute__((noinline)) void
binary_chunks(int format, enum tf_binary_op op, char *const data[3],
              const ptrdiff_t strides[3], ptrdiff_t n)
{
    enum { WORTH_A_LINE = 1 << 15 };
    const struct tf_fp saved = tf_fp_begin();
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const int serial = tf_is_serial(data, strides);
    if (!tf_isa->ufuncs->binary_f32[op] || serial ||
        tf_format_rows[format]->width == TF_FEW_BITS) {
        const struct tf_pair_table *table = tf_binary_table(format, op, n);
        if (table) {
            tf_fp_end(saved, tf_look_up_pairs(table, data, strides, n, serial));
            return;
        }
    }
    const ptrdiff_t chunk = serial ? 1 : TF_CHUNK;
    const int is_fused = tf_isa->ufuncs->fused[op].powers != NULL;
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
    struct loop_operand a, b;
    operand_begin(&a, data[0], strides[0], !serial);
    operand_begin(&b, data[1], strides[1], 1);
    unsigned flags = tf_fp_raised(saved);
    if (is_fused && itemsize > 1 && tf_may_underflow(op)) {
        tf_fp_flush_results(1); /* they are computed again */
    }
    for (ptrdiff_t done = 0; done < n; done += chunk) {
        const size_t count = tf_min_size(n - done, chunk);
        const void *x = operand_items(&a, itemsize, count);
        const void *y = operand_items(&b, itemsize, count);
        char *out = data[2] + done * strides[2];
        void *target =
            operand_target(out, strides[2], itemsize, x, y, itemsize, count, buffer);
        if (is_fused) {
            fused_chunk(format, op, &a, &b, x, y, target, count, &flags);
        } else {
            const float *p = operand_numbers(&a, format, x, count);
            const float *q = operand_numbers(&b, format, y, count);
            flags |= tf_binary_chunk(format, op, p, q, target, count);
        }
        tf_scatter(target, out, strides[2], itemsize, count);
    }
    tf_fp_end(saved, flags);
}

/* Computes the items from `done` on. */
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
            binary_chunks(format, op, rest, strides, count);
        }
    }
}

/* Returns whether all exponents are one item that is 2, as in x ** 2. Not for bytes. */
static int squares(int format, enum tf_binary_op op, const char *exponent,
                   ptrdiff_t stride)
{
    return op == TF_POWER && stride == 0 && tf_format_rows[format]->itemsize > 1 &&
           tf_double_of_item(*tf_format_rows[format], format, exponent) == 2;
}

void tf_binary(int format, enum tf_binary_op op, char *const data[3],
               const ptrdiff_t strides[3], ptrdiff_t n)
{
    if (n > TF_FEW && squares(format, op, data[1], strides[1])) {
        char *const twice[3] = {data[0], data[0], data[2]};
        const ptrdiff_t twice_strides[3] = {strides[0], strides[0], strides[2]};
        tf_binary(format, TF_MULTIPLY, twice, twice_strides, n);
        return;
    }
    /* A few items are computed first, without any other check. */
    const ptrdiff_t done = n <= TF_FEW ? tf_few(format, op, data, strides, n) : 0;
    if (done < n) {
        binary_from(done, format, op, data, strides, n);
    }
}

void tf_divmod(int format, char *const data[4], const ptrdiff_t strides[4],
               ptrdiff_t n)
{
    /* Either result may overwrite an operand: the quotients of a chunk wait in a buffer
     * until the remainders are written. */
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
