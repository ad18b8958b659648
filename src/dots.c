#include "dots.h"

#include <math.h>

#include "bytes.h"
#include "casts.h"
#include "fpstatus.h"
#include "pack.h"
#include "sums.h"
#include "tile.h"

/* A vector has one chain, and a tile of the product of matrices would take as long as the
 * whole of it: so the chains of some vectors stand side by side. */
enum {
    TOGETHER = TF_DOT_CHAINS,
    LOOKS = 64,
    LONG = TF_DOT_CHAINS * TF_DEPTH, /* a vector with as many chains of its own */
};

/* Bytes' numbers as bfloat16, line after line. */
static const char *widen(int format, const char *data, ptrdiff_t step, size_t depth,
                         uint16_t *out)
{
    for (size_t i = 0; i < TOGETHER; i++) {
        tf_isa->product->halves_of_bytes(&tf_byte_tables[format],
                                         (const uint8_t *)data + (ptrdiff_t)i * step,
                                         out + i * depth, depth);
    }
    return (const char *)out;
}

int tf_dot_lines(int format, ptrdiff_t along, const char *a, ptrdiff_t a_step,
                 const char *b, ptrdiff_t b_step, size_t depth, uint16_t *buffer,
                 float *sums)
{
    enum { BYTE = 1, SINGLE = 4, WHOLE = 32 };
    const struct tf_dot *dot = tf_isa->dot;
    const size_t size = tf_kind_size(format);
    if (!dot->halves || along != (ptrdiff_t)size || depth % WHOLE != 0 ||
        (size == BYTE && !tf_isa->product->halves_of_bytes)) {
        return 0;
    }
    if (size == SINGLE) {
        const uint32_t used = UINT32_MAX << tf_format_rows[format]->shift;
        dot->singles(a, a_step, b, b_step, depth, used, sums);
        return 1;
    }
    if (size == BYTE) {
        a = widen(format, a, a_step, depth, buffer);
        b = widen(format, b, b_step, depth, buffer + TOGETHER * depth);
        a_step = b_step = (ptrdiff_t)(depth * sizeof *buffer);
    }
    dot->halves(a, a_step, b, b_step, depth, sums);
    return 1;
}

int tf_are_short_dots(struct tf_matrix a, struct tf_matrix b, ptrdiff_t k,
                      ptrdiff_t count)
{
    return k > 0 && k < LONG && count >= TOGETHER && a.kind < TF_FORMAT_COUNT &&
           b.kind < TF_FORMAT_COUNT;
}

/* Vectors as float32, one after the other; zeros where there are fewer. */
static void load_lines(struct tf_matrix x, ptrdiff_t along, size_t k, size_t count,
                       float *lines)
{
    const ptrdiff_t size = (ptrdiff_t)tf_kind_size(x.kind);
    const int adjoin = along == size && x.step == size * (ptrdiff_t)k;
    const size_t joined = adjoin ? TF_BLOCK / k : 1;
    for (size_t i = 0; i < count; i += joined) {
        const size_t vectors = count - i < joined ? count - i : joined;
        float *to = lines + i * k;
        const float *from = tf_load_floats(x.kind, x.data + (ptrdiff_t)i * x.step, along,
                                           vectors * k, to);
        if (from != to) {
            memcpy(to, from, vectors * k * sizeof *to);
        }
    }
    memset(lines + count * k, 0, (TOGETHER - count) * k * sizeof *lines);
}

/* Some vectors of either operand, `along` from number to number. */
struct lines {
    struct tf_matrix a, b;
    ptrdiff_t along[2];
    size_t k, count;
};

/* Up to TF_DEPTH of their numbers, from k0 on; returns how many. */
static size_t load_depth(const struct lines *lines, size_t k0, float *x, float *y)
{
    const size_t left = lines->k - k0, depth = left < TF_DEPTH ? left : TF_DEPTH;
    struct tf_matrix a = lines->a, b = lines->b;
    a.data += (ptrdiff_t)k0 * lines->along[0];
    b.data += (ptrdiff_t)k0 * lines->along[1];
    load_lines(a, lines->along[0], depth, lines->count, x);
    load_lines(b, lines->along[1], depth, lines->count, y);
    return depth;
}

/* The chains over up to TF_DEPTH of them; returns how many. */
static size_t multiply_depth(const struct lines *lines, size_t k0, float *x, float *y,
                             float *sums)
{
    float p[TOGETHER * TF_DEPTH], q[TOGETHER * TF_DEPTH];
    const size_t left = lines->k - k0;
    const char *a = lines->a.data + (ptrdiff_t)k0 * lines->along[0];
    const char *b = lines->b.data + (ptrdiff_t)k0 * lines->along[1];
    const int alike = lines->a.kind == lines->b.kind && lines->count == TOGETHER &&
                      lines->along[0] == lines->along[1];
    if (alike && left >= TF_DEPTH &&
        tf_dot_lines(lines->a.kind, lines->along[0], a, lines->a.step, b,
                     lines->b.step, TF_DEPTH, (uint16_t *)x, sums)) {
        return TF_DEPTH;
    }
    const size_t depth = load_depth(lines, k0, x, y);
    tf_isa->product->transpose(x, depth, TOGETHER, depth, p, TOGETHER);
    tf_isa->product->transpose(y, depth, TOGETHER, depth, q, TOGETHER);
    tf_isa->dot->lanes(p, q, depth, sums);
    return depth;
}

static void sum_lines(const struct lines *lines, float *x, float *y, float *sums)
{
    float part[TOGETHER];
    for (size_t k0 = 0; k0 < lines->k;) {
        const int adds = k0 != 0;
        k0 += multiply_depth(lines, k0, x, y, part);
        tf_add_row(part, sums, TOGETHER, adds);
    }
}

/* What sums that are not finite raise: Inf of finite numbers is an overflow, NaN of none
 * an invalid operation. */
static unsigned flags_of_sums(const struct lines *lines, const float *sums, float *x,
                              float *y, unsigned overflow)
{
    int nan[TOGETHER] = {0}, infinite[TOGETHER] = {0};
    for (size_t k0 = 0; k0 < lines->k; k0 += TF_DEPTH) {
        const size_t depth = load_depth(lines, k0, x, y);
        for (size_t j = 0; j < lines->count * depth; j++) {
            nan[j / depth] |= isnan(x[j]) || isnan(y[j]);
            infinite[j / depth] |= isinf(x[j]) || isinf(y[j]);
        }
    }
    unsigned flags = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (isnan(sums[i]) && !nan[i]) {
            flags |= TF_INVALID;
        } else if (isinf(sums[i]) && !nan[i] && !infinite[i]) {
            flags |= overflow;
        }
    }
    return flags;
}

int tf_short_dots(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                  ptrdiff_t k, ptrdiff_t count)
{
    float x[TOGETHER * TF_DEPTH], y[TOGETHER * TF_DEPTH], sums[TOGETHER];
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const int may_raise = tf_products_may_raise((struct tf_lines){.kind = a.kind}) ||
                          tf_products_may_raise((struct tf_lines){.kind = b.kind});
    const struct tf_fp saved = tf_fp_begin();
    struct lines lines = {a, b, {a.strides[1], b.strides[0]}, (size_t)k, TOGETHER};
    struct tf_watch watch = {0};
    unsigned flags = 0;
    int stopped = 0;
    for (ptrdiff_t done = 0, batch = 0; done < count && !stopped;
         done += TOGETHER, batch++) {
        lines.count = tf_lesser_size(TOGETHER, count - done);
        sum_lines(&lines, x, y, sums);
        if (tf_store_sums(c.kind, sums, c.data, c.step, lines.count, &flags) &&
            may_raise) {
            flags |= flags_of_sums(&lines, sums, x, y, overflow);
        }
        lines.a.data += TOGETHER * a.step;
        lines.b.data += TOGETHER * b.step;
        c.data += TOGETHER * c.step;
        stopped = batch % LOOKS == LOOKS - 1 && tf_is_stopped(&watch, 1);
    }
    tf_fp_end(saved, flags);
    return stopped ? -1 : 0;
}
