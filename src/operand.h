/* One operand of a loop: its items as float32, block after block. */
#ifndef TF32DTYPE_OPERAND_H
#define TF32DTYPE_OPERAND_H

#include "kinds.h"
#include "loops/isa.h"
#include "strided.h"

struct operand {
    const char *data;
    ptrdiff_t stride;
    int repeated; /* stride 0: unpacked once */
    _Alignas(64) float numbers[TF_BLOCK];
};

static inline void operand_begin(struct operand *operand, const char *data,
                                 ptrdiff_t stride, int repeats)
{
    operand->data = data;
    operand->stride = stride;
    operand->repeated = repeats && stride == 0 ? -1 : 0;
}

/* The next n numbers of a format, or of float32. */
static inline const float *operand_next(struct operand *operand, int kind, size_t n)
{
    if (operand->repeated <= 0) {
        TF_BUFFER(buffer);
        const int is_single = kind == TF_FLOAT32;
        const size_t itemsize =
            is_single ? sizeof(float) : tf_format_rows[kind]->itemsize;
        const void *items =
            tf_gather(operand->data, operand->stride, itemsize, n, buffer);
        if (is_single) {
            memcpy(operand->numbers, items, n * sizeof(float));
        } else {
            tf_isa->formats[kind].unpack(items, operand->numbers, n);
        }
        operand->data += (ptrdiff_t)n * operand->stride;
        operand->repeated = -operand->repeated;
    }
    return operand->numbers;
}

#endif
