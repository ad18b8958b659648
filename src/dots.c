#include "dots.h"

#include <math.h>

#include "casts.h"
#include "fpstatus.h"
#include "pack.h"
#include "sums.h"
#include "tile.h"

/* A vector has one chain, and a tile of the product of matrices would take as long as the
 * whole of it: so the chains of some vectors stand side by side. */
enum { TOGETHER = TF_DOT_CHAINS, LOOKS = 64 };

int tf_are_short_dots(struct tf_matrix a, struct tf_matrix b, ptrdiff_t k,
                      ptrdiff_t count)
{
    return k > 0 && k <= TF_DEPTH && count >= TOGETHER && a.kind < TF_FORMAT_COUNT &&
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

/* What sums that are not finite raise: Inf of finite numbers is an overflow, NaN of none
 * an invalid operation. */
static unsigned flags_of_sums(const float *sums, const float *a, const float *b,
                              size_t k, size_t count, unsigned overflow)
{
    unsigned flags = 0;
    for (size_t i = 0; i < count; i++) {
        int nan = 0, infinite = 0;
        for (size_t j = i * k; j < (i + 1) * k; j++) {
            nan |= isnan(a[j]) || isnan(b[j]);
            infinite |= isinf(a[j]) || isinf(b[j]);
        }
        if (isnan(sums[i]) && !nan) {
            flags |= TF_INVALID;
        } else if (isinf(sums[i]) && !nan && !infinite) {
            flags |= overflow;
        }
    }
    return flags;
}

int tf_short_dots(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                  ptrdiff_t k, ptrdiff_t count)
{
    float x[TOGETHER * TF_DEPTH], y[TOGETHER * TF_DEPTH];
    float p[TOGETHER * TF_DEPTH], q[TOGETHER * TF_DEPTH], sums[TOGETHER];
    const size_t depth = (size_t)k;
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const int may_raise = tf_products_may_raise((struct tf_lines){.kind = a.kind}) ||
                          tf_products_may_raise((struct tf_lines){.kind = b.kind});
    const struct tf_fp saved = tf_fp_begin();
    struct tf_watch watch = {0};
    unsigned flags = 0;
    int stopped = 0;
    for (ptrdiff_t done = 0, batch = 0; done < count && !stopped;
         done += TOGETHER, batch++) {
        const size_t here = tf_lesser_size(TOGETHER, count - done);
        load_lines(a, a.strides[1], depth, here, x);
        load_lines(b, b.strides[0], depth, here, y);
        tf_isa->product->transpose(x, depth, TOGETHER, depth, p, TOGETHER);
        tf_isa->product->transpose(y, depth, TOGETHER, depth, q, TOGETHER);
        tf_isa->dot->lanes(p, q, depth, sums);
        if (tf_store_sums(c.kind, sums, c.data, c.step, here, &flags) && may_raise) {
            flags |= flags_of_sums(sums, x, y, depth, here, overflow);
        }
        a.data += TOGETHER * a.step;
        b.data += TOGETHER * b.step;
        c.data += TOGETHER * c.step;
        stopped = batch % LOOKS == LOOKS - 1 && tf_is_stopped(&watch, 1);
    }
    tf_fp_end(saved, flags);
    return stopped ? -1 : 0;
}
