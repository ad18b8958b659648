/* Matrix products: which way each takes, and the tiles of C that threads compute. */
#include "matmul/matmul.h"

#include "matmul/dot.h"
#include "runtime/fp_environment.h"
#include "matmul/int8_dot.h"
#include "matmul/operand_scales.h"
#include "matmul/small.h"
#include "matmul/bf16_dot.h"
#include "matmul/gemv.h"
#include "matmul/tile.h"
#include "runtime/reserve.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

void tf_matmul_prepare(void)
{
    tf_probe_bf16_dot();
    tf_workers_prepare(sizeof(struct tf_workspace));
}

/* As many tiles as there are threads, where columns divide so: all have the same work, and
 * nothing of B, which has more lines, is packed twice. Else so small ones that every thread
 * finds work: two tiles or more. Parts, and what is promoted, need room for two sets of
 * sums. */
static struct tf_tiling choose_tiling(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count,
                                      ptrdiff_t threads, int two_sets, int is_gemv)
{
    struct tf_tiling t = {two_sets ? TF_TILE_M / 2 : TF_TILE_M,
                          is_gemv ? TF_GEMV_N : TF_NC, 0, 0};
    const ptrdiff_t share = n / threads;
    if (threads > 1 && count == 1 && m <= t.rows && m <= n && n % threads == 0 &&
        share <= TF_NC && share >= 2 * TF_NR_MAX && share % TF_NR_MAX == 0) {
        return (struct tf_tiling){t.rows, share, 1, threads};
    }
    for (;;) {
        t.vertical = tf_ceil_div(m, t.rows);
        t.across = tf_ceil_div(n, t.columns);
        const int enough = threads == 1 || t.vertical * t.across * count >= 2 * threads;
        if (enough || (t.rows <= TF_MC && t.columns <= 2 * TF_NR_MAX)) {
            return t;
        }
        if (t.rows > TF_MC && (t.columns <= 2 * TF_NR_MAX || t.rows >= t.columns)) {
            t.rows = tf_round_up(t.rows / 2, TF_MC);
        } else {
            t.columns /= 2;
        }
    }
}

/* A scale for each row of A and column of B, of one matrix after the other: less memory
 * than the operands have, by a factor of k. */
static int scale_operands(struct tf_tiled_product *product, ptrdiff_t count)
{
    const ptrdiff_t m = product->m, n = product->n;
    if (product->precision->scaling == TF_UNSCALED || product->alpha == 0) {
        return 0;
    }
    product->scales = tf_room((size_t)count * (size_t)(m + n) * sizeof(float));
    if (!product->scales) {
        return -1;
    }
    const int own = product->precision->scaling == TF_SCALED_LINES;
    struct tf_watch watch = {0};
    const float of_a = product->greatest[product->swapped];
    const float of_b = product->greatest[!product->swapped];
    float *rows = product->scales;
    for (ptrdiff_t number = 0; number < count; number++, rows += m + n) {
        struct tf_operand a = tf_operand_of(product, product->a, 0);
        struct tf_operand b = tf_operand_of(product, product->b, 1);
        a.data += number * product->a.step;
        b.data += number * product->b.step;
        if (number > 0 && product->a.step == 0) {
            memcpy(rows, product->scales, (size_t)m * sizeof *rows);
        } else {
            tf_find_scales(a, m, product->k, own, of_a, rows, &watch);
        }
        if (number > 0 && product->b.step == 0) {
            memcpy(rows + m, product->scales + m, (size_t)n * sizeof *rows);
        } else {
            tf_find_scales(b, n, product->k, own, of_b, rows + m, &watch);
        }
        if (tf_is_stopped(&watch, 1)) {
            return -1;
        }
    }
    return 0;
}

static int run(struct tf_tiled_product *product, ptrdiff_t count, ptrdiff_t threads)
{
    const ptrdiff_t tasks = product->tiling.vertical * product->tiling.across * count;
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    const int failed = scale_operands(product, count) ||
                       tf_do_tasks(tf_multiply_tile, product, tasks, threads, &flags);
    tf_room_free(product->scales);
    tf_fp_end(saved, flags);
    return failed ? -1 : 0;
}

/* Of numbers that are not split. */
static const struct tf_split_schedule one_term = {{{0, 0, 1}}, 1, TF_KC};

static int gemm(const struct tf_precision *precision, const float greatest[2],
                struct tf_matrix a, struct tf_matrix b, struct tf_matrix c, ptrdiff_t m,
                ptrdiff_t n, ptrdiff_t k, ptrdiff_t count, float alpha, float beta)
{
    if (precision->continues && k == 0) {
        return 0;
    }
    const int p = precision->format == tf_bfloat16_index ? 8 : 11;
    const int swapped = tf_should_transpose(c, m, n);
    struct tf_tiled_product product = {
        .precision = precision,
        .a = swapped ? tf_transposed(b) : a,
        .b = swapped ? tf_transposed(a) : b,
        .c = swapped ? tf_transposed(c) : c,
        .m = swapped ? n : m,
        .n = swapped ? m : n,
        .k = k,
        .count = count,
        .singles = &one_term,
        .pairs = &one_term,
        .alpha = alpha,
        .beta = beta,
        .greatest = {greatest[0], greatest[1]},
        .swapped = swapped,
    };
    struct tf_split_schedule split[2], quads;
    if (precision->parts > 1) {
        split[0] = tf_split_schedule_of(precision, p, swapped, 0);
        split[1] = tf_split_schedule_of(precision, p, swapped, 1);
        product.singles = &split[0];
        product.pairs = &split[1];
    }
    const struct tf_operand x = tf_operand_of(&product, product.a, 0);
    const struct tf_operand y = tf_operand_of(&product, product.b, 1);
    if (tf_has_quads(x, y)) {
        quads = tf_terms_of_quads(x, y);
        product.quads = &quads;
    }
    const double products =
        (double)m * (double)n * (double)k * (double)count *
        (double)product.singles->count;
    const ptrdiff_t threads = tf_threads_for(products / TF_SHARE);
    const int is_gemv = !precision->path && tf_is_gemv(x, product.m);
    const int two_sets = precision->parts > 1 || precision->promote;
    product.tiling = choose_tiling(product.m, product.n, count, threads, two_sets,
                                   is_gemv);
    return run(&product, count, threads);
}

static const float unknown[2];

int tf_gemm_strided(const struct tf_precision *precision, struct tf_matrix a,
                struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                ptrdiff_t k, ptrdiff_t count, float alpha, float beta)
{
    return gemm(precision, unknown, a, b, c, m, n, k, count, alpha, beta);
}

int tf_matmul_part(const struct tf_precision *precision, const float greatest[2],
                   struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                   ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    return gemm(precision, greatest, a, b, c, m, n, k, 1, 1, 0);
}

int tf_matmul(const struct tf_precision *precision, struct tf_matrix a,
              struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
              ptrdiff_t k, ptrdiff_t count)
{
    if (m == 1 && n == 1 && precision->parts == 1 && !precision->path &&
        tf_are_short_dots(a, b, k, count)) {
        return tf_short_dots(a, b, c, k, count);
    }
    if (tf_multiply_small(precision, a, b, c, m, n, k, count)) {
        return 0;
    }
    return tf_gemm_strided(precision, a, b, c, m, n, k, count, 1, 0);
}
