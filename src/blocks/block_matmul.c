/* Matrix multiplication of arrays of blocks: the tiles of C, their sums over blocks along
 * k, and the rounding of the sums. */
#include "blocks/block_matmul.h"

#include "blocks/block_pack.h"
#include "blocks/code_tables.h"
#include "blocks/kernels.h"
#include "matmul/epilogue.h"
#include "matmul/pack.h"
#include "matmul/plan.h"
#include "matmul/specials.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"

struct matmul_call {
    struct tf_packed_block_operand a, b;
    struct tf_matrix c;
    ptrdiff_t k, block;
    struct tf_block_term terms[TF_BLOCK_LEVELS * TF_BLOCK_LEVELS];
    size_t count;
    int pairs;
};

/* -- terms ------------------------------------------------------------------------- */

/* Lists the products of levels, in the order of the factors as the caller gave them. */
static void choose_terms(struct matmul_call *call, int terms, int swapped)
{
    const int levels_of_a = call->a.x.levels, levels_of_b = call->b.x.levels;
    const int first = swapped ? levels_of_b : levels_of_a;
    const int second = swapped ? levels_of_a : levels_of_b;
    for (int i = 0; i < TF_BLOCK_LEVELS; i++) {
        for (int j = 0; j < TF_BLOCK_LEVELS; j++) {
            const int number = TF_BLOCK_LEVELS * i + j;
            const int there = (i == 0 || i < first) && (j == 0 || j < second);
            if (there && number < terms) {
                const size_t a = (size_t)(swapped ? j : i);
                const size_t b = (size_t)(swapped ? i : j);
                call->terms[call->count++] = (struct tf_block_term){
                    .a = a * TF_PACKED_A,
                    .b = b * TF_PACKED_B,
                    .a_scales = a * TF_LEVEL_OF_A,
                    .b_scales = b * TF_LEVEL_OF_B,
                };
            }
        }
    }
}

/* -- one tile ---------------------------------------------------------------------- */

struct block_tile {
    struct tf_packed_block_operand a, b;
    size_t rows, columns;
};

/* Multiplies the rows of an MC panel by the columns, which are packed in the same way. */
static void block_macro_kernel(struct tf_workspace *work, const struct matmul_call *call,
                          size_t rows, size_t columns, size_t depth, int pairs,
                          float *sums, int adds)
{
    const struct tf_block_product *loops = tf_isa->blocks->product;
    tf_block_product_fn *multiply = pairs ? loops->pairs : loops->singles;
    const size_t block = (size_t)call->block, width = tf_isa->blocks->product->columns;
    const struct tf_block_chain chain = {
        .terms = call->terms,
        .count = call->count,
        .block = tf_packed_words(block, pairs),
        .words = tf_packed_words(depth, pairs),
        .blocks = tf_ceil_div(depth, block),
    };
    for (size_t j = 0; j < columns; j += width) {
        for (size_t i = 0; i < rows; i += TF_MR) {
            multiply(&chain, work->a + i * chain.words,
                     work->a + TF_SCALES_OF_A + i * chain.blocks,
                     work->b + j * chain.words,
                     work->b + TF_SCALES_OF_B + j * chain.blocks,
                     sums + i * work->ld + j, work->ld, adds);
        }
    }
}

/* Adds TF_KC k, or the rest, to a tile. Returns the MC panels that were left out, since
 * pairs would not be exact for them. */
static unsigned multiply_stretch(struct tf_workspace *work,
                                 const struct matmul_call *call,
                                 const struct block_tile *tile, ptrdiff_t k, int pairs,
                                 unsigned mc_panels)
{
    const size_t depth = tf_min_size(TF_KC, call->k - k);
    const int a_noted = pairs && !tile->a.x.levels;
    const int b_noted = pairs && !tile->b.x.levels;
    struct tf_exponents a = tf_block_exponents(&tile->a.x);
    struct tf_exponents b = tf_block_exponents(&tile->b.x);
    struct tf_magnitude_range range = tf_no_range();
    unsigned left = 0;
    tf_pack_block_columns(work, &tile->b, tile->columns, k, depth, pairs,
                          b_noted ? &range : NULL);
    b = b_noted ? tf_exponents_of(&range) : b;
    for (size_t i = 0; i < tile->rows && !tf_stops(work); i += TF_MC) {
        const size_t rows = tf_min_size(tile->rows - i, TF_MC);
        const struct tf_packed_block_operand panel =
            tf_block_operand_from(tile->a, 0, (ptrdiff_t)i);
        if (!(mc_panels >> i / TF_MC & 1)) {
            continue;
        }
        range = tf_no_range();
        tf_pack_block_rows(work, &panel, rows, k, depth, pairs, a_noted ? &range : NULL);
        a = a_noted ? tf_exponents_of(&range) : a;
        if (pairs && !tf_bf16_dot_is_exact(a, b)) {
            left |= 1u << i / TF_MC;
        } else {
            block_macro_kernel(work, call, rows, tile->columns, depth, pairs,
                          work->sums + i * work->ld, k != 0);
        }
    }
    return left;
}

static void multiply_block_tile(struct tf_workspace *work,
                                const struct matmul_call *call,
                                const struct block_tile *tile)
{
    const size_t width = tf_isa->blocks->product->columns;
    const size_t columns = tf_round_up(tile->columns, width);
    work->ld = columns <= TF_COMPACT ? columns : TF_LDC;
    if (call->k == 0) {
        memset(work->sums, 0, tile->rows * work->ld * sizeof(float));
    }
    for (ptrdiff_t k = 0; k < call->k && !tf_stops(work); k += TF_KC) {
        unsigned mc_panels = ~0u;
        if (call->pairs) {
            mc_panels = multiply_stretch(work, call, tile, k, 1, mc_panels);
        }
        if (mc_panels) {
            multiply_stretch(work, call, tile, k, 0, mc_panels);
        }
    }
}

static unsigned store_block_tile(struct tf_workspace *work,
                                 const struct matmul_call *call,
                                 const struct block_tile *tile, struct tf_matrix c)
{
    unsigned flags = 0;
    int special = 0;
    for (size_t i = 0; i < tile->rows; i++, c.data += c.strides[0]) {
        special |= tf_store_sums(c.kind, work->sums + i * work->ld, c.data,
                                 c.strides[1], tile->columns, &flags);
    }
    const unsigned overflow = tf_overflow_of_sums(c.kind);
    if (special) {
        tf_mark_block_lines(work, &tile->a, tile->rows, call->k, work->in_row);
        tf_mark_block_lines(work, &tile->b, tile->columns, call->k, work->in_column);
        flags |= tf_matmul_fp_flags(work->in_row, work->in_column, tile->rows,
                                   tile->columns, work->sums, work->ld, overflow);
    }
    return flags;
}

/* Computes one tile of a struct matmul_call, as a tf_tile_fn. */
static unsigned multiply_task(const void *context, struct tf_tile_place place,
                              struct tf_worker *worker)
{
    struct tf_workspace *work = tf_workspace_of(worker);
    const struct matmul_call *call = context;
    const struct block_tile tile = {
        .a = tf_block_operand_from(call->a, place.number, place.i),
        .b = tf_block_operand_from(call->b, place.number, place.j),
        .rows = place.rows,
        .columns = place.columns,
    };
    struct tf_matrix c = call->c;
    c.data += place.number * c.step + place.i * c.strides[0] + place.j * c.strides[1];
    multiply_block_tile(work, call, &tile);
    return tf_stops(work) ? 0 : store_block_tile(work, call, &tile, c);
}

/* -- the whole multiplication ------------------------------------------------------- */

/* The values of all codes of an operand's scales. */
struct scales {
    float values[256], residuals[256];
};

static struct tf_packed_block_operand packed_operand_of(const struct tf_block_operand *x,
                                                        ptrdiff_t block,
                                                        struct scales *scales)
{
    const struct tf_scale kind = tf_scales[x->scale];
    for (uint32_t code = 0; x->levels && code < 256; code++) {
        scales->values[code] = tf_block_scale(kind, x->tensor_scale, code);
    }
    for (uint32_t code = 0; x->levels > 1 && code < 256; code++) {
        const struct tf_element lo = tf_elements[x->level[1].element];
        scales->residuals[code] = tf_residual_scale(kind, lo, code);
    }
    return (struct tf_packed_block_operand){*x, scales->values, scales->residuals, block};
}

int tf_block_matmul(const struct tf_block_operand *a, const struct tf_block_operand *b,
                    struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                    ptrdiff_t count, ptrdiff_t block, int terms, unsigned *flags)
{
    struct scales scales[2];
    const struct tf_fp saved = tf_fp_begin();
    const int swapped = tf_should_transpose(c, m, n);
    struct matmul_call call = {
        .a = packed_operand_of(swapped ? b : a, block, &scales[0]),
        .b = packed_operand_of(swapped ? a : b, block, &scales[1]),
        .c = swapped ? tf_transposed(c) : c,
        .k = k,
        .block = block,
    };
    choose_terms(&call, terms, swapped);
    call.pairs =
        tf_are_pairs(tf_numbers_of(&call.a.x, 0), tf_numbers_of(&call.b.x, 0));
    const struct tf_tiles tiles = tf_cut_into_tiles(
        swapped ? n : m, swapped ? m : n, count,
        (double)m * (double)n * (double)k * (double)count * (double)call.count,
        (struct tf_tile_side){TF_TILE_M, 2 * TF_MR, TF_MR},
        (struct tf_tile_side){TF_NC, 2 * TF_NR_MAX, TF_NR_MAX});
    const int failed = tf_compute_tiles(&tiles, multiply_task, &call, flags);
    tf_fp_end(saved, 0);
    return failed;
}
