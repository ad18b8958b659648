/* Computes a product of a call: straight into C where that holds the sums as they are,
 * else by way of scratch. */
#include <fenv.h>
#include <stdlib.h>

#include "blas/blas_multiply.h"
#include "blas/blas_update.h"
#include "formats/float_bits.h"
#include "runtime/sizes.h"
#include "runtime/stops.h"

/* -- memory ------------------------------------------------------------------------ */

struct range {
    uintptr_t first, end;
};

static struct range range_of(const char *data, const ptrdiff_t strides[2], ptrdiff_t rows,
                             ptrdiff_t columns, ptrdiff_t size)
{
    const ptrdiff_t lengths[2] = {rows, columns};
    struct range range = {(uintptr_t)data, (uintptr_t)data + (uintptr_t)size};
    for (int axis = 0; axis < 2; axis++) {
        const uintptr_t reach = (uintptr_t)(lengths[axis] - 1) * (uintptr_t)strides[axis];
        *(strides[axis] < 0 ? &range.first : &range.end) += reach;
    }
    return range;
}

/* Whether C lies where an operand is read. */
static int overlaps(const struct tf_blas_product *p, const struct tf_blas_matrix *x)
{
    const ptrdiff_t size = tf_blas_item_size(p->type);
    const ptrdiff_t c_size = p->wider == 1 ? (ptrdiff_t)sizeof(double) : size;
    const struct range c = range_of(p->c, p->c_strides, p->m, p->n, c_size);
    const struct range r = range_of(x->data, x->strides, x->rows, x->columns, size);
    return c.first < r.end && r.first < c.end;
}

/* Puts a copy in the place of an operand that is not stored in full. */
static int complete(struct tf_blas_matrix *x, char type, char **copy)
{
    if (x->shape == TF_FULL) {
        return 0;
    }
    *copy = tf_blas_copy_in_full(x, type);
    if (!*copy) {
        return -1;
    }
    const ptrdiff_t size = tf_blas_item_size(type);
    x->data = *copy;
    x->strides[0] = x->columns * size;
    x->strides[1] = size;
    return 0;
}

/* -- ways -------------------------------------------------------------------------- */

static int is_real(const double x[2], double real) { return x[0] == real && x[1] == 0; }

static struct tf_matrix c_of(const struct tf_blas_product *p)
{
    const int single = (p->type == 's' && p->wider != 1) || p->type == 'c';
    return (struct tf_matrix){p->c,
                              {p->c_strides[0], p->c_strides[1]},
                              0,
                              single ? TF_FLOAT32 : TF_FLOAT64};
}

/* Of float32 numbers. */
static int c_is_finite(const struct tf_blas_product *p)
{
    const int across = tf_blas_by_columns(p);
    const ptrdiff_t lines = across ? p->n : p->m, length = across ? p->m : p->n;
    uint32_t greatest = 0;
    for (ptrdiff_t i = 0; i < lines; i++) {
        const char *line = p->c + i * p->c_strides[across];
        for (ptrdiff_t j = 0; j < length; j++) {
            const float x = *(const float *)(line + j * p->c_strides[!across]);
            const uint32_t magnitude = tf_bits_of(x) & TF_MAGNITUDE_BITS;
            greatest = magnitude > greatest ? magnitude : greatest;
        }
    }
    return greatest < TF_INF_BITS;
}

/* Whether C holds nothing but the sums, or what tf_gemm_strided makes of them: that would
 * take Inf and NaN of C for its own, and raise flags. */
static int goes_straight(const struct tf_blas_product *p, const struct tf_blas_pair *x)
{
    if (p->triangle || x->a.shape == TF_TRIANGULAR || x->b.shape == TF_TRIANGULAR ||
        overlaps(p, &x->a) || overlaps(p, &x->b)) {
        return 0;
    }
    if (is_real(p->beta, 0)) {
        return is_real(p->alpha, 1) || (p->type == 's' && !p->wider);
    }
    return p->type == 's' && !p->wider && c_is_finite(p);
}

static int compute_straight(const struct tf_precision *precision,
                            const struct tf_blas_product *p, struct tf_blas_pair x)
{
    if (is_real(p->alpha, 1) && is_real(p->beta, 0)) {
        return tf_blas_multiply(precision, x, c_of(p));
    }
    return tf_gemm_strided(precision, tf_blas_plain(&x.a, 's'), tf_blas_plain(&x.b, 's'),
                           c_of(p), p->m, p->n, p->k, 1, (float)p->alpha[0],
                           (float)p->beta[0]);
}

/* The sums of a triangle of C, by blocks of rows, each up to the diagonal, or from it on:
 * about half of them. A scale that matrices have is not that of parts of them. */
static int sum_triangle(const struct tf_precision *precision, struct tf_blas_pair x,
                        char triangle, struct tf_matrix sums)
{
    enum { LEAST = 256, BLOCKS = 8 };
    const ptrdiff_t n = x.a.rows;
    ptrdiff_t block = tf_ceil_div(n, BLOCKS);
    block = block < LEAST ? LEAST : block;
    if (precision->scaling == TF_SCALED_MATRIX) {
        block = n;
    }
    for (ptrdiff_t i = 0; i < n; i += block) {
        const ptrdiff_t rows = (ptrdiff_t)tf_min_size(block, n - i);
        const ptrdiff_t first = triangle == 'U' ? i : 0;
        const ptrdiff_t columns = triangle == 'U' ? n - i : i + rows;
        struct tf_matrix c = sums;
        c.data += i * c.strides[0] + first * c.strides[1];
        const struct tf_blas_pair part = tf_blas_part_of(x, i, rows, first, columns);
        if (tf_blas_multiply(precision, part, c) < 0) {
            return -1;
        }
    }
    return 0;
}

static char *make_sums(const struct tf_precision *precision,
                       const struct tf_blas_product *p, struct tf_blas_pair x)
{
    const size_t size = tf_blas_sum_size(p->type);
    char *sums = tf_blas_room(p->m, p->n, size);
    if (!sums) {
        return NULL;
    }
    const ptrdiff_t item = (ptrdiff_t)size;
    struct tf_matrix c = {sums, {p->n * item, item}, 0,
                          p->type == 'z' ? TF_FLOAT64 : TF_FLOAT32};
    if (tf_blas_by_columns(p)) {
        c.strides[0] = item;
        c.strides[1] = p->m * item;
    }
    const int failed = p->triangle
                           ? sum_triangle(precision, x, (char)p->triangle, c) < 0
                           : tf_blas_multiply(precision, x, c) < 0;
    if (failed) {
        free(sums);
        return NULL;
    }
    return sums;
}

/* The result of a dot in another type than its operands'. */
static void store_wider(const struct tf_blas_product *p, const char *sums)
{
    const double sum = *(const float *)sums;
    if (p->wider == 1) {
        *(double *)p->c = sum;
    } else {
        *(float *)p->c = (float)(p->beta[0] + sum);
    }
}

static int compute_by_scratch(const struct tf_precision *precision,
                              const struct tf_blas_product *p, struct tf_blas_pair x)
{
    char *sums = make_sums(precision, p, x);
    char *more = NULL;
    if (sums && p->twice) {
        more = make_sums(precision, p, tf_blas_transposed_pair(x, p->hermitian));
    }
    const int failed = !sums || (p->twice && !more);
    if (!failed && p->wider) {
        store_wider(p, sums);
    } else if (!failed) {
        tf_blas_update(p, sums, more, precision->silent);
    }
    free(sums);
    free(more);
    return failed ? -1 : 0;
}

int tf_blas_compute(const struct tf_precision *precision,
                    const struct tf_blas_product *product)
{
    const int sums_nothing = product->k == 0 || is_real(product->alpha, 0);
    if (sums_nothing && !product->wider) {
        tf_blas_update(product, NULL, NULL, precision->silent);
        return 0;
    }
    struct tf_blas_pair x = {product->type, product->a, product->b};
    char *copies[2] = {NULL, NULL};
    fexcept_t raised_before; /* what a failure goes back to */
    fegetexceptflag(&raised_before, FE_ALL_EXCEPT);
    const int never_stopped = tf_never_stop(1); /* there is nobody to be told */
    int failed = complete(&x.a, x.type, &copies[0]) < 0 ||
                 complete(&x.b, x.type, &copies[1]) < 0;
    if (!failed) {
        failed = goes_straight(product, &x)
                     ? compute_straight(precision, product, x) < 0
                     : compute_by_scratch(precision, product, x) < 0;
    }
    tf_never_stop(never_stopped);
    free(copies[0]);
    free(copies[1]);
    if (failed) {
        fesetexceptflag(&raised_before, FE_ALL_EXCEPT);
    }
    return failed ? -1 : 0;
}
