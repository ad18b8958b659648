/* Plans products: all conditions, in the order in which they are asked. */
#include "matmul/plan.h"

#include "formats/casts.h"
#include "matmul/bf16_dot.h"
#include "matmul/dot.h"
#include "matmul/dot_tile.h"
#include "matmul/gemv.h"
#include "matmul/int8_dot.h"
#include "matmul/macro_kernel.h"
#include "matmul/pack.h"
#include "matmul/small.h"
#include "runtime/cpu_dispatch.h"
#include "runtime/sizes.h"

/* -- words and kernels ----------------------------------------------------------- */

static int fits_bf16(struct tf_operand x)
{
    return x.parts > 1 ? x.p == 8
                       : x.format < TF_FORMAT_COUNT &&
                             tf_format_rows[x.format]->mantissa_bits <= 7;
}

int tf_are_pairs(struct tf_operand a, struct tf_operand b)
{
    return tf_pairs_kernel().multiply && fits_bf16(a) && fits_bf16(b);
}

static enum tf_packing packing_of(struct tf_operand a, struct tf_operand b)
{
    return tf_has_quads(a, b)   ? TF_QUADS
           : tf_are_pairs(a, b) ? TF_PAIRS
                                : TF_SINGLES;
}

/* Singles use the tall micro-tile if pairs pay, since its panels are half as large in L1
 * (10 % faster on Zen 5, 4 % slower on Emerald Rapids). They also use it if its panels have
 * at least an eighth fewer columns, because fewer of these are empty. */
struct tf_kernel tf_kernel_of(enum tf_packing packing, size_t columns)
{
    const struct tf_matmul_kernels *product = tf_isa->matmul;
    if (packing != TF_SINGLES) {
        return packing == TF_QUADS ? tf_isa->quads->kernel : product->pairs;
    }
    const size_t wide = tf_filled(columns, product->singles);
    const int narrow = tf_filled(columns, product->tall) < wide - wide / 8;
    return tf_pairs_pay || narrow ? product->tall : product->singles;
}

/* -- the ways of a product --------------------------------------------------------- */

/* How much longer products take without a way: factors on a Zen 3 with AVX2, in one thread,
 * for formats from tf32 to FP8.
 *
 *     TF_SHORT_DOTS       1 x 256: 1.3 to 2 times; 1000 of 100 numbers: 15 to 21
 *     TF_SMALL_MATRICES   4 x 4 to 64 x 64: 1.2 to 1.6; 256 of 64 x 64: 1.2 to 1.4
 *     TF_DOT              65536 numbers: 2.4 to 4.8 as copies
 *     TF_DOT_OF_COPIES    65536 numbers: 70 to 150 by the macro-kernel
 *     TF_GEMV_ALONG_K     512 x 512: 3 to 5 across k, 3 to 7 by the macro-kernel
 *     TF_GEMV_ACROSS_K    2048 x 2048: 4 to 8 by the macro-kernel */
static const struct way {
    const struct tf_tile_path *path; /* of tiles */
    struct tf_way_text text;
} ways[] = {
    [TF_NOTHING] = {NULL, {"nothing", "k is 0, and C is kept"}},
    [TF_SHORT_DOTS] = {NULL, {"short dot products",
                              "each product has one row and one column, and k is at most"
                              " 256, or less than 4096 in a stack of 4 or more"}},
    [TF_SMALL_MATRICES] = {NULL, {"small matrices",
                                  "A, B and C fit on the stack of one thread"}},
    [TF_OWN_PATH] = {NULL, {"matrix unit", "the bits are those of a device"}},
    [TF_ZEROS] = {&tf_zero_path, {"zeros", "there is nothing to add"}},
    [TF_DOT] = {&tf_dot_path, {"dot product",
                               "C has one element; both vectors are read where they lie"}},
    [TF_DOT_OF_COPIES] = {&tf_dot_of_copies_path,
                          {"dot product of copies",
                           "C has one element; the vectors are converted first"}},
    [TF_GEMV_ALONG_K] = {&tf_gemv_along_path,
                         {"GEMV along k",
                          "one operand is a vector; the matrix is contiguous along k"}},
    [TF_GEMV_ACROSS_K] = {&tf_gemv_across_path,
                          {"GEMV across k",
                           "one operand is a vector; the matrix is not contiguous along"
                           " k, or is converted first"}},
    [TF_MACRO_KERNEL] = {&tf_macro_kernel_path,
                         {"macro-kernel", "A and B are packed for the micro-kernel"}},
};

struct tf_way_text tf_text_of_way(enum tf_way way) { return ways[way].text; }

const struct tf_tile_path *tf_path_of_way(const struct tf_plan_of_product *plan,
                                          enum tf_way way)
{
    return way == TF_OWN_PATH ? plan->product.precision->path : ways[way].path;
}

enum tf_way tf_way_of_tile(const struct tf_plan_of_product *plan, size_t rows,
                           size_t columns)
{
    const struct tf_product *p = &plan->product;
    if (p->precision->path) {
        return TF_OWN_PATH;
    }
    if (p->k == 0 || p->alpha == 0) {
        return TF_ZEROS;
    }
    if (rows == 1 && columns == 1) {
        return tf_dot_kernel(plan->a, plan->b) ? TF_DOT : TF_DOT_OF_COPIES;
    }
    if (rows == 1 && plan->a.parts == 1) {
        const int along = tf_runs_along(plan->b) && tf_dot_kernel_of_lines(plan->b);
        return along ? TF_GEMV_ALONG_K : TF_GEMV_ACROSS_K;
    }
    return TF_MACRO_KERNEL;
}

/* Returns whether products of formats are so short that tiles are not worth their cost.
 * These are dot products of up to 256 numbers, or at least FEW dot products of fewer than
 * 4096 numbers, which are as many chains as a kernel advances at once. */
static int are_short_dots(const struct tf_product *p)
{
    enum { FEW = 4, SHORT = 256, LONG = TF_DOT_CHAINS * TF_KC };
    return p->m == 1 && p->n == 1 && (p->k <= SHORT || (p->k < LONG && p->count >= FEW));
}

/* Returns whether all words of a packing have room on the stack, with rows rounded up to
 * whole micro-tiles and columns to whole panels. */
static int fits_stack(enum tf_packing packing, size_t m, size_t n, size_t k)
{
    const struct tf_kernel kernel = tf_kernel_of(packing, n);
    const size_t wide = tf_filled(n, kernel);
    const size_t high = tf_round_up((ptrdiff_t)m, (ptrdiff_t)kernel.rows);
    return m * wide <= TF_SMALL_NUMBERS && high * wide <= TF_SMALL_SUMS &&
           wide * tf_packed_words(k, packing) <= TF_SMALL_NUMBERS;
}

/* Chooses the packing of small matrices. Returns 0 if a product is too large: if it has
 * work for two threads, or so many multiply-adds that pairs pay, which only tiles use. */
static int fit_small(struct tf_plan_of_product *plan)
{
    enum { PAIRED = TF_SMALL_SIDE * TF_SMALL_SIDE * TF_SMALL_SIDE / 8 };
    const struct tf_product *p = &plan->product;
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    if (m == 1 || n == 1 || k > TF_KC || m > TF_SMALL_NUMBERS || n > TF_SMALL_NUMBERS ||
        m * k > TF_SMALL_NUMBERS || n * k > TF_SMALL_NUMBERS ||
        m * n * k * (size_t)p->count >= 2 * (size_t)TF_SHARE) {
        return 0;
    }
    if (plan->fastest.packing == TF_QUADS && fits_stack(TF_QUADS, m, n, k)) {
        return 1;
    }
    if ((tf_are_pairs(plan->a, plan->b) && m * n * k > PAIRED) ||
        !fits_stack(TF_SINGLES, m, n, k)) {
        return 0;
    }
    plan->fastest.packing = TF_SINGLES;
    return 1;
}

/* -- the plan ---------------------------------------------------------------------- */

/* Writes a matrix as lines along k: its rows (axis 0), or its columns (axis 1). Members are
 * written one by one: a copy of a whole struct would wait for its members, for 12 ns. */
static void read_lines(struct tf_operand *lines, const struct tf_precision *precision,
                       const struct tf_matrix *x, int axis)
{
    const int rounds = x->kind == TF_FLOAT32 || x->kind == TF_FLOAT64;
    const int splits = precision->parts > 1;
    lines->data = x->data;
    lines->stride = x->strides[axis];
    lines->along = x->strides[1 - axis];
    lines->kind = x->kind;
    lines->format = splits ? TF_FLOAT32 : rounds ? precision->format : x->kind;
    lines->rounding = precision->rounding;
    lines->parts = splits ? precision->parts : 1;
    lines->p = precision->format == tf_bfloat16_index ? 8 : 11;
    lines->scales = NULL;
}

/* Chooses the packed words, and the order in which their products are added. */
static void choose_words(struct tf_plan_of_product *plan)
{
    const struct tf_precision *precision = plan->product.precision;
    struct tf_split_schedule *own = plan->schedules;
    plan->singles.packing = TF_SINGLES;
    plan->singles.schedule = plan->fastest.schedule = &tf_one_term;
    if (precision->parts > 1) {
        own[0] = tf_split_schedule_of(precision, plan->a.p, plan->swapped, 0);
        plan->singles.schedule = plan->fastest.schedule = &own[0];
    }
    if (precision->parts > 1 && plan->fastest.packing == TF_PAIRS) {
        own[1] = tf_split_schedule_of(precision, plan->a.p, plan->swapped, 1);
        plan->fastest.schedule = &own[1];
    } else if (plan->fastest.packing == TF_QUADS) {
        own[1] = tf_terms_of_quads(plan->a, plan->b);
        plan->fastest.schedule = &own[1];
    }
}

/* Cuts C into tiles. Split operands and promoted accumulators need room for two sets of
 * sums. A tile of GEMV has up to TF_GEMV_N columns, whose sums are for L1. */
static void choose_tiles(struct tf_plan_of_product *plan)
{
    const struct tf_product *p = &plan->product;
    const int two_sets = p->precision->parts > 1 || p->precision->promote;
    const int gemv = p->m == 1 && p->precision->parts == 1 && !p->precision->path;
    const double multiply_adds = (double)p->m * (double)p->n * (double)p->k *
                                 (double)p->count *
                                 (double)plan->singles.schedule->count;
    const struct tf_tile_side rows = {two_sets ? TF_TILE_M / 2 : TF_TILE_M, TF_MC, TF_MC};
    const struct tf_tile_side columns = {gemv ? TF_GEMV_N : TF_NC, 2 * TF_NR_MAX,
                                         TF_NR_MAX};
    plan->tiles =
        tf_cut_into_tiles(p->m, p->n, p->count, multiply_adds, rows, columns);
}

static void transpose(struct tf_product *p)
{
    const struct tf_matrix a = p->a;
    const ptrdiff_t m = p->m;
    p->a = tf_transposed(p->b);
    p->b = tf_transposed(a);
    p->c = tf_transposed(p->c);
    p->m = p->n;
    p->n = m;
}

void tf_plan_product(struct tf_plan_of_product *plan)
{
    struct tf_product *p = &plan->product;
    plan->swapped = tf_should_transpose(p->c, p->m, p->n);
    if (plan->swapped) {
        transpose(p);
    }
    read_lines(&plan->a, p->precision, &p->a, 0);
    read_lines(&plan->b, p->precision, &p->b, 1);
    plan->scales = NULL;
    if (p->precision->continues && p->k == 0) {
        plan->way = TF_NOTHING;
        return;
    }
    const int plain = plan->a.parts == 1 && !p->precision->path && p->k > 0 &&
                      p->a.kind < TF_FORMAT_COUNT && p->b.kind < TF_FORMAT_COUNT &&
                      p->alpha == 1 && p->beta == 0;
    if (plain && are_short_dots(p)) {
        plan->way = TF_SHORT_DOTS;
        return;
    }
    plan->fastest.packing = packing_of(plan->a, plan->b);
    if (plain && fit_small(plan)) {
        plan->way = TF_SMALL_MATRICES;
        plan->fastest.kernel = tf_kernel_of(plan->fastest.packing, (size_t)p->n);
        return;
    }
    choose_words(plan);
    choose_tiles(plan);
    const size_t rows = (size_t)plan->tiles.rows, columns = (size_t)plan->tiles.columns;
    plan->way = tf_way_of_tile(plan, rows, columns);
    plan->singles.kernel = tf_kernel_of(TF_SINGLES, columns);
    plan->fastest.kernel = tf_kernel_of(plan->fastest.packing, columns);
}
