/* Multiplies matrices as a tensor core does, tile by tile. */
#include "tensor_core/mma_matmul.h"

#include <float.h>
#include <math.h>

#include "matmul/bf16_dot.h"
#include "matmul/pack.h"
#include "runtime/sizes.h"
#include "tensor_core/kernels.h"
#include "tensor_core/mma_epilogue.h"
#include "tensor_core/mma_specials.h"

enum { BIAS = 127 };

/* Returns how the elements of a tile are chained. */
static struct tf_mma_plan plan_of(const struct tf_tile *tile)
{
    enum { PROMOTED = 16 }; /* k per sum of split operands: NVIDIA/cutlass example 78 */
    const struct tf_precision *precision = tile->precision;
    const struct tf_device *device = (const struct tf_device *)precision;
    const struct tf_split_schedule *terms = tile->singles.schedule;
    const int32_t first = device->model.cut_first;
    const int32_t bits = !device->model.half ? device->model.kept : first ? first : 23;
    struct tf_mma_plan plan = {
        .model = device->model,
        .rounded = device->rounded,
        .pairs = tf_pairs_kernel(),
        .terms = terms->terms,
        .count = terms->count,
        .stretch = precision->parts > 1     ? PROMOTED
                   : device->model.emulated ? 2 * (size_t)device->model.depth
                                            : 0,
        .scales_inside = device->scales_inside,
        .mask = ~((UINT32_C(1) << (23 - bits)) - 1),
        .zero = device->model.negative_zero ? -0.0f : 0.0f,
    };
    if (tile->swapped) {
        plan.model.least_a = device->model.least_b;
        plan.model.least_b = device->model.least_a;
        plan.rounded.least_a = device->rounded.least_b;
        plan.rounded.least_b = device->rounded.least_a;
    }
    if (plan.rounded.depth) {
        plan.model.least_a = plan.rounded.least_a;
        plan.model.least_b = plan.rounded.least_b;
    }
    return plan;
}

/* -- chains ------------------------------------------------------------------------ */

static struct tf_mma_exponents exponents_for(const struct tf_mma_plan *plan,
                                             int32_t least)
{
    return (struct tf_mma_exponents){
        least, plan->model.zero_products ? TF_LEAST_SINGLE : TF_MMA_ZERO};
}

/* Returns the number of rows of an MC panel that begins with row i. */
static size_t rows_from(const struct tf_tile *tile, size_t i)
{
    return tf_min_size(tile->rows - i, TF_MC);
}

/* Returns whether the loops need notes on the operands instead of their exponents. */
static int is_read(const struct tf_mma_plan *plan)
{
    return plan->rounded.depth && plan->rounded.arithmetic != TF_TWO_STAGES;
}

/* Returns whether n packed numbers include an Inf or a NaN. If operands are split into
 * several parts, the range of the unsplit numbers decides. */
static int have_specials(const float *x, size_t n, int parts,
                         struct tf_magnitude_range *range)
{
    return parts > 1 ? tf_exponents_of(range).greatest > BIAS : tf_has_specials(x, n);
}

/* Packs the columns of B into panels. Returns whether they include an Inf or a NaN. */
static int pack_columns(struct tf_workspace *work, const struct tf_tile *tile, size_t depth)
{
    const size_t width = tf_isa->mma->columns;
    struct tf_magnitude_range range = tf_no_range();
    tf_pack_b(work, tile->b, tile->columns, depth, 0, width, &range);
    return have_specials(work->b, tf_round_up(tile->columns, width) * depth, tile->b.parts,
                         &range);
}

static void read_columns(struct tf_workspace *work, const struct tf_mma_plan *plan,
                         const struct tf_tile *tile, size_t depth)
{
    const struct tf_mma_kernels *mma = tf_isa->mma;
    const struct tf_mma_exponents exponents =
        exponents_for(plan, plan->model.least_b);
    const size_t columns = tf_round_up(tile->columns, mma->columns);
    if (is_read(plan)) {
        tf_isa->rounded->read_columns(&plan->rounded, work->b, columns, depth,
                                      work->b_exponents);
        return;
    }
    for (int part = 0; part < tile->b.parts; part++) {
        const size_t first = (size_t)part * TF_PACKED_B;
        mma->exponents_of_columns(work->b + first, columns * depth, exponents,
                                  work->b_exponents + first / 2);
    }
}

/* Packs an MC panel of A that begins with row i, and fills it up with zeros. Returns
 * whether its rows include an Inf or a NaN. */
static int pack_rows(struct tf_workspace *work, const struct tf_tile *tile, size_t i,
                     size_t depth)
{
    const size_t count = rows_from(tile, i);
    struct tf_magnitude_range range = tf_no_range();
    tf_pack_a(work, tf_operand_from(tile->a, (ptrdiff_t)i, 0), count, TF_MR, depth, 0, depth,
              &range);
    return have_specials(work->a, count * depth, tile->a.parts, &range);
}

static void read_rows(struct tf_workspace *work, const struct tf_mma_plan *plan,
                      int parts, size_t rows, size_t depth)
{
    const struct tf_mma_exponents exponents =
        exponents_for(plan, plan->model.least_a);
    if (is_read(plan)) {
        tf_isa->rounded->read_rows(&plan->rounded, work->a, rows, depth,
                                   work->a_exponents);
        return;
    }
    for (int part = 0; part < parts; part++) {
        const size_t first = (size_t)part * TF_PACKED_A;
        tf_isa->mma->exponents_of_rows(work->a + first, rows * depth, exponents,
                                          work->a_exponents + first);
    }
}

/* -- Inf and NaN ------------------------------------------------------------------- */

/* Returns the bits of the smallest magnitude that the unit does not read as zero. */
static uint32_t normal_from(const struct tf_mma_plan *plan, int32_t least)
{
    const int flushes =
        plan->rounded.depth && plan->rounded.flush_operands != TF_KEEP_SUBNORMAL;
    return flushes ? (uint32_t)(least + BIAS) << 23 : 1;
}

/* The largest finite magnitudes of a k-step: of A, of B and of the sums. */
struct magnitudes {
    double a, b, sums;
};

/* Returns whether no product and no sum of a k-step can overflow. A rounding adds less than
 * 2^-11 of a sum and is of at least one group; all of them add less than a quarter. */
static int stays_finite(const struct tf_mma_plan *plan, struct magnitudes most,
                        size_t depth)
{
    const double most_of_all = (most.a * most.b * (double)depth + most.sums) * 1.25;
    return most_of_all < (plan->model.half ? 65504 : FLT_MAX);
}

static float greatest_of_sums(const struct tf_workspace *work, const struct tf_tile *tile,
                              size_t i, size_t rows, const float *sums)
{
    float greatest = 0;
    for (size_t r = i; r < i + rows; r++) {
        greatest = fmaxf(greatest, tf_greatest_finite(sums + r * work->ld, tile->columns));
    }
    return greatest;
}

static float greatest_of_columns(const struct tf_workspace *work,
                                 const struct tf_tile *tile, size_t depth)
{
    return tf_greatest_finite(work->b,
                              tf_round_up(tile->columns, tf_isa->mma->columns) * depth);
}

/* Takes Inf and NaN out of the packed columns of B. */
static void take_columns(struct tf_workspace *work, const struct tf_mma_plan *plan,
                         const struct tf_tile *tile, size_t depth)
{
    const struct tf_packed_lines lines = {work->b, tf_isa->mma->columns, tile->columns,
                                          depth};
    tf_take_specials(&lines, normal_from(plan, plan->model.least_b), &work->specials[1]);
}

static void begin_outcomes(struct tf_workspace *work, const struct tf_tile *tile)
{
    if (!work->has_outcomes) {
        memset(work->outcomes, 0, tile->rows * TF_NC);
        work->has_outcomes = 1;
    }
}

/* Returns whether Inf and NaN can be taken out of all rows and columns of a k-step, and
 * prepares the outcomes if so. The caller asks if B has an Inf or a NaN, or if an earlier
 * k-step had some. Rows are packed only to find their largest magnitude. */
static int takes_all(struct tf_workspace *work, const struct tf_mma_plan *plan,
                     const struct tf_tile *tile, size_t depth, const float *sums)
{
    struct magnitudes most = {0, greatest_of_columns(work, tile, depth),
                              greatest_of_sums(work, tile, 0, tile->rows, sums)};
    for (size_t i = 0; i < tile->rows; i += TF_MC) {
        pack_rows(work, tile, i, depth);
        most.a = fmax(most.a, tf_greatest_finite(work->a, rows_from(tile, i) * depth));
    }
    if (!stays_finite(plan, most, depth)) {
        return 0;
    }
    begin_outcomes(work, tile);
    return 1;
}

/* Decides as takes_all for the packed rows from row i on, where B has no Inf or NaN. */
static int takes_rows(struct tf_workspace *work, const struct tf_mma_plan *plan,
                      const struct tf_tile *tile, size_t i, size_t depth,
                      const float *sums)
{
    const size_t count = rows_from(tile, i);
    const struct magnitudes most = {tf_greatest_finite(work->a, count * depth),
                                    greatest_of_columns(work, tile, depth),
                                    greatest_of_sums(work, tile, i, count, sums)};
    if (!stays_finite(plan, most, depth)) {
        return 0;
    }
    take_columns(work, plan, tile, depth);
    begin_outcomes(work, tile);
    return 1;
}

/* -- a k-step ---------------------------------------------------------------------- */

/* Adds one k-step to the sums of a tile. */
static void multiply_depth(struct tf_workspace *work, const struct tf_mma_plan *plan,
                           const struct tf_tile *tile, size_t depth, float *sums)
{
    const struct tf_mma_kernels *mma = tf_isa->mma;
    tf_mma_chains *const chains =
        plan->rounded.depth ? tf_isa->rounded->chains : mma->chains;
    const size_t width = mma->columns, ld = work->ld;
    const size_t step = plan->rounded.depth ? depth : TF_MMA_DEPTH;
    /* Sums of split operands that meet Inf or NaN are computed again from whole numbers. */
    const int takes = tile->precision->parts == 1;
    const int in_columns = pack_columns(work, tile, depth);
    int all = 0;
    if (takes && (in_columns || work->has_outcomes)) {
        all = takes_all(work, plan, tile, depth, sums);
        if (all) {
            take_columns(work, plan, tile, depth);
        } else {
            tf_settle_outcomes(work, tile->rows, tile->columns, sums);
        }
    }
    read_columns(work, plan, tile, depth);
    work->has_specials |= in_columns;
    for (size_t i = 0; i < tile->rows; i += TF_MC) {
        const size_t count = rows_from(tile, i), rows = tf_round_up(count, TF_MR);
        const int in_rows = pack_rows(work, tile, i, depth);
        const int here = all || (takes && in_rows && !in_columns &&
                                 takes_rows(work, plan, tile, i, depth, sums));
        if (here) {
            const struct tf_packed_lines lines = {work->a, 1, count, depth};
            tf_take_specials(&lines, normal_from(plan, plan->model.least_a),
                             &work->specials[0]);
            tf_add_outcomes(work, i, count, tile->columns, depth);
        }
        read_rows(work, plan, tile->a.parts, rows, depth);
        work->has_specials |= in_rows;
        for (size_t j = 0; j < tile->columns; j += width) {
            const float *panel = work->b + j * depth;
            const uint32_t *exponents = work->b_exponents + j * depth / 2;
            for (size_t k = 0; k < depth && !tf_stops(work); k += step) {
                const size_t here = tf_min_size(depth - k, step);
                chains(plan, work->a + k, work->a_exponents + k, depth,
                       panel + k * width, exponents + k * width / 2, here, rows,
                       sums + i * ld + j, ld);
            }
        }
    }
}

static void multiply_stretch(struct tf_workspace *work, const struct tf_mma_plan *plan,
                             const struct tf_tile *tile, ptrdiff_t k, float *sums)
{
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_KC) {
        const struct tf_tile k_step = tf_tile_from(*tile, k0);
        multiply_depth(work, plan, &k_step, tf_min_size(TF_KC, k - k0), sums);
    }
    tf_settle_outcomes(work, tile->rows, tile->columns, sums);
}

/* -- accumulators ------------------------------------------------------------------ */

/* Loads the accumulators of a tile from C, or begins with zeros if `from` is NULL. Sums
 * that only fill the last panel and rows are zero. */
static void begin(struct tf_workspace *work, const struct tf_tile *tile, float *sums,
                  const struct tf_matrix *from)
{
    const size_t bytes = work->ld * sizeof(float);
    memset(sums, 0, tf_round_up(tile->rows, TF_MR) * bytes);
    for (size_t i = 0; from && i < tile->rows; i++) {
        float *row = sums + i * work->ld;
        const char *data = from->data + (ptrdiff_t)i * from->strides[0];
        const float *found =
            tf_load_floats(from->kind, data, from->strides[1], tile->columns, row);
        if (found != row) {
            memcpy(row, found, tile->columns * sizeof *row);
        }
    }
}

static void compute(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k)
{
    struct tf_mma_plan plan = plan_of(tile);
    int are_multiples = !tile->accumulators;
    plan.are_multiples = &are_multiples;
    const ptrdiff_t promote = tile->precision->promote;
    const size_t width = tf_isa->mma->columns;
    const size_t columns = tf_round_up(tile->columns, width);
    work->has_outcomes = 0;
    work->ld = columns <= TF_COMPACT ? columns : TF_LDC;
    begin(work, tile, work->sums, tile->accumulators);
    if (!promote) {
        multiply_stretch(work, &plan, tile, k, work->sums);
        return;
    }
    float *more = tf_more_sums(work);
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += promote) {
        const struct tf_tile stretch = tf_tile_from(*tile, k0);
        begin(work, tile, more, NULL);
        multiply_stretch(work, &plan, &stretch, tf_min_size(promote, k - k0), more);
        for (size_t i = 0; i < tile->rows; i++) {
            float *row = work->sums + i * work->ld;
            tf_add_row(more + i * work->ld, row, tile->columns, 1);
            tf_mma_canonical_nans(row, row, tile->columns, 0);
        }
    }
}

const struct tf_tile_path tf_mma_path = {compute, tf_mma_store};
