/* An operand: a matrix as lines of numbers, and their conversion before the product. */
#ifndef TF32DTYPE_MATMUL_OPERAND_H
#define TF32DTYPE_MATMUL_OPERAND_H

#include <stddef.h>

#include "formats/number_kinds.h"

/* A matrix as lines, each with numbers along k: rows of A, columns of B. */
struct tf_operand {
    const char *data;
    ptrdiff_t stride;    /* bytes from line to line */
    ptrdiff_t along;     /* bytes from k to k */
    int kind;            /* of the numbers in memory */
    int format;          /* numbers are rounded to it, if it is not their kind */
    int rounding;        /* the rounding, if the format is tf32 */
    int parts;           /* components of a number; 1 if it is not split */
    int p;               /* significant bits of a component */
    const float *scales; /* divisors of the numbers, one for each line; or NULL */
};

/* Returns the operand that begins with another line and another k. */
static inline struct tf_operand tf_operand_from(struct tf_operand x, ptrdiff_t line,
                                            ptrdiff_t k)
{
    x.data += line * x.stride + k * x.along;
    x.scales = x.scales ? x.scales + line : NULL;
    return x;
}

#endif
