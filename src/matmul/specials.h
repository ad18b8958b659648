/* The flags of products whose sums are Inf or NaN: Inf from finite operands is an overflow,
 * and a NaN that no operand had is an invalid operation. */
#ifndef TF32DTYPE_MATMUL_SPECIALS_H
#define TF32DTYPE_MATMUL_SPECIALS_H

#include "formats/codec.h"
#include "matmul/operand.h"
#include "runtime/stops.h"

/* Marks of a line's numbers in memory. If a line has a NaN, Inf may be unmarked: it does
 * not matter. */
enum { TF_HAS_INFINITY = 1, TF_HAS_NAN = 2 };

/* Returns the mark of a line of k numbers, which it reads up to the first NaN. */
uint8_t tf_mark_of_line(struct tf_operand x, ptrdiff_t k, struct tf_watch *watch,
                        int asks);

/* Writes the marks of `count` lines. */
void tf_flag_specials_rows(struct tf_operand x, size_t count, ptrdiff_t k, uint8_t *marks,
                   struct tf_watch *watch, int asks);

/* As a tf_visit_fn: adds to the marks of lines, which the caller has set to zero. */
void tf_flag_specials(const float *numbers, size_t n, size_t line, size_t step, void *marks);

/* Returns the flag of an Inf that finite numbers made, in C of this kind. */
static inline unsigned tf_overflow_of_sums(int kind)
{
    return kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[kind]) : TF_OVER;
}

/* Returns the flags of sums whose operands have these marks; rows of sums are `ld`
 * apart. */
unsigned tf_matmul_fp_flags(const uint8_t *in_row, const uint8_t *in_column,
                           size_t rows, size_t columns, const float *sums, size_t ld,
                           unsigned overflow);

/* A product, and room for its lines' marks. */
struct tf_doubtful_sums {
    struct tf_operand a, b;
    size_t rows, columns;
    ptrdiff_t k;
    const float *sums;
    size_t ld;
    unsigned overflow; /* the flag of Inf from finite numbers */
    unsigned wanted;   /* flags of which it is not known yet whether they are raised */
    uint8_t *in_row, *in_column;
    struct tf_watch *watch;
    int asks;
};

/* Returns the wanted flags that are raised, and perhaps other flags that are raised. */
unsigned tf_flags_of_specials(const struct tf_doubtful_sums *product);

/* Returns whether products with numbers of this kind may raise overflow or invalid: only if
 * the kind has Inf, or exponents with which a sum can leave float32. If neither operand has
 * them, a NaN in C comes from a NaN in operands or an overflow: operands need not be
 * read. */
int tf_products_may_raise(struct tf_operand x);

#endif
