/* Sums of products, and what zeros of a triangular operand must not do to them. */
#include "blas/blas_multiply.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "blas/blas_triangle.h"

static int is_single(char type) { return type == 's' || type == 'c'; }

ptrdiff_t tf_blas_part_size(char type) { return is_single(type) ? 4 : 8; }

struct tf_matrix tf_blas_plain(const struct tf_blas_matrix *x, char type)
{
    return (struct tf_matrix){(char *)x->data,
                              {x->strides[0], x->strides[1]},
                              0,
                              is_single(type) ? TF_FLOAT32 : TF_FLOAT64};
}

int tf_blas_multiply_full(const struct tf_precision *precision, struct tf_blas_pair x,
                    struct tf_matrix c)
{
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
    struct tf_blas_pair t = {x.type, tf_blas_transposed(x.b), tf_blas_transposed(x.a), NULL};
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

/* As operands count: as float32. */
float tf_blas_number_at(const char *place, char type)
{
    return is_single(type) ? *(const float *)place : (float)*(const double *)place;
}

void tf_blas_find_greatest(const struct tf_blas_matrix *x, char type, float greatest[2])
{
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
}

int tf_blas_is_nan(const char *sum, int numbers, int kind)
{
    int found = 0;
    for (int part = 0; part < numbers; part++) {
        found |= kind == TF_FLOAT32 ? isnan(((const float *)sum)[part])
                                    : isnan(((const double *)sum)[part]);
    }
    return found;
}

static int holds_nan(struct tf_blas_pair x, struct tf_matrix c)
{
    for (ptrdiff_t i = 0; i < x.a.rows; i++) {
        for (ptrdiff_t j = 0; j < x.b.columns; j++) {
            const char *sum = c.data + i * c.strides[0] + j * c.strides[1];
            if (tf_blas_is_nan(sum, tf_blas_numbers_of(x.type), c.kind)) {
                return 1;
            }
        }
    }
    return 0;
}

int tf_blas_multiply(const struct tf_precision *precision, struct tf_blas_pair x,
                     struct tf_matrix c)
{
    fexcept_t before;
    fegetexceptflag(&before, FE_INVALID);
    const int was_invalid = fetestexcept(FE_INVALID);
    if (tf_blas_multiply_full(precision, x, c) < 0) {
        return -1;
    }
    if ((x.a.shape != TF_TRIANGULAR && x.b.shape != TF_TRIANGULAR) || !holds_nan(x, c)) {
        return 0;
    }
    const int status = tf_blas_mend_triangle(precision, x, c);
    feclearexcept(FE_INVALID); /* what zeros have raised does not count */
    if (was_invalid) {
        fesetexceptflag(&before, FE_INVALID);
    } else if (status > 0 && !precision->silent) {
        feraiseexcept(FE_INVALID);
    }
    return status < 0 ? -1 : 0;
}
