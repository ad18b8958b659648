/* Reads the arguments of each routine: makes its products, or finds that BLAS refuses
 * it. */
#include <string.h>

#include "programs/blas/blas_call_reader.h"

enum { REFUSED = -2 };

/* -- products ---------------------------------------------------------------------- */

static struct tf_blas_product product_of(const struct tf_blas_reader *reader)
{
    return (struct tf_blas_product){
        .type = reader->name->type,
        .routine = reader->name->routine,
        .alpha = {1, 0},
        .wider = reader->name->wider,
    };
}

static void multiply(struct tf_blas_product *product, struct tf_blas_matrix a,
                     struct tf_blas_matrix b)
{
    product->a = a;
    product->b = b;
    product->m = a.rows;
    product->n = b.columns;
    product->k = a.columns;
}

/* Sets the memory of the result. */
static void into(struct tf_blas_product *product, struct tf_blas_matrix c)
{
    product->c = (char *)c.data;
    product->c_strides[0] = c.strides[0];
    product->c_strides[1] = c.strides[1];
}

static int is_number(const double x[2], double real) { return x[0] == real && x[1] == 0; }

/* Returns whether C does not change, or has no elements. */
static int does_nothing(const struct tf_blas_product *p)
{
    const int is_vector_product =
        p->routine == TF_BLAS_GEMV || p->routine == TF_BLAS_SYMV ||
        p->routine == TF_BLAS_HEMV || p->routine == TF_BLAS_TRMV;
    return p->m == 0 || p->n == 0 || (p->k == 0 && is_vector_product) ||
           (!tf_blas_is_dot(p->routine) && (p->k == 0 || is_number(p->alpha, 0)) && is_number(p->beta, 1));
}

/* Reads the arguments of one product after the order of rows, and returns the product. Sets
 * reader->wrong if BLAS refuses them. */
typedef struct tf_blas_product take_fn(struct tf_blas_reader *reader);

/* Reads a matrix, and for gemm_batch_strided the distance to the next one in bytes. */
static struct tf_blas_stored read_stored(struct tf_blas_reader *reader, ptrdiff_t *step)
{
    const struct tf_blas_stored stored = tf_blas_read_stored(reader);
    if (step) {
        *step = tf_blas_read_integer(reader) * tf_blas_item_size(reader->name->type);
    }
    return stored;
}

/* Reads gemm and gemmt; or gemm_batch_strided, and writes the three `steps`. */
static struct tf_blas_product take_gemms(struct tf_blas_reader *reader, ptrdiff_t *steps)
{
    struct tf_blas_product p = product_of(reader);
    const int is_triangle = reader->name->routine == TF_BLAS_GEMMT;
    if (is_triangle) {
        p.triangle = tf_blas_read_option(reader, &tf_blas_uplo);
    }
    const char transa = tf_blas_read_option(reader, &tf_blas_trans);
    const char transb = tf_blas_read_option(reader, &tf_blas_trans);
    const ptrdiff_t m = is_triangle ? -1 : tf_blas_read_integer(reader);
    const ptrdiff_t n = tf_blas_read_integer(reader);
    const ptrdiff_t rows = is_triangle ? n : m;
    const ptrdiff_t k = tf_blas_read_integer(reader);
    tf_blas_read_scalar(reader, 0, p.alpha);
    const struct tf_blas_stored a = read_stored(reader, steps ? &steps[0] : NULL);
    const struct tf_blas_stored b = read_stored(reader, steps ? &steps[1] : NULL);
    tf_blas_read_scalar(reader, 0, p.beta);
    const struct tf_blas_stored c = read_stored(reader, steps ? &steps[2] : NULL);
    multiply(&p, tf_blas_operand_of(reader, a, transa, rows, k),
             tf_blas_operand_of(reader, b, transb, k, n));
    into(&p, tf_blas_matrix_of(reader, c, rows, n));
    return p;
}

static struct tf_blas_product take_gemm(struct tf_blas_reader *reader)
{
    return take_gemms(reader, NULL);
}

/* Reads symm and hemm. */
static struct tf_blas_product take_symm(struct tf_blas_reader *reader)
{
    struct tf_blas_product p = product_of(reader);
    const char side = tf_blas_read_option(reader, &tf_blas_side);
    const char uplo = tf_blas_read_option(reader, &tf_blas_uplo);
    const ptrdiff_t m = tf_blas_read_integer(reader);
    const ptrdiff_t n = tf_blas_read_integer(reader);
    tf_blas_read_scalar(reader, 0, p.alpha);
    const struct tf_blas_stored a = tf_blas_read_stored(reader);
    const struct tf_blas_stored b = tf_blas_read_stored(reader);
    tf_blas_read_scalar(reader, 0, p.beta);
    const struct tf_blas_stored c = tf_blas_read_stored(reader);
    const int shape = p.routine == TF_BLAS_HEMM ? TF_HERMITIAN : TF_SYMMETRIC;
    const struct tf_blas_matrix x =
        tf_blas_triangle_of(reader, a, side == 'L' ? m : n, shape, uplo);
    const struct tf_blas_matrix y = tf_blas_matrix_of(reader, b, m, n);
    multiply(&p, side == 'L' ? x : y, side == 'L' ? y : x);
    into(&p, tf_blas_matrix_of(reader, c, m, n));
    return p;
}

static struct tf_blas_product take_trmm(struct tf_blas_reader *reader)
{
    struct tf_blas_product p = product_of(reader);
    const char side = tf_blas_read_option(reader, &tf_blas_side);
    const char uplo = tf_blas_read_option(reader, &tf_blas_uplo);
    const char trans = tf_blas_read_option(reader, &tf_blas_trans);
    const char diag = tf_blas_read_option(reader, &tf_blas_diag);
    const ptrdiff_t m = tf_blas_read_integer(reader);
    const ptrdiff_t n = tf_blas_read_integer(reader);
    tf_blas_read_scalar(reader, 0, p.alpha);
    const struct tf_blas_stored a = tf_blas_read_stored(reader);
    const struct tf_blas_stored b = tf_blas_read_stored(reader);
    struct tf_blas_matrix x =
        tf_blas_triangle_of(reader, a, side == 'L' ? m : n, TF_TRIANGULAR, uplo);
    x.unit = diag == 'U';
    x = tf_blas_under(x, trans, reader);
    const struct tf_blas_matrix y = tf_blas_matrix_of(reader, b, m, n);
    multiply(&p, side == 'L' ? x : y, side == 'L' ? y : x);
    into(&p, y);
    return p;
}

/* Reads syrk and herk, which compute A op(A) or op(A) A, and syr2k and her2k, in which B
 * replaces the second A. */
static struct tf_blas_product take_syrk(struct tf_blas_reader *reader)
{
    struct tf_blas_product p = product_of(reader);
    p.hermitian = p.routine == TF_BLAS_HERK || p.routine == TF_BLAS_HER2K;
    p.twice = p.routine == TF_BLAS_SYR2K || p.routine == TF_BLAS_HER2K;
    p.triangle = tf_blas_read_option(reader, &tf_blas_uplo);
    const char trans = tf_blas_read_option(reader, &tf_blas_trans);
    const char *known = p.hermitian                  ? "NC"
                        : tf_blas_is_complex(p.type) ? "NT"
                                                     : "NTC";
    reader->wrong |= !trans || !strchr(known, trans);
    const ptrdiff_t n = tf_blas_read_integer(reader);
    const ptrdiff_t k = tf_blas_read_integer(reader);
    tf_blas_read_scalar(reader, p.routine == TF_BLAS_HERK, p.alpha);
    const struct tf_blas_stored a = tf_blas_read_stored(reader);
    const struct tf_blas_stored b = p.twice ? tf_blas_read_stored(reader) : a;
    tf_blas_read_scalar(reader, p.hermitian, p.beta);
    const struct tf_blas_stored c = tf_blas_read_stored(reader);
    const char other = p.hermitian ? 'C' : 'T';
    const int across = trans != 'N';
    multiply(&p, tf_blas_operand_of(reader, a, across ? other : 'N', n, k),
             tf_blas_operand_of(reader, b, across ? 'N' : other, k, n));
    into(&p, tf_blas_matrix_of(reader, c, n, n));
    return p;
}

/* Reads gemv, symv and hemv: alpha op(A) x + beta y. */
static struct tf_blas_product take_gemv(struct tf_blas_reader *reader)
{
    struct tf_blas_product p = product_of(reader);
    const int is_full = p.routine == TF_BLAS_GEMV;
    const char option =
        tf_blas_read_option(reader, is_full ? &tf_blas_trans : &tf_blas_uplo);
    const ptrdiff_t m = tf_blas_read_integer(reader);
    const ptrdiff_t n = is_full ? tf_blas_read_integer(reader) : m;
    tf_blas_read_scalar(reader, 0, p.alpha);
    const struct tf_blas_stored a = tf_blas_read_stored(reader);
    const struct tf_blas_stored x = tf_blas_read_stored(reader);
    tf_blas_read_scalar(reader, 0, p.beta);
    const struct tf_blas_stored y = tf_blas_read_stored(reader);
    reader->wrong |= x.ld == 0 || y.ld == 0;
    const int shape = p.routine == TF_BLAS_HEMV ? TF_HERMITIAN : TF_SYMMETRIC;
    const struct tf_blas_matrix matrix =
        is_full ? tf_blas_under(tf_blas_matrix_of(reader, a, m, n), option, reader)
                : tf_blas_triangle_of(reader, a, n, shape, option);
    multiply(&p, matrix, tf_blas_vector_of(reader, x, matrix.columns));
    into(&p, tf_blas_vector_of(reader, y, matrix.rows));
    return p;
}

static struct tf_blas_product take_trmv(struct tf_blas_reader *reader)
{
    struct tf_blas_product p = product_of(reader);
    const char uplo = tf_blas_read_option(reader, &tf_blas_uplo);
    const char trans = tf_blas_read_option(reader, &tf_blas_trans);
    const char diag = tf_blas_read_option(reader, &tf_blas_diag);
    const ptrdiff_t n = tf_blas_read_integer(reader);
    const struct tf_blas_stored a = tf_blas_read_stored(reader);
    const struct tf_blas_stored x = tf_blas_read_stored(reader);
    reader->wrong |= x.ld == 0;
    struct tf_blas_matrix matrix = tf_blas_triangle_of(reader, a, n, TF_TRIANGULAR, uplo);
    matrix.unit = diag == 'U';
    const struct tf_blas_matrix vector = tf_blas_vector_of(reader, x, n);
    multiply(&p, tf_blas_under(matrix, trans, reader), vector);
    into(&p, vector);
    return p;
}

/* Reads the dots. With n <= 0 the result is 0, a product with k = 0. */
static struct tf_blas_product take_dot(struct tf_blas_reader *reader)
{
    struct tf_blas_product p = product_of(reader);
    ptrdiff_t n = tf_blas_read_integer(reader);
    n = n > 0 ? n : 0;
    if (p.wider == 2) {
        tf_blas_read_scalar(reader, 1, p.beta);
    }
    const struct tf_blas_stored x = tf_blas_read_stored(reader);
    const struct tf_blas_stored y = tf_blas_read_stored(reader);
    struct tf_blas_matrix row = tf_blas_transposed(tf_blas_vector_of(reader, x, n));
    row.conjugate = p.routine == TF_BLAS_DOTC;
    multiply(&p, row, tf_blas_vector_of(reader, y, n));
    p.c = reader->name->sub ? tf_blas_read_pointer(reader) : reader->arguments->returned;
    return p;
}

static take_fn *const takers[TF_BLAS_ROUTINES] = {
    [TF_BLAS_GEMM] = take_gemm,   [TF_BLAS_GEMMT] = take_gemm,
    [TF_BLAS_SYMM] = take_symm,   [TF_BLAS_HEMM] = take_symm,
    [TF_BLAS_SYRK] = take_syrk,   [TF_BLAS_HERK] = take_syrk,
    [TF_BLAS_SYR2K] = take_syrk,  [TF_BLAS_HER2K] = take_syrk,
    [TF_BLAS_TRMM] = take_trmm,   [TF_BLAS_GEMV] = take_gemv,
    [TF_BLAS_SYMV] = take_gemv,   [TF_BLAS_HEMV] = take_gemv,
    [TF_BLAS_TRMV] = take_trmv,   [TF_BLAS_DOT] = take_dot,
    [TF_BLAS_DOTC] = take_dot,
};

/* -- batches ----------------------------------------------------------------------- */

/* Reads gemm_batch_strided: one product, and the distances of matrices to the next ones. */
static int take_strided(struct tf_blas_reader *reader, tf_blas_each_fn *each,
                        void *context)
{
    ptrdiff_t steps[3];
    struct tf_blas_product p = take_gemms(reader, steps);
    const ptrdiff_t count = tf_blas_read_integer(reader);
    reader->wrong |= count < 0;
    if (reader->wrong) {
        return REFUSED;
    }
    int result = 0;
    for (ptrdiff_t i = 0; i < count && !result && !does_nothing(&p); i++) {
        result = each(context, &p);
        p.a.data += steps[0];
        p.b.data += steps[1];
        p.c += steps[2];
    }
    return result;
}

/* The arguments of gemm_batch: groups of products that differ only in their matrices. */
struct groups {
    const void *transa, *transb, *m, *n, *k, *alpha;
    const void *a, *lda, *b, *ldb, *beta, *c, *ldc;
    ptrdiff_t count;
    const void *sizes;
};

static struct tf_blas_product product_of_group(struct tf_blas_reader *reader,
                                               const struct groups *groups,
                                               ptrdiff_t group, ptrdiff_t number)
{
    struct tf_blas_product p = product_of(reader);
    const char transa = tf_blas_option_of(reader, &tf_blas_trans,
                                          ((const int32_t *)groups->transa)[group]);
    const char transb = tf_blas_option_of(reader, &tf_blas_trans,
                                          ((const int32_t *)groups->transb)[group]);
    const ptrdiff_t m = tf_blas_integer_at(reader, groups->m, group);
    const ptrdiff_t n = tf_blas_integer_at(reader, groups->n, group);
    const ptrdiff_t k = tf_blas_integer_at(reader, groups->k, group);
    tf_blas_scalar_at(p.type, groups->alpha, group, p.alpha);
    tf_blas_scalar_at(p.type, groups->beta, group, p.beta);
    const struct tf_blas_stored a = {((char *const *)groups->a)[number],
                                     tf_blas_integer_at(reader, groups->lda, group)};
    const struct tf_blas_stored b = {((char *const *)groups->b)[number],
                                     tf_blas_integer_at(reader, groups->ldb, group)};
    const struct tf_blas_stored c = {((char *const *)groups->c)[number],
                                     tf_blas_integer_at(reader, groups->ldc, group)};
    multiply(&p, tf_blas_operand_of(reader, a, transa, m, k),
             tf_blas_operand_of(reader, b, transb, k, n));
    into(&p, tf_blas_matrix_of(reader, c, m, n));
    return p;
}

static int take_groups(struct tf_blas_reader *reader, tf_blas_each_fn *each,
                       void *context)
{
    struct groups groups;
    const void **arrays[] = {&groups.transa, &groups.transb, &groups.m,    &groups.n,
                             &groups.k,      &groups.alpha,  &groups.a,    &groups.lda,
                             &groups.b,      &groups.ldb,    &groups.beta, &groups.c,
                             &groups.ldc};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = tf_blas_read_pointer(reader);
    }
    groups.count = tf_blas_read_integer(reader);
    groups.sizes = tf_blas_read_pointer(reader);
    reader->wrong |= groups.count < 0;
    int result = 0;
    /* Check all products before the first is computed. */
    for (int computes = 0; computes < 2 && !reader->wrong; computes++) {
        ptrdiff_t number = 0;
        for (ptrdiff_t group = 0; group < groups.count && !result; group++) {
            const ptrdiff_t size = tf_blas_integer_at(reader, groups.sizes, group);
            reader->wrong |= size < 0;
            for (ptrdiff_t i = 0; i < size && !result; i++, number++) {
                const struct tf_blas_product p =
                    product_of_group(reader, &groups, group, number);
                result = computes && !does_nothing(&p) ? each(context, &p) : 0;
            }
        }
    }
    return reader->wrong ? REFUSED : result;
}

int tf_blas_take_apart(const struct tf_blas_name *name,
                       const struct tf_blas_arguments *arguments, tf_blas_each_fn *each,
                       void *context)
{
    struct tf_blas_reader reader = {.name = name, .arguments = arguments};
    if (name->routine != TF_BLAS_DOT && name->routine != TF_BLAS_DOTC) {
        tf_blas_read_order(&reader);
    }
    if (name->routine == TF_BLAS_GEMM_BATCH) {
        return take_groups(&reader, each, context);
    }
    if (name->routine == TF_BLAS_GEMM_BATCH_STRIDED) {
        return take_strided(&reader, each, context);
    }
    const struct tf_blas_product product = takers[name->routine](&reader);
    if (reader.wrong) {
        return REFUSED;
    }
    return does_nothing(&product) ? 0 : each(context, &product);
}

double tf_blas_multiply_adds(const struct tf_blas_product *product)
{
    const double m = (double)product->m, n = (double)product->n, k = (double)product->k;
    if (is_number(product->alpha, 0)) {
        return 0;
    }
    double pairs = m * n * k;
    if (product->triangle) {
        pairs = n * (n + 1) / 2 * k;
    } else if (product->a.shape == TF_TRIANGULAR) {
        pairs = m * (m + 1) / 2 * n;
    } else if (product->b.shape == TF_TRIANGULAR) {
        pairs = n * (n + 1) / 2 * m;
    }
    return pairs * (product->twice ? 2 : 1) * (tf_blas_is_complex(product->type) ? 4 : 1);
}
