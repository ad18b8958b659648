/* Marks Inf and NaN in operands, and finds the flags that products raise. */
#include "matmul/specials.h"

#include <math.h>
#include <string.h>

#include "formats/casts.h"
#include "formats/codec.h"
#include "matmul/pack.h"

/* -- marks ------------------------------------------------------------------------- */

/* Returns the mark of n numbers, by the first and the last in the total order, where NaN
 * comes before -Inf and after Inf. */
static uint8_t mark_of(const float *numbers, size_t n)
{
    const int32_t last = tf_total_order(TF_INF_BITS);
    const int32_t first = tf_total_order(TF_NEGATIVE_INF_BITS);
    int32_t least, greatest;
    tf_isa->formats->bounds(numbers, n, INT32_MAX, &least, &greatest);
    return greatest > last || least < first     ? TF_HAS_NAN
           : greatest == last || least == first ? TF_HAS_INFINITY
                                                : 0;
}

uint8_t tf_mark_of_line(struct tf_operand x, ptrdiff_t k, struct tf_watch *watch,
                        int asks)
{
    enum { FIRST = 64, PIECES = 64 }; /* numbers of the first piece; pieces per check */
    float buffer[TF_CHUNK];
    uint8_t mark = 0;
    unsigned visited = 0;
    for (ptrdiff_t i = 0, n; i < k; i += n) {
        n = i ? TF_CHUNK : FIRST;
        n = n < k - i ? n : k - i;
        mark |= mark_of(
            tf_load_floats(x.kind, x.data + i * x.along, x.along, (size_t)n, buffer),
            (size_t)n);
        if (mark & TF_HAS_NAN ||
            (++visited % PIECES == 0 && tf_is_stopped(watch, asks))) {
            break;
        }
    }
    return mark;
}

void tf_flag_specials(const float *numbers, size_t n, size_t line, size_t step, void *context)
{
    uint8_t *marks = (uint8_t *)context + line;
    const uint8_t found = mark_of(numbers, n);
    if (!step) {
        *marks |= found;
        return;
    }
    if (!found) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(numbers[i]) & TF_MAGNITUDE_BITS;
        const int nan = magnitude > TF_INF_BITS;
        const int infinite = magnitude == TF_INF_BITS;
        marks[i] |= (uint8_t)(nan * TF_HAS_NAN | infinite * TF_HAS_INFINITY);
    }
}

void tf_flag_specials_rows(struct tf_operand x, size_t count, ptrdiff_t k, uint8_t *marks,
                   struct tf_watch *watch, int asks)
{
    memset(marks, 0, count);
    tf_visit_lines(x, count, k, tf_flag_specials, marks, watch, asks);
}

/* -- flags ------------------------------------------------------------------------- */

static unsigned flags_of_row(uint8_t in_row, const uint8_t *in_column,
                             const float *sums, size_t columns, unsigned overflow)
{
    uint32_t invalid = 0, over = 0;
    for (size_t j = 0; j < columns; j++) {
        const uint32_t magnitude = tf_bits_of(sums[j]) & TF_MAGNITUDE_BITS;
        const uint32_t found = in_row | in_column[j];
        invalid |= (magnitude > TF_INF_BITS) & !(found & TF_HAS_NAN);
        over |= (magnitude == TF_INF_BITS) & !found;
    }
    return (invalid ? TF_INVALID : 0) | (over ? overflow : 0);
}

/* Returns whether a row's sums may raise a flag. They do not if all are finite, or if the
 * row of A has a NaN, which explains all sums that are not finite. */
static int may_raise(uint8_t in_row, const float *sums, size_t columns)
{
    return !(in_row & TF_HAS_NAN) && mark_of(sums, columns) != 0;
}

unsigned tf_matmul_fp_flags(const uint8_t *in_row, const uint8_t *in_column,
                           size_t rows, size_t columns, const float *sums, size_t ld,
                           unsigned overflow)
{
    unsigned flags = 0;
    for (size_t i = 0; i < rows; i++, sums += ld) {
        if (may_raise(in_row[i], sums, columns)) {
            flags |= flags_of_row(in_row[i], in_column, sums, columns, overflow);
        }
    }
    return flags;
}

enum { UNKNOWN = 4 }; /* the mark of a column that has not been read */

/* Marks the columns in which a row has sums that are not finite, until all wanted flags are
 * raised. Returns the flags of these sums. */
static unsigned mark_columns(const struct tf_doubtful_sums *product, size_t row)
{
    const float *sums = product->sums + row * product->ld;
    unsigned flags = 0;
    for (size_t j = 0; j < product->columns && product->wanted & ~flags; j++) {
        uint8_t *mark = product->in_column + j;
        if (*mark == UNKNOWN && !isfinite(sums[j])) {
            *mark = tf_mark_of_line(tf_operand_from(product->b, (ptrdiff_t)j, 0),
                                    product->k, product->watch, product->asks);
            flags |= flags_of_row(product->in_row[row], mark, sums + j, 1,
                                  product->overflow);
        }
    }
    return flags;
}

/* Lines along k are read only when a sum needs them. Often a few are enough: the first NaN
 * determines the mark of a line, and the first sum that raises a flag determines the
 * flag. */
unsigned tf_flags_of_specials(const struct tf_doubtful_sums *product)
{
    const int by_row = product->rows == 1 || tf_runs_along(product->a);
    const int by_column = product->columns == 1 || tf_runs_along(product->b);
    uint8_t *in_row = product->in_row, *in_column = product->in_column;
    unsigned flags = 0;
    int marked = 0;
    memset(in_row, 0, product->rows);
    memset(in_column, UNKNOWN, product->columns);
    if (!by_row) {
        tf_flag_specials_rows(product->a, product->rows, product->k, in_row, product->watch,
                      product->asks);
    }
    for (size_t i = 0; i < product->rows && product->wanted & ~flags; i++) {
        const float *sums = product->sums + i * product->ld;
        if (!may_raise(in_row[i], sums, product->columns)) {
            continue;
        }
        if (by_row) {
            in_row[i] = tf_mark_of_line(tf_operand_from(product->a, (ptrdiff_t)i, 0),
                                        product->k, product->watch, product->asks);
        }
        if (in_row[i] & TF_HAS_NAN) {
            continue;
        }
        if (by_column) {
            flags |= mark_columns(product, i);
        } else if (!marked) {
            tf_flag_specials_rows(product->b, product->columns, product->k, in_column,
                          product->watch, product->asks);
            marked = 1;
        }
        flags |= flags_of_row(in_row[i], in_column, sums, product->columns,
                              product->overflow);
    }
    return flags;
}

int tf_products_may_raise(struct tf_operand x)
{
    const struct tf_format *f =
        x.kind < TF_FORMAT_COUNT ? tf_format_rows[x.kind] : NULL;
    return !f || f->specials == TF_IEEE || f->exponent_bits >= 8;
}
