/* What products raise whose sums are not finite: Inf from finite operands is an
 * overflow; a NaN that no operand had is an invalid operation. */
#ifndef TF32DTYPE_MATMUL_SPECIALS_H
#define TF32DTYPE_MATMUL_SPECIALS_H

#include "formats/codec.h"
#include "matmul/operand.h"
#include "runtime/stops.h"

/* What a line holds, as it is stored. Beside NaN, Inf may go unmarked: it does not
 * count. */
enum { TF_HAS_INFINITY = 1, TF_HAS_NAN = 2 };

/* The mark of one line of k numbers, which are read up to the first NaN. */
uint8_t tf_mark_of_line(struct tf_operand x, ptrdiff_t k, struct tf_watch *watch,
                        int asks);

/* Those of `count` lines. */
void tf_flag_specials_rows(struct tf_operand x, size_t count, ptrdiff_t k, uint8_t *marks,
                   struct tf_watch *watch, int asks);

/* As a tf_visit_fn, with marks that are zero at first. */
void tf_flag_specials(const float *numbers, size_t n, size_t line, size_t step, void *marks);

/* Returns the flag of an Inf that finite numbers made, in C of this kind. */
static inline unsigned tf_overflow_of_sums(int kind)
{
    return kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[kind]) : TF_OVER;
}

/* What sums raise whose operands have these marks; rows of them are `ld` apart. */
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

/* Those of the wanted flags that are raised, and maybe others that are. */
unsigned tf_flags_of_specials(const struct tf_doubtful_sums *product);

/* Returns whether products of such numbers may raise overflow or invalid: NaN in C without
 * an overflow comes only of NaN or Inf in operands, so that where the format has neither,
 * and no sum is beyond float32, the operands need not be looked at. */
int tf_products_may_raise(struct tf_operand x);

#endif
