/* Sums of products, and what zeros of a triangular operand must not do to them. */
#include "blas/blas_multiply.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matmul/complex.h"

static int is_single(char type) { return type == 's' || type == 'c'; }

static ptrdiff_t part_size(char type) { return is_single(type) ? 4 : 8; }

struct tf_matrix tf_blas_plain(const struct tf_blas_matrix *x, char type)
{
    return (struct tf_matrix){(char *)x->data,
                              {x->strides[0], x->strides[1]},
                              0,
                              is_single(type) ? TF_FLOAT32 : TF_FLOAT64};
}

static int multiply(const struct tf_precision *precision, struct tf_blas_pair x,
                    struct tf_matrix c)
{
    const struct tf_matrix a = tf_blas_plain(&x.a, x.type);
    const struct tf_matrix b = tf_blas_plain(&x.b, x.type);
    const ptrdiff_t m = x.a.rows, n = x.b.columns, k = x.a.columns;
    if (tf_blas_is_complex(x.type)) {
        const struct tf_conjugates conjugates = {x.a.conjugate, x.b.conjugate};
        return tf_matmul_complex(precision, conjugates, a, b, c, m, n, k, 1);
    }
    return tf_matmul(precision, a, b, c, m, n, k, 1);
}

struct tf_blas_pair tf_blas_transposed_pair(struct tf_blas_pair x, int conjugates)
{
    struct tf_blas_pair t = {x.type, tf_blas_transposed(x.b), tf_blas_transposed(x.a)};
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

/* -- elements that a triangle's zeros have made NaN ---------------------------------- */

/* As operands count: as float32. */
static float number_at(const char *place, char type)
{
    return is_single(type) ? *(const float *)place : (float)*(const double *)place;
}

static int numbers_of(char type) { return tf_blas_is_complex(type) ? 2 : 1; }

/* Lines of either operand, whose product holds an element that is computed anew: the
 * first of each. If matrices have a scale the others bring it: of the real numbers, of
 * the imaginary ones, the line with the greatest. */
struct lines {
    struct tf_blas_pair of;
    ptrdiff_t count, k;
    char *a, *b;           /* line after line */
    _Alignas(16) char products[9 * 16]; /* of all of them; 3 x 3 at most */
};

/* Row i of A, or (axis 1) column i of B, along k. */
static void copy_line(const struct tf_blas_matrix *x, char type, int axis, ptrdiff_t i,
                      char *out)
{
    const ptrdiff_t size = tf_blas_item_size(type);
    const ptrdiff_t k = axis ? x->rows : x->columns;
    const char *item = x->data + i * x->strides[axis];
    for (ptrdiff_t p = 0; p < k; p++, item += x->strides[1 - axis], out += size) {
        memcpy(out, item, (size_t)size);
    }
}

/* The line that holds the greatest finite magnitude of a part. */
static ptrdiff_t greatest_line(const struct tf_blas_matrix *x, char type, int axis,
                               int part)
{
    const ptrdiff_t offset = part * part_size(type);
    float greatest = -1;
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < x->rows; i++) {
        for (ptrdiff_t j = 0; j < x->columns; j++) {
            const char *item = x->data + i * x->strides[0] + j * x->strides[1];
            const float magnitude = fabsf(number_at(item + offset, type));
            if (isfinite(magnitude) && magnitude > greatest) {
                greatest = magnitude;
                found = axis ? j : i;
            }
        }
    }
    return found;
}

static int begin_lines(struct lines *lines, struct tf_blas_pair x, int scaling)
{
    const ptrdiff_t size = tf_blas_item_size(x.type);
    lines->of = x;
    lines->count = scaling == TF_SCALED_MATRIX ? 1 + numbers_of(x.type) : 1;
    lines->k = x.a.columns;
    lines->a = tf_blas_room(2 * lines->count, lines->k, (size_t)size);
    if (!lines->a) {
        return -1;
    }
    const ptrdiff_t length = lines->k * size;
    lines->b = lines->a + lines->count * length;
    for (int part = 0; part + 1 < lines->count; part++) {
        const ptrdiff_t place = (part + 1) * length;
        copy_line(&x.a, x.type, 0, greatest_line(&x.a, x.type, 0, part),
                  lines->a + place);
        copy_line(&x.b, x.type, 1, greatest_line(&x.b, x.type, 1, part),
                  lines->b + place);
    }
    return 0;
}

/* Makes 0 of numbers of the other operand's line, which zeros of line i of a triangular
 * one meet. What is scaled stays finite, so that it need not, and keeps its scale. */
static void clear_beyond(const struct tf_blas_matrix *triangle, int axis, ptrdiff_t i,
                         int scaled, char type, char *line)
{
    const ptrdiff_t k = axis ? triangle->rows : triangle->columns;
    const int begins_with_zeros = triangle->upper != axis;
    const ptrdiff_t first = begins_with_zeros ? 0 : i + 1;
    const ptrdiff_t end = begins_with_zeros ? i : k;
    const ptrdiff_t size = part_size(type), numbers = numbers_of(type);
    for (ptrdiff_t p = first * numbers; p < end * numbers; p++) {
        if (!scaled || !isfinite(number_at(line + p * size, type))) {
            memset(line + p * size, 0, (size_t)size);
        }
    }
}

static int recompute(const struct tf_precision *precision, struct lines *lines,
                     ptrdiff_t i, ptrdiff_t j, char *out, int kind)
{
    const struct tf_blas_pair *x = &lines->of;
    const char type = x->type;
    const int scaled = precision->scaling != TF_UNSCALED;
    copy_line(&x->a, type, 0, i, lines->a);
    copy_line(&x->b, type, 1, j, lines->b);
    if (x->a.shape == TF_TRIANGULAR) {
        clear_beyond(&x->a, 0, i, scaled, type, lines->b);
    } else {
        clear_beyond(&x->b, 1, j, scaled, type, lines->a);
    }
    const ptrdiff_t size = tf_blas_item_size(type), length = lines->k * size;
    struct tf_blas_pair few = *x;
    few.a.data = lines->a;
    few.a.strides[0] = few.b.strides[1] = length;
    few.a.strides[1] = few.b.strides[0] = size;
    few.a.rows = few.b.columns = lines->count;
    few.b.data = lines->b;
    const ptrdiff_t item = numbers_of(type) * (kind == TF_FLOAT32 ? 4 : 8);
    const struct tf_matrix c = {lines->products, {lines->count * item, item}, 0, kind};
    if (multiply(precision, few, c) < 0) {
        return -1;
    }
    memcpy(out, lines->products, (size_t)item);
    return 0;
}

static int is_nan(const char *sum, int numbers, int kind)
{
    int found = 0;
    for (int part = 0; part < numbers; part++) {
        found |= kind == TF_FLOAT32 ? isnan(((const float *)sum)[part])
                                    : isnan(((const double *)sum)[part]);
    }
    return found;
}

int tf_blas_multiply(const struct tf_precision *precision, struct tf_blas_pair x,
                     struct tf_matrix c)
{
    if (x.a.shape != TF_TRIANGULAR && x.b.shape != TF_TRIANGULAR) {
        return multiply(precision, x, c);
    }
    const int numbers = numbers_of(x.type);
    const ptrdiff_t m = x.a.rows, n = x.b.columns;
    struct lines lines = {.a = NULL};
    fexcept_t before;
    fegetexceptflag(&before, FE_INVALID);
    const int was_invalid = fetestexcept(FE_INVALID);
    int failed = multiply(precision, x, c) < 0;
    for (ptrdiff_t i = 0; i < m && !failed; i++) {
        for (ptrdiff_t j = 0; j < n && !failed; j++) {
            char *sum = c.data + i * c.strides[0] + j * c.strides[1];
            if (!is_nan(sum, numbers, c.kind)) {
                continue;
            }
            if (!lines.a) { /* what zeros have raised does not count */
                feclearexcept(FE_INVALID);
                failed = begin_lines(&lines, x, precision->scaling) < 0;
            }
            failed = failed || recompute(precision, &lines, i, j, sum, c.kind) < 0;
        }
    }
    if (was_invalid) {
        fesetexceptflag(&before, FE_INVALID);
    }
    free(lines.a);
    return failed ? -1 : 0;
}
