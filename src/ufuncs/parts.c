/* modf, frexp and ldexp: loops over strided arrays. */
#include "ufuncs/parts.h"

#include "formats/casts.h"
#include "formats/items.h"
#include "ufuncs/pair_tables.h"

/* One rounding of n results, to where they belong; what they raise that is not in
 * `flags` yet. NaN was an operand. */
static unsigned store(int format, float *results, char *out, ptrdiff_t stride, size_t n,
                      unsigned flags)
{
    TF_BUFFER(buffer);
    const struct tf_conversions *conversions = &tf_isa->conversions[format];
    const size_t itemsize = tf_format_rows[format]->itemsize;
    void *target = tf_target(out, stride, itemsize, buffer);
    tf_isa->canonical_nans(results, n);
    const struct tf_flag_hints suspects = conversions->from_float32(results, target, n);
    if (tf_may_raise(format, suspects) & ~flags) {
        flags |= conversions->flags(results, target, n);
    }
    tf_scatter(target, out, stride, itemsize, n);
    return flags;
}

static size_t block_of(ptrdiff_t left)
{
    return (size_t)(left < TF_CHUNK ? left : TF_CHUNK);
}

unsigned tf_modf(int format, char *const data[3], const ptrdiff_t strides[3],
                 ptrdiff_t n)
{
    _Alignas(64) float part[TF_CHUNK], whole[TF_CHUNK];
    struct operand x;
    operand_begin(&x, data[0], strides[0], 1);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = block_of(n - done);
        tf_isa->parts->modf(operand_next(&x, format, count), part, whole, count);
        flags = store(format, part, data[1] + done * strides[1], strides[1], count, flags);
        flags = store(format, whole, data[2] + done * strides[2], strides[2], count, flags);
    }
    return flags;
}

unsigned tf_frexp(int format, char *const data[3], const ptrdiff_t strides[3],
                  ptrdiff_t n)
{
    _Alignas(64) float part[TF_CHUNK];
    int32_t exponents[TF_CHUNK];
    struct operand x;
    operand_begin(&x, data[0], strides[0], 1);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = block_of(n - done);
        tf_isa->parts->frexp(operand_next(&x, format, count), part, exponents, count);
        flags = store(format, part, data[1] + done * strides[1], strides[1], count, flags);
        tf_scatter(exponents, data[2] + done * strides[2], strides[2], sizeof(int32_t),
                   count);
    }
    return flags;
}

/* All results of one exponent, and what they raise. */
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
    line->all_flags = tf_ldexp(format, exponent_size, all, strides, ITEMS);
    for (int i = 0; i < ITEMS && line->all_flags; i++) {
        char *const one[3] = {items + i, exponent, (char *)line->results + i};
        line->flags[i] = (uint8_t)tf_ldexp(format, exponent_size, one, strides, 1);
    }
}

unsigned tf_ldexp(int format, size_t exponent_size, char *const data[3],
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
    struct operand x;
    operand_begin(&x, data[0], strides[0], 1);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = block_of(n - done);
        const void *exponents = tf_gather(data[1] + done * strides[1], strides[1],
                                          exponent_size, count, buffer);
        tf_isa->parts->ldexp(operand_next(&x, format, count), exponents, exponent_size,
                             results, count);
        flags =
            store(format, results, data[2] + done * strides[2], strides[2], count, flags);
    }
    return flags;
}
