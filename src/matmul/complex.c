/* Computes products of complex matrices as four real products. */
#include "matmul/complex.h"

#include <fenv.h>
#include <math.h>

#include "formats/casts.h"
#include "runtime/fp_environment.h"
#include "runtime/reserve.h"

/* Returns the matrix of the real or the imaginary components of a complex matrix. */
static struct tf_matrix real_or_imaginary(struct tf_matrix x, int imaginary)
{
    x.data += imaginary ? tf_kind_size(x.kind) : 0;
    return x;
}

/* Returns the number of distinct elements along an index: 1 if its stride is 0. */
static ptrdiff_t steps(ptrdiff_t stride, ptrdiff_t length) { return stride ? length : 1; }

/* Points `x` at a copy with the sign of all numbers changed, since tensor cores may round
 * up and down in different ways: then minus the sums are other numbers. Returns the copy,
 * which the caller frees, or NULL if memory is short. */
static char *negate(struct tf_matrix *x, ptrdiff_t rows, ptrdiff_t columns,
                    ptrdiff_t count)
{
    const ptrdiff_t size = (ptrdiff_t)tf_kind_size(x->kind);
    const size_t most = PTRDIFF_MAX / sizeof(double);
    rows = steps(x->strides[0], rows);
    columns = steps(x->strides[1], columns);
    count = steps(x->step, count);
    if ((size_t)rows > most / (size_t)columns ||
        (size_t)(rows * columns) > most / (size_t)count) {
        return NULL;
    }
    char *copy = tf_room((size_t)(rows * columns * count * size)), *out = copy;
    if (!copy) {
        return NULL;
    }
    for (ptrdiff_t l = 0; l < count; l++) {
        for (ptrdiff_t i = 0; i < rows; i++) {
            const char *number = x->data + l * x->step + i * x->strides[0];
            for (ptrdiff_t j = 0; j < columns; j++) {
                if (x->kind == TF_FLOAT32) {
                    *(float *)out = -*(const float *)number;
                } else {
                    *(double *)out = -*(const double *)number;
                }
                number += x->strides[1];
                out += size;
            }
        }
    }
    x->data = copy;
    x->step = x->step ? rows * columns * size : 0;
    x->strides[0] = x->strides[0] ? columns * size : 0;
    x->strides[1] = x->strides[1] ? size : 0;
    return copy;
}

/* Writes x + y, and adds its flags by the contract's rules for sums. A sum of float32
 * numbers in float64 is precise enough that rounding it again to float32 changes
 * nothing. */
static void join(double x, double y, int kind, char *out, unsigned *flags)
{
    double sum = kind == TF_FLOAT32 ? (float)(x + y) : x + y;
    if (isnan(sum)) {
        *flags |= isnan(x) || isnan(y) ? 0 : TF_INVALID;
        sum = NAN;
    } else {
        *flags |= isinf(sum) && isfinite(x) && isfinite(y) ? TF_OVER : 0;
    }
    if (kind == TF_FLOAT32) {
        *(float *)out = (float)sum;
    } else {
        *(double *)out = sum;
    }
}

/* Returns memory for four products, which the caller frees; NULL if memory is short. */
static float *make_parts(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count)
{
    const size_t most = PTRDIFF_MAX / (4 * sizeof(float));
    const size_t rows = (size_t)m, columns = (size_t)n;
    if (rows > most / columns || rows * columns > most / (size_t)count) {
        return NULL;
    }
    return tf_room(4 * rows * columns * (size_t)count * sizeof(float));
}

/* The real and the imaginary components of an operand. */
struct parts {
    struct tf_matrix of[2];
    char *negated; /* to be freed */
};

static int take_parts(struct tf_matrix x, int conjugate, ptrdiff_t rows,
                      ptrdiff_t columns, ptrdiff_t count, struct parts *parts)
{
    parts->of[0] = real_or_imaginary(x, 0);
    parts->of[1] = real_or_imaginary(x, 1);
    parts->negated = NULL;
    if (conjugate && rows && columns) {
        parts->negated = negate(&parts->of[1], rows, columns, count);
        return parts->negated ? 0 : -1;
    }
    return 0;
}

static void join_products(const float *part, ptrdiff_t size, struct tf_matrix c,
                          ptrdiff_t m, ptrdiff_t n, ptrdiff_t count, int silent)
{
    const struct tf_fp saved = tf_fp_begin();
    const ptrdiff_t imaginary = (ptrdiff_t)tf_kind_size(c.kind);
    unsigned flags = 0;
    for (ptrdiff_t l = 0; l < count; l++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            char *row = c.data + l * c.step + i * c.strides[0];
            for (ptrdiff_t j = 0; j < n; j++, part++) {
                char *out = row + j * c.strides[1];
                join(part[0], -part[size], c.kind, out, &flags);
                join(part[2 * size], part[3 * size], c.kind, out + imaginary, &flags);
            }
        }
    }
    tf_fp_end(saved, silent ? 0 : flags);
}

/* Computes the four products, in the order ar br, ai bi, ar bi, ai br. */
static int multiply_parts(const struct tf_precision *precision, const struct parts *a,
                          const struct parts *b, float *products, ptrdiff_t m,
                          ptrdiff_t n, ptrdiff_t k, ptrdiff_t count,
                          const struct tf_greatest *greatest)
{
    for (int part = 0; part < 4; part++) {
        const struct tf_matrix into = {(char *)(products + part * m * n * count),
                                       {n * (ptrdiff_t)sizeof(float), sizeof(float)},
                                       m * n * (ptrdiff_t)sizeof(float),
                                       TF_FLOAT32};
        const int left = part & 1, right = part == 1 || part == 2;
        const struct tf_matrix x = a->of[left], y = b->of[right];
        int failed;
        if (greatest) {
            const float both[2] = {greatest->of[0][left], greatest->of[1][right]};
            failed = tf_matmul_part(precision, both, x, y, into, m, n, k) < 0;
        } else {
            failed = tf_matmul(precision, x, y, into, m, n, k, count) < 0;
        }
        if (failed) {
            return -1;
        }
    }
    return 0;
}

int tf_matmul_complex(const struct tf_precision *precision,
                      struct tf_conjugates conjugates, struct tf_matrix a,
                      struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t count,
                      const struct tf_greatest *greatest)
{
    if (m == 0 || n == 0 || count == 0) {
        return 0;
    }
    struct parts x = {.negated = NULL}, y = {.negated = NULL};
    fexcept_t raised_before; /* restored after a failure */
    fegetexceptflag(&raised_before, FE_ALL_EXCEPT);
    float *products = make_parts(m, n, count);
    const int failed = !products ||
                       take_parts(a, conjugates.a, m, k, count, &x) < 0 ||
                       take_parts(b, conjugates.b, k, n, count, &y) < 0 ||
                       multiply_parts(precision, &x, &y, products, m, n, k, count,
                                      greatest) < 0;
    if (failed) {
        fesetexceptflag(&raised_before, FE_ALL_EXCEPT);
    } else {
        join_products(products, m * n * count, c, m, n, count, precision->silent);
    }
    tf_room_free(x.negated);
    tf_room_free(y.negated);
    tf_room_free(products);
    return failed ? -1 : 0;
}
