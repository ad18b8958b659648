/* Products as a tensor core computes them, tile by tile. */
#include "tensor_core/mma_matmul.h"

#include "matmul/bf16_dot.h"
#include "runtime/sizes.h"
#include "tensor_core/kernels.h"
#include "tensor_core/mma_epilogue.h"

/* How the elements of a tile are chained. */
static struct tf_mma_plan plan_of(const struct tf_tile *tile)
{
    enum { PROMOTED = 16 }; /* k, of parts: NVIDIA/cutlass example 78 */
    const struct tf_precision *precision = tile->precision;
    const struct tf_device *device = (const struct tf_device *)precision;
    const struct tf_split_schedule *terms = tile->singles;
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

/* Whether there is an Inf or NaN among numbers that are split. */
static void note_specials(struct tf_workspace *work, struct tf_magnitude_range range)
{
    work->has_specials |= tf_exponents_of(&range).greatest > 127;
}

/* Whether loops have to know more of operands than their exponents. */
static int is_read(const struct tf_mma_plan *plan)
{
    return plan->rounded.depth && plan->rounded.arithmetic != TF_TWO_STAGES;
}

static void pack_columns(struct tf_workspace *work, const struct tf_mma_plan *plan,
                         const struct tf_tile *tile, size_t depth)
{
    const struct tf_mma_kernels *mma = tf_isa->mma;
    const struct tf_mma_exponents exponents =
        exponents_for(plan, plan->model.least_b);
    struct tf_magnitude_range range = tf_no_range();
    tf_pack_b(work, tile->b, tile->columns, depth, 0, mma->columns, &range);
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
    note_specials(work, range);
}

/* Rows of A from the i-th on: an MC panel, filled up with zeros. */
static size_t pack_rows(struct tf_workspace *work, const struct tf_mma_plan *plan,
                        const struct tf_tile *tile, size_t i, size_t depth)
{
    const struct tf_mma_exponents exponents =
        exponents_for(plan, plan->model.least_a);
    const size_t count = tf_min_size(tile->rows - i, TF_MC);
    const size_t rows = tf_round_up(count, TF_MR);
    struct tf_magnitude_range range = tf_no_range();
    tf_pack_a(work, tf_operand_from(tile->a, (ptrdiff_t)i, 0), count,
              TF_MR, depth, 0, depth, &range);
    if (is_read(plan)) {
        tf_isa->rounded->read_rows(&plan->rounded, work->a, rows, depth,
                                   work->a_exponents);
        return rows;
    }
    for (int part = 0; part < tile->a.parts; part++) {
        const size_t first = (size_t)part * TF_PACKED_A;
        tf_isa->mma->exponents_of_rows(work->a + first, rows * depth, exponents,
                                          work->a_exponents + first);
    }
    note_specials(work, range);
    return rows;
}

/* One k-step of a tile. */
static void multiply_depth(struct tf_workspace *work, const struct tf_mma_plan *plan,
                           const struct tf_tile *tile, size_t depth, float *sums)
{
    const struct tf_mma_kernels *mma = tf_isa->mma;
    tf_mma_chains *const chains =
        plan->rounded.depth ? tf_isa->rounded->chains : mma->chains;
    const size_t width = mma->columns, ld = work->ld;
    const size_t step = plan->rounded.depth ? depth : TF_MMA_DEPTH;
    pack_columns(work, plan, tile, depth);
    for (size_t i = 0; i < tile->rows; i += TF_MC) {
        const size_t rows = pack_rows(work, plan, tile, i, depth);
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
}

/* -- accumulators ------------------------------------------------------------------ */

/* With which a tile begins; what fills the last panel and rows is zero. */
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
