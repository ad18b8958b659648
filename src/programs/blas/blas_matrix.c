/* Makes full rows of operands from runs of stored elements, mirrored elements and
 * constants. */
#include "programs/blas/blas_matrix.h"

#include <string.h>

#include "runtime/copies.h"
#include "runtime/reserve.h"

ptrdiff_t tf_blas_item_size(char type)
{
    return type == 's' ? 4 : type == 'z' ? 16 : 8;
}

struct tf_blas_matrix tf_blas_transposed(struct tf_blas_matrix x)
{
    struct tf_blas_matrix t = x;
    t.strides[0] = x.strides[1];
    t.strides[1] = x.strides[0];
    t.rows = x.columns;
    t.columns = x.rows;
    t.upper = !x.upper;
    return t;
}

void *tf_blas_room(ptrdiff_t rows, ptrdiff_t columns, size_t size)
{
    const size_t most = PTRDIFF_MAX / size;
    if (columns > 0 && (size_t)rows > most / (size_t)columns) {
        return NULL;
    }
    return tf_room((size_t)rows * (size_t)columns * size);
}

/* -- a row, run by run ------------------------------------------------------------- */

/* Consecutive elements of a row that have the same origin. */
struct run {
    const char *data; /* NULL: all elements are `constant` */
    ptrdiff_t stride, count;
    double constant;
    int mirrored; /* elements are read from the other side of the diagonal */
    int real;     /* diagonal of a Hermitian matrix: imaginary components count as 0 */
};

enum { RUNS = 3 };

/* Writes the runs of row i: before the diagonal, on it, after it. */
static void find_runs(const struct tf_blas_matrix *x, ptrdiff_t i, struct run runs[RUNS])
{
    const char *row = x->data + i * x->strides[0];
    memset(runs, 0, RUNS * sizeof *runs);
    if (x->shape == TF_FULL) {
        runs[0] = (struct run){.data = row, .stride = x->strides[1], .count = x->columns};
        return;
    }
    const ptrdiff_t starts[RUNS + 1] = {0, i, i + 1, x->columns};
    for (int part = 0; part < RUNS; part++) {
        const ptrdiff_t j = starts[part];
        struct run *run = &runs[part];
        run->data = row + j * x->strides[1];
        run->stride = x->strides[1];
        run->count = starts[part + 1] - j;
        const int on_diagonal = part == 1;
        const int is_read = on_diagonal || (part == 2) == x->upper;
        if (!is_read && x->shape != TF_TRIANGULAR) {
            run->data = x->data + j * x->strides[0] + i * x->strides[1];
            run->stride = x->strides[0];
            run->mirrored = 1;
        } else if (!is_read || (on_diagonal && x->unit)) {
            run->data = NULL;
            run->constant = on_diagonal;
        }
        run->real = on_diagonal && x->shape == TF_HERMITIAN;
    }
}

static int is_double(char type) { return type == 'd' || type == 'z'; }

static void set_number(char *place, int wide, double number)
{
    if (wide) {
        *(double *)place = number;
    } else {
        *(float *)place = (float)number;
    }
}

static double number_at(const char *place, int wide)
{
    return wide ? *(const double *)place : *(const float *)place;
}

/* Conjugates the copied elements of a run of a Hermitian matrix, or makes them real. */
static void conjugate_run(const struct run *run, int wide, char *out)
{
    const ptrdiff_t size = wide ? sizeof(double) : sizeof(float);
    for (ptrdiff_t j = 0; j < run->count; j++) {
        char *imaginary = out + (2 * j + 1) * size;
        set_number(imaginary, wide, run->real ? 0 : -number_at(imaginary, wide));
    }
}

static void copy_run(const struct run *run, const struct tf_blas_matrix *x, char type,
                     char *out)
{
    const ptrdiff_t size = tf_blas_item_size(type);
    if (run->data) {
        tf_copy((size_t)size, out, size, run->data, run->stride, (size_t)run->count);
        if (x->shape == TF_HERMITIAN && (run->mirrored || run->real)) {
            conjugate_run(run, is_double(type), out);
        }
        return;
    }
    memset(out, 0, (size_t)(run->count * size));
    for (ptrdiff_t j = 0; run->constant && j < run->count; j++) {
        set_number(out + j * size, is_double(type), run->constant);
    }
}

char *tf_blas_copy_rows(const struct tf_blas_matrix *x, char type, ptrdiff_t first,
                        ptrdiff_t count)
{
    const ptrdiff_t size = tf_blas_item_size(type);
    char *copy = tf_blas_room(count, x->columns, (size_t)size);
    if (!copy) {
        return NULL;
    }
    char *out = copy;
    for (ptrdiff_t i = first; i < first + count; i++) {
        struct run runs[RUNS];
        find_runs(x, i, runs);
        for (int part = 0; part < RUNS; part++) {
            copy_run(&runs[part], x, type, out);
            out += runs[part].count * size;
        }
    }
    return copy;
}

/* -- a line as float64 --------------------------------------------------------------- */

void tf_blas_line(const struct tf_blas_matrix *x, char type, int axis, ptrdiff_t index,
                  double *out, double *imaginary)
{
    const struct tf_blas_matrix lines = axis ? tf_blas_transposed(*x) : *x;
    const int wide = is_double(type);
    struct run runs[RUNS];
    find_runs(&lines, index, runs);
    for (int part = 0; part < RUNS; part++) {
        const struct run *run = &runs[part];
        for (ptrdiff_t j = 0; j < run->count; j++) {
            const char *item = run->data ? run->data + j * run->stride : NULL;
            *out++ = item ? number_at(item, wide) : run->constant;
            if (!tf_blas_is_complex(type)) {
                continue;
            }
            const int flips =
                (x->shape == TF_HERMITIAN && run->mirrored) != !!x->conjugate;
            const double other =
                item && !run->real
                    ? number_at(item + (wide ? sizeof(double) : sizeof(float)), wide)
                    : 0;
            *imaginary++ = flips ? -other : other;
        }
    }
}
