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
    FEW = 4,     /* vectors from which it pays in any case */
    SHORT = 256, /* numbers up to which it does for one */
    LONG = TF_DOT_CHAINS * TF_DEPTH, /* a vector with as many chains of its own */
};

/* Whether the kernels read lines as they are, or, in the buffer, bytes' numbers as
 * bfloat16. */
static int make_readable(struct tf_lines *x, size_t depth, uint16_t *buffer)
{
    enum { BYTE = 1 };
    const int as_stored = x->kind < TF_FORMAT_COUNT && x->kind == x->format &&
                          x->parts == 1 &&
                          x->along == (ptrdiff_t)tf_kind_size(x->kind);
    if (!tf_isa->dot->halves || !as_stored) {
        return 0;
    }
    if (x->along != BYTE) {
        return 1;
    }
    if (!tf_isa->product->halves_of_bytes) {
        return 0;
    }
    const int adjoin = x->stride == (ptrdiff_t)depth;
    const size_t length = adjoin ? TOGETHER * depth : depth;
    for (ptrdiff_t i = 0; i < (adjoin ? 1 : TOGETHER); i++) {
        tf_isa->product->halves_of_bytes(
            &tf_byte_tables[x->kind], (const uint8_t *)tf_lines_from(*x, i, 0).data,
            buffer + (size_t)i * depth, length);
    }
    x->data = (const char *)buffer;
    x->stride = (ptrdiff_t)(depth * sizeof *buffer);
    return 1;
}

int tf_dot_lines(struct tf_lines a, struct tf_lines b, size_t depth, uint16_t *buffer,
                 float *sums)
{
    const struct tf_dot *dot = tf_isa->dot;
    const int singles = a.along == sizeof(float);
    if (a.kind != b.kind || !make_readable(&a, depth, buffer) ||
        !make_readable(&b, depth, buffer + TOGETHER * depth)) {
        return 0;
    }
    if (singles) {
        dot->singles(a.data, a.stride, b.data, b.stride,
                     tf_used_bits(*tf_format_rows[a.kind]), depth, sums);
    } else {
        dot->halves(a.data, a.stride, b.data, b.stride, depth, sums);
    }
    return 1;
}

int tf_dot_vector(struct tf_lines a, const float *numbers, size_t depth,
                  uint16_t *buffer, float *sums)
{
    const int singles = a.along == sizeof(float);
    if (!make_readable(&a, depth, buffer)) {
        return 0;
    }
    if (singles) {
        tf_isa->dot->singles_times(a.data, a.stride, numbers,
                                   tf_used_bits(*tf_format_rows[a.kind]), depth, sums);
    } else {
        tf_isa->dot->halves_times(a.data, a.stride, numbers, depth, sums);
    }
    return 1;
}

int tf_are_short_dots(struct tf_matrix a, struct tf_matrix b, ptrdiff_t k,
                      ptrdiff_t count)
{
    return k > 0 && (k <= SHORT || (k < LONG && count >= FEW)) &&
           a.kind < TF_FORMAT_COUNT && b.kind < TF_FORMAT_COUNT;
}

/* Zeros where there are fewer vectors. */
static void load_vectors(struct tf_lines x, size_t k, size_t count, float *lines)
{
    tf_load_lines(x, k, count, lines);
    memset(lines + count * k, 0, (TOGETHER - count) * k * sizeof *lines);
}

/* Some vectors of either operand. */
struct batch {
    struct tf_lines a, b;
    size_t k, count;
};

/* The length of a chain that begins at k0. */
static size_t depth_from(const struct batch *batch, size_t k0)
{
    return batch->k - k0 < TF_DEPTH ? batch->k - k0 : TF_DEPTH;
}

/* So many numbers of them; returns how many. */
static size_t load_depth(const struct batch *batch, size_t k0, float *x, float *y)
{
    const size_t depth = depth_from(batch, k0);
    load_vectors(tf_lines_from(batch->a, 0, (ptrdiff_t)k0), depth, batch->count, x);
    load_vectors(tf_lines_from(batch->b, 0, (ptrdiff_t)k0), depth, batch->count, y);
    return depth;
}

/* As many lines as the kernels read: of fewer a copy, with zeros for the others. */
static struct tf_lines complete(struct tf_lines x, size_t depth, size_t count,
                                float *room)
{
    const size_t size = depth * tf_kind_size(x.kind);
    if (count == TOGETHER || x.along != (ptrdiff_t)tf_kind_size(x.kind)) {
        return x;
    }
    char *place = memset(room, 0, TOGETHER * size);
    for (size_t i = 0; i < count; i++) {
        memcpy(place + i * size, tf_lines_from(x, (ptrdiff_t)i, 0).data, size);
    }
    x.data = place;
    x.stride = (ptrdiff_t)size;
    return x;
}

/* The chains over up to TF_DEPTH of them; returns how many. */
static size_t multiply_depth(const struct batch *batch, size_t k0, float *x, float *y,
                             float *sums)
{
    float p[TOGETHER * TF_DEPTH], q[TOGETHER * TF_DEPTH];
    const size_t depth = depth_from(batch, k0);
    const struct tf_lines a = tf_lines_from(batch->a, 0, (ptrdiff_t)k0);
    const struct tf_lines b = tf_lines_from(batch->b, 0, (ptrdiff_t)k0);
    if (tf_dot_lines(complete(a, depth, batch->count, p),
                     complete(b, depth, batch->count, q), depth, (uint16_t *)x, sums)) {
        return depth;
    }
    load_depth(batch, k0, x, y);
    tf_isa->product->transpose(x, depth, TOGETHER, depth, p, TOGETHER);
    tf_isa->product->transpose(y, depth, TOGETHER, depth, q, TOGETHER);
    tf_isa->dot->lanes(p, q, depth, sums);
    return depth;
}

static void sum_batch(const struct batch *batch, float *x, float *y, float *sums)
{
    float part[TOGETHER];
    for (size_t k0 = 0; k0 < batch->k;) {
        const int adds = k0 != 0;
        k0 += multiply_depth(batch, k0, x, y, part);
        tf_add_row(part, sums, TOGETHER, adds);
    }
}

/* What sums that are not finite raise: Inf of finite numbers is an overflow, NaN of none
 * an invalid operation. */
static unsigned flags_of_sums(const struct batch *batch, const float *sums, float *x,
                              float *y, unsigned overflow)
{
    int nan[TOGETHER] = {0}, infinite[TOGETHER] = {0};
    for (size_t k0 = 0; k0 < batch->k; k0 += TF_DEPTH) {
        const size_t depth = load_depth(batch, k0, x, y);
        for (size_t j = 0; j < batch->count * depth; j++) {
            nan[j / depth] |= isnan(x[j]) || isnan(y[j]);
            infinite[j / depth] |= isinf(x[j]) || isinf(y[j]);
        }
    }
    unsigned flags = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (isnan(sums[i]) && !nan[i]) {
            flags |= TF_INVALID;
        } else if (isinf(sums[i]) && !nan[i] && !infinite[i]) {
            flags |= overflow;
        }
    }
    return flags;
}

/* Vectors of a stack, each a row or a column of its matrix. */
static struct tf_lines lines_of(struct tf_matrix x, int axis)
{
    return (struct tf_lines){.data = x.data,
                             .stride = x.step,
                             .along = x.strides[axis],
                             .kind = x.kind,
                             .format = x.kind,
                             .parts = 1};
}

int tf_short_dots(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                  ptrdiff_t k, ptrdiff_t count)
{
    float x[TOGETHER * TF_DEPTH], y[TOGETHER * TF_DEPTH], sums[TOGETHER];
    struct batch batch = {lines_of(a, 1), lines_of(b, 0), (size_t)k, TOGETHER};
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const int may_raise =
        tf_products_may_raise(batch.a) || tf_products_may_raise(batch.b);
    const struct tf_fp saved = tf_fp_begin();
    struct tf_watch watch = {0};
    unsigned flags = 0;
    int stopped = 0;
    for (ptrdiff_t done = 0, number = 0; done < count && !stopped;
         done += TOGETHER, number++) {
        batch.count = tf_lesser_size(TOGETHER, count - done);
        sum_batch(&batch, x, y, sums);
        if (tf_store_sums(c.kind, sums, c.data, c.step, batch.count, &flags) &&
            may_raise) {
            flags |= flags_of_sums(&batch, sums, x, y, overflow);
        }
        batch.a = tf_lines_from(batch.a, TOGETHER, 0);
        batch.b = tf_lines_from(batch.b, TOGETHER, 0);
        c.data += TOGETHER * c.step;
        stopped = number % LOOKS == LOOKS - 1 && tf_is_stopped(&watch, 1);
    }
    tf_fp_end(saved, flags);
    return stopped ? -1 : 0;
}
