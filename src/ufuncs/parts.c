/* nextafter, modf, frexp and ldexp: loops over strided arrays. */
#include "ufuncs/parts.h"

#include "formats/casts.h"
#include "formats/items.h"
#include "formats/scalar_ops.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "ufuncs/kernels.h"
#include "ufuncs/pair_tables.h"

/* Rounds n results once and stores their items. Returns `flags` and the flags that the
 * results raise. NaN among the results was an operand. */
static unsigned store(int format, float *results, char *out, ptrdiff_t stride, size_t n,
                      unsigned flags)
{
    TF_BUFFER(buffer);
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    const size_t itemsize = tf_format_rows[format]->itemsize;
    void *target = tf_target(out, stride, itemsize, buffer);
    tf_isa->formats->canonical_nans(results, n);
    const struct tf_flag_hints hints = conversions->from_float32(results, target, n);
    flags |= tf_rounding_flags(format, hints, results, target, n, flags);
    tf_scatter(target, out, stride, itemsize, n);
    return flags;
}

static size_t chunk_size(ptrdiff_t left)
{
    return tf_min_size(left, TF_CHUNK);
}

static unsigned modf_items(int format, char *const data[3], const ptrdiff_t strides[3],
                 ptrdiff_t n)
{
    _Alignas(64) float part[TF_CHUNK], whole[TF_CHUNK];
    struct loop_operand x;
    operand_begin(&x, data[0], strides[0], 1);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = chunk_size(n - done);
        tf_isa->ufuncs->parts->modf(operand_next(&x, format, count), part, whole, count);
        flags = store(format, part, data[1] + done * strides[1], strides[1], count, flags);
        flags = store(format, whole, data[2] + done * strides[2], strides[2], count, flags);
    }
    return flags;
}

static unsigned frexp_items(int format, char *const data[3], const ptrdiff_t strides[3],
                  ptrdiff_t n)
{
    _Alignas(64) float part[TF_CHUNK];
    TF_BUFFER(buffer);
    struct loop_operand x;
    operand_begin(&x, data[0], strides[0], 1);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = chunk_size(n - done);
        char *out = data[2] + done * strides[2];
        int32_t *exponents = tf_target(out, strides[2], sizeof *exponents, buffer);
        tf_isa->ufuncs->parts->frexp(operand_next(&x, format, count), part, exponents,
                                     count);
        flags = store(format, part, data[1] + done * strides[1], strides[1], count, flags);
        tf_scatter(exponents, out, strides[2], sizeof *exponents, count);
    }
    return flags;
}

static unsigned ldexp_items(int format, size_t exponent_size, char *const data[3],
                            const ptrdiff_t strides[3], ptrdiff_t n);

/* Makes all results with one exponent, and their flags. */
static void make_line(int format, size_t exponent_size, char *exponent,
                      struct tf_pair_line *line)
{
    enum { ITEMS = 256 };
    char items[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (char)(unsigned char)i;
    }
    char *const all[3] = {items, exponent, (char *)line->results};
    const ptrdiff_t strides[3] = {1, 0, 1};
    line->all_flags = ldexp_items(format, exponent_size, all, strides, ITEMS);
    for (int i = 0; i < ITEMS && line->all_flags; i++) {
        char *const one[3] = {items + i, exponent, (char *)line->results + i};
        line->flags[i] = (uint8_t)ldexp_items(format, exponent_size, one, strides, 1);
    }
}

static unsigned ldexp_items(int format, size_t exponent_size, char *const data[3],
                  const ptrdiff_t strides[3], ptrdiff_t n)
{
    enum { WORTH_A_LINE = 1 << 13 };
    if (tf_format_rows[format]->itemsize == 1 && strides[1] == 0 && n >= WORTH_A_LINE) {
        struct tf_pair_line line;
        make_line(format, exponent_size, data[1], &line);
        return tf_look_up_line(&line, data[0], strides[0], data[2], strides[2], n);
    }
    _Alignas(64) float results[TF_CHUNK];
    TF_BUFFER(buffer);
    struct loop_operand x;
    operand_begin(&x, data[0], strides[0], 1);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = chunk_size(n - done);
        const void *exponents = tf_gather(data[1] + done * strides[1], strides[1],
                                          exponent_size, count, buffer);
        tf_isa->ufuncs->parts->ldexp(operand_next(&x, format, count), exponents,
                                     exponent_size, results, count);
        flags =
            store(format, results, data[2] + done * strides[2], strides[2], count, flags);
    }
    return flags;
}

/* -- nextafter ---------------------------------------------------------------------- */

/* Computes the results and the flags of n pairs, for tf_pair_table. */
static void nextafter_pairs(int format, int key, const uint8_t *a, const uint8_t *b,
                            uint8_t *results, uint8_t *flags, size_t n)
{
    (void)key;
    const struct tf_format f = *tf_format_rows[format];
    for (size_t i = 0; i < n; i++) {
        unsigned raised = 0;
        results[i] = (uint8_t)tf_nextafter(f, tf_load_code(f, (const char *)&a[i]),
                                           tf_load_code(f, (const char *)&b[i]), &raised);
        flags[i] = (uint8_t)raised;
    }
}

static unsigned next_numbers(int format, char *const data[3], const ptrdiff_t strides[3],
                             ptrdiff_t n)
{
    const struct tf_format f = *tf_format_rows[format];
    const struct tf_pair_table *table =
        tf_pair_table(format, TF_NEXTAFTER + TF_BINARY_COUNT, n, nextafter_pairs);
    if (table) {
        return tf_look_up_pairs(table, data, strides, n, tf_is_serial(data, strides));
    }
    unsigned flags = 0;
    if (f.itemsize > 1 && !tf_is_serial(data, strides)) {
        TF_BUFFER(buffer);
        struct loop_operand a, b;
        operand_begin(&a, data[0], strides[0], 1);
        operand_begin(&b, data[1], strides[1], 1);
        for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
            const size_t count = tf_min_size(n - done, TF_CHUNK);
            const void *x = operand_items(&a, f.itemsize, count);
            const void *y = operand_items(&b, f.itemsize, count);
            char *out = data[2] + done * strides[2];
            void *target = operand_target(out, strides[2], f.itemsize, x, y, f.itemsize,
                                          count, buffer);
            flags |= tf_isa->ufuncs->parts->nextafter[f.itemsize == 4 ? 0 : 1](
                x, y, target, count);
            tf_scatter(target, out, strides[2], f.itemsize, count);
        }
        return flags;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t from = tf_load_code(f, data[0] + i * strides[0]);
        const uint32_t toward = tf_load_code(f, data[1] + i * strides[1]);
        tf_store_code(f, data[2] + i * strides[2], tf_nextafter(f, from, toward, &flags));
    }
    return flags;
}

/* -- all of them -------------------------------------------------------------------- */

void tf_apply_code_op(int format, enum tf_code_op op, char *const *data,
                      const ptrdiff_t *strides, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    switch (op) {
    case TF_NEXTAFTER: flags = next_numbers(format, data, strides, n); break;
    case TF_MODF: flags = modf_items(format, data, strides, n); break;
    case TF_FREXP: flags = frexp_items(format, data, strides, n); break;
    case TF_LDEXP: flags = ldexp_items(format, sizeof(int64_t), data, strides, n); break;
    case TF_LDEXP_INT: flags = ldexp_items(format, sizeof(int32_t), data, strides, n); break;
    case TF_CODE_OP_COUNT: break;
    }
    tf_fp_end(saved, flags);
}
