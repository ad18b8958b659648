/* Converts items from and to the commonest Python objects; formats/conversion.pxi converts
 * all others. */
#ifndef TF32DTYPE_OBJECTS_H
#define TF32DTYPE_OBJECTS_H

#include "numpy_glue.h"

/* A scalar. Its value follows the object's header, where NumPy reads it too. */
struct tf_scalar {
    PyObject_HEAD
    char item[4];
};

/* Functions of a format for the slots of its DType. */
struct tf_objects {
    /* Returns a Python float; NULL with an error set. */
    PyObject *(*get_item)(PyArray_Descr *descr, char *item);
    /* Rounds a number, or a string of a number, to nearest once; returns -1 with an error
     * set. */
    int (*set_item)(PyArray_Descr *descr, PyObject *value, char *item);
};
extern const struct tf_objects tf_objects[TF_FORMAT_COUNT];

/* Rounds objects that are not a float, a small int or a scalar of ours; returns 0 or -1. */
typedef int tf_set_other(int format, PyObject *value, char *item);
int tf_objects_ready(tf_set_other *set_other);

/* Reports floating-point errors as NumPy does, by numpy.errstate; -1 with an error set. */
int tf_warn(unsigned flags, const char *where);

#endif
