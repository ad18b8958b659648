/* Multiplies float64 matrices as chains of fused multiply-adds: each task of a thread is
 * one tile of C. */
#include "tensor_core/fma_matmul.h"

#include <math.h>
#include <string.h>

#include "matmul/tiles.h"
#include "matmul/workspace.h"
#include "runtime/sizes.h"
#include "tensor_core/kernels.h"

/* A tile of C and the packed operands of one k-step, in a thread's scratch memory. */
struct workspace {
    double sums[TF_FMA_TILE_M * TF_FMA_LDC];
    double b[TF_FMA_KC * TF_FMA_NC];
    double a[TF_FMA_KC * TF_FMA_MC];
};

_Static_assert(sizeof(struct workspace) <= sizeof(struct tf_workspace), "it fits");

struct product {
    struct tf_matrix a, b, c;
    ptrdiff_t k;
    int filled; /* whether zeros follow the last k */
    tf_sums_fn *store; /* of sums that do not start from C; NULL: C is both */
    const void *context;
};

/* -- accumulators ------------------------------------------------------------------ */

static char *element(struct tf_matrix c, size_t i, size_t j)
{
    return c.data + (ptrdiff_t)i * c.strides[0] + (ptrdiff_t)j * c.strides[1];
}

/* Loads the accumulators of a tile from C. Sums that only fill the last panels are zero. */
static void begin(double *sums, struct tf_matrix c, size_t rows, size_t columns)
{
    const size_t filled = tf_round_up(columns, tf_isa->fma->columns);
    for (size_t i = 0; i < tf_round_up(rows, tf_isa->fma->rows); i++, sums += TF_FMA_LDC) {
        const size_t loaded = i < rows ? columns : 0;
        if (loaded && c.strides[1] == sizeof *sums) {
            memcpy(sums, element(c, i, 0), loaded * sizeof *sums);
        } else {
            for (size_t j = 0; j < loaded; j++) {
                memcpy(sums + j, element(c, i, j), sizeof *sums);
            }
        }
        memset(sums + loaded, 0, (filled - loaded) * sizeof *sums);
    }
}

/* Stores the sums of a tile in C. They become canonical: +0 if zeros were added, and one
 * NaN. */
static void store(double *sums, struct tf_matrix c, size_t rows, size_t columns, int filled)
{
    for (size_t i = 0; i < rows; i++, sums += TF_FMA_LDC) {
        for (size_t j = 0; j < columns; j++) {
            const double sum = filled ? sums[j] + 0.0 : sums[j];
            sums[j] = isnan(sum) ? (double)NAN : sum;
        }
        if (c.strides[1] == sizeof *sums) {
            memcpy(element(c, i, 0), sums, columns * sizeof *sums);
            continue;
        }
        for (size_t j = 0; j < columns; j++) {
            memcpy(element(c, i, j), sums + j, sizeof *sums);
        }
    }
}

/* -- tiles ------------------------------------------------------------------------- */

/* Adds one k-step to the sums of MC rows or fewer, from packed rows and columns. */
static void multiply(const struct workspace *work, double *sums, size_t rows,
                     size_t columns, size_t depth, enum tf_chain_start start,
                     struct tf_worker *worker)
{
    const struct tf_fma_kernels *fma = tf_isa->fma;
    for (size_t j = 0; j < columns && !tf_worker_stops(worker); j += fma->columns) {
        for (size_t i = 0; i < rows; i += fma->rows) {
            fma->chains(work->a + i * depth, work->b + j * depth, depth, rows - i,
                        sums + i * TF_FMA_LDC + j, TF_FMA_LDC, start);
        }
    }
}

/* Sums over all k of a tile, whose operands begin with its first row and column. Without
 * `continues` the sums of k-steps start from zero. */
static void sum_over_k(struct workspace *work, struct tf_matrix a, struct tf_matrix b,
                       ptrdiff_t k, struct tf_tile_place place, int continues,
                       struct tf_worker *worker)
{
    enum tf_chain_start start = continues ? TF_CHAIN_CONTINUES : TF_CHAIN_IS_WRITTEN;
    for (ptrdiff_t k0 = 0; (!k0 || k0 < k) && !tf_worker_stops(worker); k0 += TF_FMA_KC) {
        const size_t depth = tf_min_size(TF_FMA_KC, k - k0);
        const char *lines = a.data + k0 * a.strides[1];
        tf_isa->fma->pack_columns(b.data + k0 * b.strides[0], b.strides[1], b.strides[0],
                                  place.columns, depth, work->b,
                                  b.kind == TF_FLOAT32);
        for (size_t i = 0; i < place.rows; i += TF_FMA_MC) {
            const size_t rows = tf_min_size(TF_FMA_MC, (ptrdiff_t)(place.rows - i));
            tf_isa->fma->pack_rows(lines + (ptrdiff_t)i * a.strides[0], a.strides[0],
                                   a.strides[1], rows, depth, work->a,
                                   a.kind == TF_FLOAT32);
            multiply(work, work->sums + i * TF_FMA_LDC, rows, place.columns, depth, start,
                     worker);
        }
        start = continues ? TF_CHAIN_CONTINUES : TF_CHAIN_IS_ADDED;
    }
}

/* Computes one tile of a struct product, as a tf_tile_fn. */
static unsigned multiply_tile(const void *context, struct tf_tile_place place,
                              struct tf_worker *worker)
{
    const struct product *product = context;
    struct workspace *work = worker->scratch;
    const ptrdiff_t number = place.number, i = place.i, j = place.j;
    struct tf_matrix a = product->a, b = product->b, c = product->c;
    a.data += number * a.step + i * a.strides[0];
    b.data += number * b.step + j * b.strides[1];
    if (product->store) {
        sum_over_k(work, a, b, product->k, place, 0, worker);
        if (!tf_worker_stops(worker)) {
            product->store(product->context, work->sums, TF_FMA_LDC, (size_t)i, (size_t)j,
                           place.rows, place.columns);
        }
        return 0;
    }
    c.data += number * c.step + i * c.strides[0] + j * c.strides[1];
    begin(work->sums, c, place.rows, place.columns);
    sum_over_k(work, a, b, product->k, place, 1, worker);
    store(work->sums, c, place.rows, place.columns, product->filled);
    return 0;
}

/* Computes `count` products of m x k and k x n matrices. */
static int compute(const struct product *product, ptrdiff_t m, ptrdiff_t n, ptrdiff_t count)
{
    const ptrdiff_t height = (ptrdiff_t)tf_isa->fma->rows;
    const ptrdiff_t width = (ptrdiff_t)tf_isa->fma->columns;
    const struct tf_tiles tiles =
        tf_cut_into_tiles(m, n, count, (double)m * (double)n * (double)product->k * (double)count,
                          (struct tf_tile_side){TF_FMA_TILE_M, 2 * height, height},
                          (struct tf_tile_side){TF_FMA_NC, 2 * width, width});
    unsigned flags = 0;
    return tf_compute_tiles(&tiles, multiply_tile, product, &flags);
}

int tf_fma_matmul(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, ptrdiff_t count, ptrdiff_t instruction_depth)
{
    if (m == 0 || n == 0 || k == 0 || count == 0) {
        return 0;
    }
    /* C can be computed transposed, since fma(a, b, c) is fma(b, a, c). */
    const int swapped = tf_should_transpose(c, m, n);
    const struct product product = {
        .a = swapped ? tf_transposed(b) : a,
        .b = swapped ? tf_transposed(a) : b,
        .c = swapped ? tf_transposed(c) : c,
        .k = k,
        .filled = k % instruction_depth != 0,
    };
    return compute(&product, swapped ? n : m, swapped ? m : n, count);
}

int tf_float64_matmul(struct tf_matrix a, struct tf_matrix b, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, tf_sums_fn *store, const void *context)
{
    const struct product product = {.a = a, .b = b, .k = k, .store = store, .context = context};
    return compute(&product, m, n, 1);
}

size_t tf_float64_depth(size_t k)
{
    const size_t steps = (size_t)tf_ceil_div((ptrdiff_t)k, TF_FMA_KC);
    return tf_isa->fma->beats_blas ? tf_min_size((ptrdiff_t)k, TF_FMA_KC) + steps : 0;
}
