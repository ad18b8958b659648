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
    int fresh;  /* whether accumulators are zero, whatever C holds */
};

/* -- accumulators ------------------------------------------------------------------ */

static char *element(struct tf_matrix c, size_t i, size_t j)
{
    return c.data + (ptrdiff_t)i * c.strides[0] + (ptrdiff_t)j * c.strides[1];
}

/* Loads the accumulators of a tile from C, or sets them to zero if they are `fresh`. Sums
 * that only fill the last panels are zero. */
static void begin(double *sums, struct tf_matrix c, size_t rows, size_t columns, int fresh)
{
    const size_t filled = tf_round_up(columns, tf_isa->fma->columns);
    for (size_t i = 0; i < tf_round_up(rows, tf_isa->fma->rows); i++, sums += TF_FMA_LDC) {
        const size_t loaded = i < rows && !fresh ? columns : 0;
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
                     size_t columns, size_t depth, struct tf_worker *worker)
{
    const struct tf_fma_kernels *fma = tf_isa->fma;
    for (size_t j = 0; j < columns && !tf_worker_stops(worker); j += fma->columns) {
        for (size_t i = 0; i < rows; i += fma->rows) {
            fma->chains(work->a + i * depth, work->b + j * depth, depth, rows - i,
                        sums + i * TF_FMA_LDC + j, TF_FMA_LDC);
        }
    }
}

/* Computes one tile of a struct product, as a tf_tile_fn. */
static unsigned multiply_tile(const void *context, struct tf_tile_place place,
                              struct tf_worker *worker)
{
    const struct product *product = context;
    struct workspace *work = worker->scratch;
    const ptrdiff_t number = place.number, i = place.i, j = place.j;
    const size_t rows = place.rows, columns = place.columns;
    struct tf_matrix a = product->a, b = product->b, c = product->c;
    a.data += number * a.step + i * a.strides[0];
    b.data += number * b.step + j * b.strides[1];
    c.data += number * c.step + i * c.strides[0] + j * c.strides[1];
    begin(work->sums, c, rows, columns, product->fresh);
    for (ptrdiff_t k = 0; k < product->k && !tf_worker_stops(worker); k += TF_FMA_KC) {
        const size_t depth = tf_min_size(TF_FMA_KC, product->k - k);
        const char *lines = a.data + k * a.strides[1];
        tf_isa->fma->pack_columns(b.data + k * b.strides[0], b.strides[1], b.strides[0],
                                  columns, depth, work->b);
        for (size_t top = 0; top < rows; top += TF_FMA_MC) {
            const size_t height = tf_min_size(TF_FMA_MC, (ptrdiff_t)(rows - top));
            tf_isa->fma->pack_rows(lines + (ptrdiff_t)top * a.strides[0], a.strides[0],
                                   a.strides[1], height, depth, work->a);
            multiply(work, work->sums + top * TF_FMA_LDC, height, columns, depth, worker);
        }
    }
    store(work->sums, c, rows, columns, product->filled);
    return 0;
}

/* Computes `count` products of m x k and k x n matrices. */
static int compute(struct product product, ptrdiff_t m, ptrdiff_t n, ptrdiff_t count)
{
    /* C can be computed transposed, since fma(a, b, c) is fma(b, a, c). */
    const int swapped = tf_should_transpose(product.c, m, n);
    if (swapped) {
        const struct tf_matrix a = product.a;
        product.a = tf_transposed(product.b);
        product.b = tf_transposed(a);
        product.c = tf_transposed(product.c);
    }
    const ptrdiff_t height = (ptrdiff_t)tf_isa->fma->rows;
    const ptrdiff_t width = (ptrdiff_t)tf_isa->fma->columns;
    const struct tf_tiles tiles = tf_cut_into_tiles(
        swapped ? n : m, swapped ? m : n, count,
        (double)m * (double)n * (double)product.k * (double)count,
        (struct tf_tile_side){TF_FMA_TILE_M, 2 * height, height},
        (struct tf_tile_side){TF_FMA_NC, 2 * width, width});
    unsigned flags = 0;
    return tf_compute_tiles(&tiles, multiply_tile, &product, &flags);
}

int tf_fma_matmul(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, ptrdiff_t count, ptrdiff_t instruction_depth)
{
    if (m == 0 || n == 0 || k == 0 || count == 0) {
        return 0;
    }
    const int filled = k % instruction_depth != 0;
    return compute((struct product){a, b, c, k, filled, 0}, m, n, count);
}

int tf_float64_matmul(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                      ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    if (!tf_isa->fma->beats_blas) {
        return 1;
    }
    return m && n ? compute((struct product){a, b, c, k, 0, 1}, m, n, 1) : 0;
}
