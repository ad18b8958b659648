/* The kinds of numbers in arrays: this project's formats, then NumPy's own types. Complex
 * numbers are pairs of a real kind. */
#ifndef TF32DTYPE_FORMATS_NUMBER_KINDS_H
#define TF32DTYPE_FORMATS_NUMBER_KINDS_H

#include "formats/formats.h"

enum tf_number_kind {
    /* 0 .. TF_FORMAT_COUNT - 1 are the formats. */
    TF_FLOAT16 = TF_FORMAT_COUNT, /* also its index in `conversions` */
    TF_FLOAT32,
    TF_FLOAT64,
    TF_LONGDOUBLE,
    TF_BOOL,
    TF_INT8,
    TF_INT16,
    TF_INT32,
    TF_INT64,
    TF_UINT8,
    TF_UINT16,
    TF_UINT32,
    TF_UINT64,
    TF_KIND_COUNT
};

#endif
