/* Computes a product of a call: straight into C if C holds exactly the sums, otherwise in
 * temporary memory. */
#include <fenv.h>
#include <math.h>

#include "programs/blas/blas_triangle.h"
#include "programs/blas/blas_update.h"
#include "programs/blas/interrupts.h"
#include "formats/float_bits.h"
#include "runtime/reserve.h"
#include "runtime/sizes.h"

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

/* Returns whether the memory of C overlaps that of an operand. */
static int overlaps(const struct tf_blas_product *p, const struct tf_blas_matrix *x)
{
    const ptrdiff_t size = tf_blas_item_size(p->type);
    const ptrdiff_t c_size = p->wider == 1 ? (ptrdiff_t)sizeof(double) : size;
    const struct range c = range_of(p->c, p->c_strides, p->m, p->n, c_size);
    const struct range r = range_of(x->data, x->strides, x->rows, x->columns, size);
    return c.first < r.end && r.first < c.end;
}

/* Copies `count` lines of an operand from `first` on: rows of A (axis 0) or columns of B
 * (axis 1). Returns the copy, or NULL if memory is short. */
static char *copy_lines(struct tf_blas_matrix *x, char type, int axis, ptrdiff_t first,
                        ptrdiff_t count)
{
    const ptrdiff_t size = tf_blas_item_size(type);
    const struct tf_blas_matrix lines = axis ? tf_blas_transposed(*x) : *x;
    char *copy = tf_blas_copy_rows(&lines, type, first, count);
    if (copy) {
        /* The memory before the first line is never read. */
        x->data = copy - first * lines.columns * size;
        x->strides[axis] = lines.columns * size;
        x->strides[1 - axis] = size;
    }
    return copy;
}

/* Reduces an operand to these lines, and copies them if it is not stored in full. Returns
 * -1 if memory is short. */
static int take_lines(struct tf_blas_matrix *x, char type, int axis, ptrdiff_t first,
                      ptrdiff_t count, char **copy)
{
    if (x->shape != TF_FULL) {
        *copy = copy_lines(x, type, axis, first, count);
        if (!*copy) {
            return -1;
        }
        x->first += first;
    }
    x->data += first * x->strides[axis];
    *(axis ? &x->columns : &x->rows) = count;
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

/* Returns whether a C of float32 elements is finite. */
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

/* Returns whether the product can be written straight into C, by tf_blas_multiply or
 * tf_gemm_strided. tf_gemm_strided would raise flags for Inf and NaN of alpha, beta and C
 * as if they were its own results, so that these must be finite. */
static int goes_straight(const struct tf_blas_product *p, const struct tf_blas_pair *x)
{
    if (p->triangle || x->a.shape != TF_FULL || x->b.shape != TF_FULL ||
        overlaps(p, &x->a) || overlaps(p, &x->b) || !isfinite(p->alpha[0]) ||
        !isfinite(p->beta[0])) {
        return 0;
    }
    if (p->products) {
        return is_real(p->alpha, 1) && is_real(p->beta, 0) && p->wider != 2;
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

/* A block of C. `triangle` is that of C if the diagonals of the block and of C coincide. */
struct block {
    ptrdiff_t row, rows, column, columns;
    char triangle;
};

/* Computes the sums of a triangle by blocks of rows, each up to the diagonal or from it on:
 * about half of all sums. If matrices are scaled and their largest magnitudes are not
 * given, uses one block, because a block would have another scale. */
static int sum_triangle(const struct tf_precision *precision, struct tf_blas_pair x,
                        char triangle, struct tf_matrix sums)
{
    enum { LEAST = 256, BLOCKS = 8 };
    const ptrdiff_t n = x.a.rows;
    ptrdiff_t step = tf_ceil_div(n, BLOCKS);
    step = step < LEAST ? LEAST : step;
    if (precision->scaling == TF_SCALED_MATRIX && !x.greatest) {
        step = n;
    }
    for (ptrdiff_t i = 0; i < n; i += step) {
        const ptrdiff_t rows = (ptrdiff_t)tf_min_size(step, n - i);
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

/* Returns the sums of a block in the order of C's memory, for tf_room_free; or NULL. */
static char *make_sums(const struct tf_precision *precision,
                       const struct tf_blas_product *p, struct tf_blas_pair x,
                       const struct block *block, int by_columns)
{
    const ptrdiff_t item = (ptrdiff_t)tf_blas_sum_size(p);
    char *copies[2] = {NULL, NULL};
    char *sums = tf_blas_room(block->rows, block->columns, (size_t)item);
    int failed =
        !sums ||
        take_lines(&x.a, x.type, 0, block->row, block->rows, &copies[0]) < 0 ||
        take_lines(&x.b, x.type, 1, block->column, block->columns, &copies[1]) < 0;
    if (!failed) {
        struct tf_matrix c = {sums, {block->columns * item, item}, 0, tf_blas_sum_kind(p)};
        if (by_columns) {
            c.strides[0] = item;
            c.strides[1] = block->rows * item;
        }
        failed = block->triangle
                     ? sum_triangle(precision, x, block->triangle, c) < 0
                     : tf_blas_multiply(precision, x, c) < 0;
    }
    tf_room_free(copies[0]);
    tf_room_free(copies[1]);
    if (failed) {
        tf_room_free(sums);
    }
    return failed ? NULL : sums;
}

/* Stores the result of dsdot (wider 1) or sdsdot (wider 2). */
static void store_wider(const struct tf_blas_product *p, const char *sums)
{
    const double sum = tf_blas_sum_kind(p) == TF_FLOAT64 ? *(const double *)sums
                                                         : *(const float *)sums;
    if (p->wider == 1) {
        *(double *)p->c = sum;
    } else {
        *(float *)p->c = (float)(p->beta[0] + sum);
    }
}

/* Computes a block of C. Reads all operands before it writes C. Returns -1 on failure. */
static int compute_block(const struct tf_precision *precision,
                         const struct tf_blas_product *p, struct tf_blas_pair x,
                         const struct block *block)
{
    struct tf_blas_product part = *p;
    part.c += block->row * p->c_strides[0] + block->column * p->c_strides[1];
    part.m = block->rows;
    part.n = block->columns;
    part.triangle = block->triangle;
    const int by_columns = tf_blas_by_columns(&part);
    char *sums = make_sums(precision, p, x, block, by_columns);
    char *more = NULL;
    if (sums && p->twice) {
        struct tf_blas_pair y = tf_blas_transposed_pair(x, p->hermitian);
        struct tf_greatest greatest;
        if (x.greatest) {
            greatest = *x.greatest;
            memcpy(greatest.of[0], x.greatest->of[1], sizeof greatest.of[0]);
            memcpy(greatest.of[1], x.greatest->of[0], sizeof greatest.of[1]);
            y.greatest = &greatest;
        }
        more = make_sums(precision, p, y, block, by_columns);
    }
    const int failed = !sums || (p->twice && !more);
    if (!failed && p->wider) {
        store_wider(p, sums);
    } else if (!failed) {
        tf_blas_update(&part, sums, more, precision->silent);
    }
    tf_room_free(sums);
    tf_room_free(more);
    return failed ? -1 : 0;
}

/* -- with the reserve -------------------------------------------------------------- */

/* Computes a block, or by recursion its halves. The first half needs most memory. If memory
 * is short, the first half therefore fails, before any element is written. */
static int compute_in_blocks(const struct tf_precision *precision,
                             const struct tf_blas_product *p, struct tf_blas_pair x,
                             struct block block)
{
    if (compute_block(precision, p, x, &block) == 0) {
        return 0;
    }
    if ((block.rows == 1 && block.columns == 1) || tf_blas_is_stopped()) {
        return -1;
    }
    struct block first = block, second = block, corner = {.rows = 0};
    const int by_rows = block.triangle || block.rows >= block.columns;
    const int by_columns = block.triangle || !by_rows;
    if (by_rows) {
        first.rows = tf_ceil_div(block.rows, 2);
        second.row += first.rows;
        second.rows -= first.rows;
    }
    if (by_columns) {
        first.columns = tf_ceil_div(block.columns, 2);
        second.column += first.columns;
        second.columns -= first.columns;
    }
    if (block.triangle == 'L') {
        corner = (struct block){second.row, second.rows, first.column, first.columns, 0};
    } else if (block.triangle) {
        corner = (struct block){first.row, first.rows, second.column, second.columns, 0};
    }
    if (compute_in_blocks(precision, p, x, first) < 0 ||
        compute_in_blocks(precision, p, x, second) < 0) {
        return -1;
    }
    return corner.rows ? compute_in_blocks(precision, p, x, corner) : 0;
}

/* Computes the elements of C that `count` lines of operand 0 (A) or 1 (B) make, where C is
 * stored over this operand, as in trmm. Returns -1 on failure. */
static int compute_over(const struct tf_precision *precision,
                        const struct tf_blas_product *p, struct tf_blas_pair x, int axis,
                        ptrdiff_t first, ptrdiff_t count)
{
    struct tf_blas_pair y = x;
    struct block block = {0, p->m, 0, p->n, 0};
    *(axis ? &block.column : &block.row) = first;
    *(axis ? &block.columns : &block.rows) = count;
    char *copy = copy_lines(axis ? &y.b : &y.a, x.type, axis, first, count);
    const int failed = !copy || compute_in_blocks(precision, p, y, block) < 0;
    tf_room_free(copy);
    if (!failed) {
        return 0;
    }
    if (count == 1 || tf_blas_is_stopped()) {
        return -1;
    }
    const ptrdiff_t half = tf_ceil_div(count, 2);
    if (compute_over(precision, p, x, axis, first, half) < 0) {
        return -1;
    }
    return compute_over(precision, p, x, axis, first + half, count - half);
}

/* Returns whether C and a full operand have the same memory, element by element. */
static int is_in_place(const struct tf_blas_product *p, const struct tf_blas_matrix *x)
{
    return x->shape == TF_FULL && x->data == p->c && x->rows == p->m &&
           x->columns == p->n && (p->m == 1 || x->strides[0] == p->c_strides[0]) &&
           (p->n == 1 || x->strides[1] == p->c_strides[1]);
}

static int find_greatest(const struct tf_blas_matrix *x, char type, float greatest[2])
{
    if (x->shape == TF_FULL) {
        tf_blas_find_greatest(x, type, greatest);
        return 0;
    }
    const ptrdiff_t size = tf_blas_item_size(type);
    for (ptrdiff_t i = 0; i < x->rows; i++) {
        char *row = tf_blas_copy_rows(x, type, i, 1);
        if (!row) {
            return -1;
        }
        const struct tf_blas_matrix one = {
            .data = row, .strides = {0, size}, .rows = 1, .columns = x->columns};
        tf_blas_find_greatest(&one, type, greatest);
        tf_room_free(row);
    }
    return 0;
}

/* Computes a product in the memory of the reserve (runtime/reserve.h). */
static int compute_in_reserve(const struct tf_precision *precision,
                              const struct tf_blas_product *p, struct tf_blas_pair x)
{
    struct tf_greatest greatest = {{{0}}};
    const struct block all = {0, p->m, 0, p->n, (char)p->triangle};
    const int over_a = overlaps(p, &x.a), over_b = overlaps(p, &x.b);
    if (tf_reserve_enter() < 0) {
        return -1;
    }
    int failed = -1;
    if (precision->scaling == TF_SCALED_MATRIX) {
        x.greatest = &greatest;
    }
    if (x.greatest && (find_greatest(&x.a, x.type, greatest.of[0]) < 0 ||
                       find_greatest(&x.b, x.type, greatest.of[1]) < 0)) {
        failed = -1;
    } else if (!p->triangle && over_a != over_b && is_in_place(p, over_b ? &x.b : &x.a)) {
        failed = compute_over(precision, p, x, over_b, 0, over_b ? p->n : p->m);
    } else {
        char *copies[2] = {NULL, NULL};
        if ((!over_a || (copies[0] = copy_lines(&x.a, x.type, 0, 0, p->m))) &&
            (!over_b || (copies[1] = copy_lines(&x.b, x.type, 1, 0, p->n)))) {
            failed = compute_in_blocks(precision, p, x, all);
        }
        tf_room_free(copies[0]);
        tf_room_free(copies[1]);
    }
    tf_reserve_leave();
    return failed;
}

int tf_blas_compute(const struct tf_precision *precision,
                    const struct tf_blas_product *product)
{
    const struct tf_blas_product *p = product;
    const int sums_nothing = p->k == 0 || is_real(p->alpha, 0);
    if (sums_nothing && !p->wider) {
        tf_blas_update(p, NULL, NULL, precision->silent);
        return 0;
    }
    const struct tf_blas_pair x = {p->type, p->a, p->b, NULL, p->products};
    const struct block all = {0, p->m, 0, p->n, (char)p->triangle};
    fexcept_t raised_before; /* flags that a failure restores */
    fegetexceptflag(&raised_before, FE_ALL_EXCEPT);
    int failed = goes_straight(p, &x) ? compute_straight(precision, p, x)
                                      : compute_block(precision, p, x, &all);
    if (failed && !p->products && !tf_blas_is_stopped()) {
        failed = compute_in_reserve(precision, p, x);
    }
    if (failed) {
        fesetexceptflag(&raised_before, FE_ALL_EXCEPT);
    }
    return !failed ? 0 : tf_blas_is_stopped() ? TF_STOPPED : -1;
}
