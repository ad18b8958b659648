/* A matrix as lines of numbers, and what these become before they are multiplied. */
#ifndef TF32DTYPE_MATMUL_OPERAND_H
#define TF32DTYPE_MATMUL_OPERAND_H

#include <stddef.h>

#include "formats/number_kinds.h"

/* A matrix seen as lines, each with numbers along k: rows of A, columns of B. */
struct tf_operand {
    const char *data;
    ptrdiff_t stride;    /* from line to line */
    ptrdiff_t along;     /* from k to k */
    int kind;            /* of the numbers stored */
    int format;          /* what they are rounded to if it is another kind */
    int rounding;        /* how, if that is tf32 */
    int parts;           /* that each number is split into; 1 if it is not */
    int p;               /* significant bits of a part */
    const float *scales; /* of each line: numbers are divided by it; or NULL */
};

static inline struct tf_operand tf_operand_from(struct tf_operand x, ptrdiff_t line,
                                            ptrdiff_t k)
{
    x.data += line * x.stride + k * x.along;
    x.scales = x.scales ? x.scales + line : NULL;
    return x;
}

#endif
