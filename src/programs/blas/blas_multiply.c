/* Computes the sums of products whose operands are stored in full. */
#include "programs/blas/blas_multiply.h"

#include <math.h>
#include <string.h>

#include "runtime/fp_environment.h"

static int is_single(char type) { return type == 's' || type == 'c'; }

ptrdiff_t tf_blas_part_size(char type) { return is_single(type) ? 4 : 8; }

struct tf_matrix tf_blas_plain(const struct tf_blas_matrix *x, char type)
{
    return (struct tf_matrix){(char *)x->data,
                              {x->strides[0], x->strides[1]},
                              0,
                              is_single(type) ? TF_FLOAT32 : TF_FLOAT64};
}

/* Computes the sums by the pair's products, and raises their flags. */
static int multiply_otherwise(const struct tf_blas_pair *x, const struct tf_matrix *c)
{
    const struct tf_fp saved = tf_fp_begin();
    const int flags = x->products->multiply(x->products, x->type, &x->a, &x->b, c);
    tf_fp_end(saved, flags < 0 ? 0 : (unsigned)flags);
    return flags < 0 ? -1 : 0;
}

int tf_blas_multiply_full(const struct tf_precision *precision, struct tf_blas_pair x,
                    struct tf_matrix c)
{
    if (x.products) {
        return multiply_otherwise(&x, &c);
    }
    const struct tf_matrix a = tf_blas_plain(&x.a, x.type);
    const struct tf_matrix b = tf_blas_plain(&x.b, x.type);
    const ptrdiff_t m = x.a.rows, n = x.b.columns, k = x.a.columns;
    if (tf_blas_is_complex(x.type)) {
        const struct tf_conjugates conjugates = {x.a.conjugate, x.b.conjugate};
        return tf_matmul_complex(precision, conjugates, a, b, c, m, n, k, 1, x.greatest);
    }
    if (x.greatest) {
        const float greatest[2] = {x.greatest->of[0][0], x.greatest->of[1][0]};
        return tf_matmul_part(precision, greatest, a, b, c, m, n, k);
    }
    return tf_matmul(precision, a, b, c, m, n, k, 1);
}

struct tf_blas_pair tf_blas_transposed_pair(struct tf_blas_pair x, int conjugates)
{
    struct tf_blas_pair t = {x.type, tf_blas_transposed(x.b), tf_blas_transposed(x.a), NULL,
                             x.products};
    t.a.conjugate ^= conjugates;
    t.b.conjugate ^= conjugates;
    return t;
}

struct tf_blas_pair tf_blas_part_of(struct tf_blas_pair x, ptrdiff_t row, ptrdiff_t rows,
                                    ptrdiff_t column, ptrdiff_t columns)
{
    x.a.data += row * x.a.strides[0];
    x.a.rows = rows;
    x.b.data += column * x.b.strides[1];
    x.b.columns = columns;
    return x;
}

/* -- scales ------------------------------------------------------------------------- */

int tf_blas_numbers_of(char type) { return tf_blas_is_complex(type) ? 2 : 1; }

float tf_blas_number_at(const char *place, char type)
{
    return is_single(type) ? *(const float *)place : (float)*(const double *)place;
}

void tf_blas_find_greatest(const struct tf_blas_matrix *x, char type, float greatest[2])
{
    const struct tf_fp saved = tf_fp_begin();
    for (ptrdiff_t i = 0; i < x->rows; i++) {
        for (ptrdiff_t j = 0; j < x->columns; j++) {
            const char *item = x->data + i * x->strides[0] + j * x->strides[1];
            for (int part = 0; part < tf_blas_numbers_of(type); part++) {
                const float found = fabsf(tf_blas_number_at(item + part * tf_blas_part_size(type), type));
                if (isfinite(found) && found > greatest[part]) {
                    greatest[part] = found;
                }
            }
        }
    }
    tf_fp_end(saved, 0);
}
