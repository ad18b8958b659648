/* Matrix products: tiles of C for threads, and what becomes of their sums. */
#include "matmul/matmul.h"

#include <math.h>
#include <stdlib.h>

#include "formats/casts.h"
#include "matmul/dot.h"
#include "runtime/fp_environment.h"
#include "matmul/int8_dot.h"
#include "matmul/operand_scales.h"
#include "matmul/small.h"
#include "matmul/specials.h"
#include "matmul/epilogue.h"
#include "matmul/bf16_dot.h"
#include "matmul/gemv.h"
#include "matmul/tile.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

void tf_matmul_prepare(void)
{
    tf_probe_bf16_dot();
    tf_workers_prepare(sizeof(struct tf_workspace));
}

/* Tiles of C, all of the same size but for the last ones. */
struct tiling {
    ptrdiff_t rows, columns;    /* of a tile */
    ptrdiff_t vertical, across; /* tiles of a matrix */
};

/* Small enough that every thread finds work: two tiles or more. Parts, and what is
 * promoted, need room for two sets of sums. */
static struct tiling choose_tiling(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count,
                             ptrdiff_t threads, int two_sets, int row)
{
    struct tiling t = {two_sets ? TF_TILE_M / 2 : TF_TILE_M,
                       row ? TF_GEMV_N : TF_NC, 0, 0};
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

struct call {
    const struct tf_precision *precision;
    struct tf_matrix a, b, c;
    ptrdiff_t m, n, k, count;
    struct tiling tiling;
    const struct tf_split_schedule *singles, *pairs, *quads;
    float alpha, beta;
    float *scales; /* of rows of A and columns of B, matrix after matrix; or NULL */
    int swapped;   /* A and B, and rows and columns of C, have changed places */
};

static struct tf_operand lines_of(const struct call *call, struct tf_matrix x, int axis)
{
    const struct tf_precision *precision = call->precision;
    const int rounds = x.kind == TF_FLOAT32 || x.kind == TF_FLOAT64;
    const int splits = precision->parts > 1;
    return (struct tf_operand){
        .data = x.data,
        .stride = x.strides[axis],
        .along = x.strides[1 - axis],
        .kind = x.kind,
        .format = splits   ? TF_FLOAT32
                  : rounds ? precision->format
                           : x.kind,
        .rounding = precision->rounding,
        .parts = splits ? precision->parts : 1,
        .p = precision->format == tf_bfloat16_index ? 8 : 11,
    };
}

static unsigned store_tile(const struct call *call, struct tf_workspace *work,
                           const struct tf_tile *tile,
                           const struct tf_tile_path *path, float *sums,
                           struct tf_matrix c)
{
    const struct tf_epilogue update = {call->alpha, call->beta, tile->a.scales,
                                     tile->b.scales, call->swapped};
    const ptrdiff_t itemsize = (ptrdiff_t)tf_kind_size(c.kind);
    const size_t columns = tile->columns;
    const int joined = work->ld == columns && c.strides[1] == itemsize &&
                       c.strides[0] == itemsize * (ptrdiff_t)columns;
    const size_t together = joined ? TF_CHUNK / columns : 1;
    const int updates = update.row_scales || update.alpha != 1 || update.beta != 0;
    unsigned flags = 0;
    int special = 0;
    for (size_t i = 0; i < tile->rows; i += together) {
        const size_t rows = tf_min_size(tile->rows - i, together);
        char *data = c.data + (ptrdiff_t)i * c.strides[0];
        for (size_t r = i; updates && r < i + rows; r++) {
            tf_apply_epilogue(&update, sums + r * work->ld, r, columns, c.kind,
                           c.data + (ptrdiff_t)r * c.strides[0], c.strides[1]);
        }
        special |= path->store(c.kind, sums + i * work->ld, data, c.strides[1],
                               rows * columns, &flags);
    }
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const unsigned left = (overflow | TF_INVALID) & ~flags;
    if (special && left && call->alpha != 0 &&
        (tf_products_may_raise(tile->a) || tf_products_may_raise(tile->b))) {
        const struct tf_doubtful_sums product = {
            .a = tile->a, .b = tile->b,
            .rows = tile->rows, .columns = columns, .k = call->k,
            .sums = sums, .ld = work->ld,
            .overflow = overflow, .wanted = left,
            .in_row = work->in_row, .in_column = work->in_column,
            .watch = work->watch, .asks = work->asks,
        };
        flags |= tf_flags_of_specials(&product);
    }
    return flags;
}

/* Small matrices of a stack beyond the second cache, each in one piece: no processor
 * foresees the next. */
static void prefetch_next(const struct call *call, struct tf_tile *tile,
                       struct tf_matrix a, struct tf_matrix b, struct tf_matrix c)
{
    enum { SMALL = 1 << 14, CACHE = 1 << 20 };
    const ptrdiff_t bytes[3] = {
        call->m * call->k * (ptrdiff_t)tf_kind_size(a.kind),
        call->k * call->n * (ptrdiff_t)tf_kind_size(b.kind),
        call->m * call->n * (ptrdiff_t)tf_kind_size(c.kind),
    };
    const struct tf_matrix matrices[3] = {a, b, c};
    const int cached = call->count * (bytes[0] + bytes[1] + bytes[2]) < CACHE;
    if (cached) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (matrices[i].step == bytes[i] && bytes[i] <= SMALL) {
            tile->ahead[i].data = matrices[i].data + (i < 2 ? bytes[i] : 0);
            tile->ahead[i].lines = (size_t)bytes[i] / 64;
        }
    }
}

static unsigned multiply_one(const void *context, ptrdiff_t task,
                             struct tf_worker *worker)
{
    struct tf_workspace *work = tf_workspace_of(worker);
    const struct call *call = context;
    const struct tiling t = call->tiling;
    const ptrdiff_t number = task / (t.vertical * t.across);
    const ptrdiff_t i = task / t.across % t.vertical * t.rows;
    const ptrdiff_t j = task % t.across * t.columns;
    struct tf_matrix a = call->a, b = call->b, c = call->c;
    a.data += number * a.step;
    b.data += number * b.step;
    c.data += number * c.step + i * c.strides[0] + j * c.strides[1];
    struct tf_tile tile = {
        .a = lines_of(call, a, 0),
        .b = lines_of(call, b, 1),
        .rows = tf_min_size(t.rows, call->m - i),
        .columns = tf_min_size(t.columns, call->n - j),
        .singles = call->singles,
        .pairs = call->pairs,
        .quads = call->quads,
        .precision = call->precision,
        .swapped = call->swapped,
        .accumulators = call->precision->continues ? &c : NULL,
    };
    if (call->scales) {
        tile.a.scales = call->scales + number * (call->m + call->n);
        tile.b.scales = tile.a.scales + call->m;
    }
    tile.a = tf_operand_from(tile.a, i, 0);
    tile.b = tf_operand_from(tile.b, j, 0);
    prefetch_next(call, &tile, a, b, c);
    const struct tf_tile_path *path = tf_matmul_tile(
        work, &tile, call->alpha == 0 ? 0 : call->k, call->precision->saturates);

    unsigned flags = 0;
    for (size_t j0 = 0; j0 < tile.columns && !tf_stops(work); j0 += TF_NC) {
        struct tf_tile piece = tile;
        piece.b = tf_operand_from(tile.b, (ptrdiff_t)j0, 0);
        piece.columns = tf_min_size(TF_NC, tile.columns - j0);
        flags |= store_tile(call, work, &piece, path, work->sums + j0, c);
        c.data += TF_NC * c.strides[1];
    }
    return call->precision->silent ? 0 : flags;
}

/* A scale for each row of A and column of B, of one matrix after the other: less memory
 * than the operands have, by a factor of k. */
static int scale_operands(struct call *call, ptrdiff_t count)
{
    const ptrdiff_t m = call->m, n = call->n;
    if (call->precision->scaling == TF_UNSCALED || call->alpha == 0) {
        return 0;
    }
    call->scales = malloc((size_t)count * (size_t)(m + n) * sizeof(float));
    if (!call->scales) {
        return -1;
    }
    const int own = call->precision->scaling == TF_SCALED_LINES;
    struct tf_watch watch = {0};
    float *rows = call->scales;
    for (ptrdiff_t number = 0; number < count; number++, rows += m + n) {
        struct tf_operand a = lines_of(call, call->a, 0), b = lines_of(call, call->b, 1);
        a.data += number * call->a.step;
        b.data += number * call->b.step;
        if (number > 0 && call->a.step == 0) {
            memcpy(rows, call->scales, (size_t)m * sizeof *rows);
        } else {
            tf_find_scales(a, m, call->k, own, rows, &watch);
        }
        if (number > 0 && call->b.step == 0) {
            memcpy(rows + m, call->scales + m, (size_t)n * sizeof *rows);
        } else {
            tf_find_scales(b, n, call->k, own, rows + m, &watch);
        }
        if (tf_is_stopped(&watch, 1)) {
            return -1;
        }
    }
    return 0;
}

static int run(struct call *call, ptrdiff_t count, ptrdiff_t threads)
{
    const ptrdiff_t tasks = call->tiling.vertical * call->tiling.across * count;
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    const int failed = scale_operands(call, count) ||
                       tf_do_tasks(multiply_one, call, tasks, threads, &flags);
    free(call->scales);
    tf_fp_end(saved, flags);
    return failed ? -1 : 0;
}

int tf_should_transpose(struct tf_matrix c, ptrdiff_t m, ptrdiff_t n)
{
    const int columns_are_close = labs(c.strides[0]) < labs(c.strides[1]);
    return m > n && n < TF_MR   ? 1
           : n > m && m < TF_MR ? 0
                                          : columns_are_close;
}

/* Of numbers that are not split. */
static const struct tf_split_schedule one_term = {{{0, 0, 1}}, 1, TF_KC};

int tf_gemm_strided(const struct tf_precision *precision, struct tf_matrix a,
                struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                ptrdiff_t k, ptrdiff_t count, float alpha, float beta)
{
    if (precision->continues && k == 0) {
        return 0;
    }
    const int p = precision->format == tf_bfloat16_index ? 8 : 11;
    const int swapped = tf_should_transpose(c, m, n);
    struct call call = {
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
        .swapped = swapped,
    };
    struct tf_split_schedule split[2], quads;
    if (precision->parts > 1) {
        split[0] = tf_split_schedule_of(precision, p, swapped, 0);
        split[1] = tf_split_schedule_of(precision, p, swapped, 1);
        call.singles = &split[0];
        call.pairs = &split[1];
    }
    const struct tf_operand x = lines_of(&call, call.a, 0), y = lines_of(&call, call.b, 1);
    if (tf_has_quads(x, y)) {
        quads = tf_terms_of_quads(x, y);
        call.quads = &quads;
    }
    const double products =
        (double)m * (double)n * (double)k * (double)count * (double)call.singles->count;
    const ptrdiff_t threads = tf_threads_for(products / TF_SHARE);
    const int row = !precision->path && tf_is_gemv(x, call.m);
    const int two_sets = precision->parts > 1 || precision->promote;
    call.tiling = choose_tiling(call.m, call.n, count, threads, two_sets, row);
    return run(&call, count, threads);
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

void tf_split(const float *in, ptrdiff_t n, int p, int parts, float *out)
{
    struct tf_magnitude_range range = tf_no_range();
    tf_isa->matmul->split_singles(in, (size_t)n, p, parts, out, (size_t)n, &range);
}
