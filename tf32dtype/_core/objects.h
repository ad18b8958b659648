/* Items from and to the commonest Python objects; formats/conversion.pxi takes all others. */
#ifndef TF32DTYPE_OBJECTS_H
#define TF32DTYPE_OBJECTS_H

#include "numpy_glue.h"

/* A scalar. NumPy too reads its value right after the object's header. */
struct tf_scalar {
    PyObject_HEAD
    char item[4];
};

/* For the slots of a DType. */
struct tf_objects {
    /* A Python float; NULL with an error. */
    PyObject *(*get_item)(PyArray_Descr *descr, char *item);
    /* A number, or text that reads as one, rounded to nearest once; -1 with an error. */
    int (*set_item)(PyArray_Descr *descr, PyObject *value, char *item);
};
extern const struct tf_objects tf_objects[TF_FORMAT_COUNT];

/* Rounds what is no float, small int or scalar of ours. */
typedef int tf_set_other(int format, PyObject *value, char *item);
int tf_objects_ready(tf_set_other *set_other);

/* Tells of exceptions as NumPy does, as numpy.errstate has it; -1 with an error. */
int tf_warn(unsigned flags, const char *where);

#endif
