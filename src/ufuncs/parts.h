/* nextafter, modf, frexp and ldexp on strided arrays. */
#ifndef TF32DTYPE_UFUNCS_PARTS_H
#define TF32DTYPE_UFUNCS_PARTS_H

#include <stddef.h>

/* Operations on codes, or with integers, on three strided arrays. */
enum tf_code_op {
    TF_NEXTAFTER, /* T, T -> T */
    TF_MODF,      /* T -> T, T */
    TF_FREXP,     /* T -> T, int32 */
    TF_LDEXP,     /* T, int64 -> T */
    TF_LDEXP_INT, /* T, int32 -> T */
    TF_CODE_OP_COUNT
};

void tf_apply_code_op(int format, enum tf_code_op op, char *const *data,
                      const ptrdiff_t *strides, ptrdiff_t n);

#endif
