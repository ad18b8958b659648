/* The hybrid registration: a new-style DType that also owns a legacy type
 * number. All of NumPy's legacy interface that we use is behind this header. */
#ifndef TF32DTYPE_NUMPY_GLUE_H
#define TF32DTYPE_NUMPY_GLUE_H

#include <Python.h>
#include <stddef.h>

#include <numpy/ndarraytypes.h>
#include <numpy/dtype_api.h>

#include "formats/formats.h"

/* One class a format, and the abstract class that all derive from. */
extern PyArray_DTypeMeta tf_dtypes[TF_FORMAT_COUNT];
extern PyArray_DTypeMeta tf_dtype_base;

/* A class without instances. NumPy takes casts with a new class alone, and does not
 * ask whether they are from or to it: this one carries those between our dtypes and
 * another package's, which may be imported after ours were registered. */
extern PyArray_DTypeMeta tf_dtype_carrier;

/* The format of a DType class, or -1. */
static inline int tf_format_of_dtype(const PyArray_DTypeMeta *dtype)
{
    const ptrdiff_t index = dtype - tf_dtypes;
    return dtype >= tf_dtypes && index < TF_FORMAT_COUNT ? (int)index : -1;
}

static inline int tf_format_of_descr(const PyArray_Descr *descr)
{
    return tf_format_of_dtype((const PyArray_DTypeMeta *)Py_TYPE(descr));
}

/* Prepares the class objects; `spec->slots` and `spec->casts` are the caller's,
 * to which PyArrayInitDTypeMeta_FromSpec then applies. */
int tf_dtype_base_ready(void);
int tf_dtype_carrier_ready(reprfunc repr);
int tf_dtype_ready(int format, const char *name, newfunc new_, PyMethodDef *methods,
                   PyGetSetDef *getset);

/* The class of exact numbers (see exact_compare.h). It has no type number: no array of a user's
 * holds them. */
extern PyArray_DTypeMeta tf_exact_dtype;
int tf_exact_dtype_ready(reprfunc repr);
int tf_exact_dtype_make_descr(void);

/* Makes the class own a type number. Call once, after its initialization. */
int tf_dtype_make_hybrid(int format, PyTypeObject *scalar);

/* Legacy functions of each format, for the DType's slots. */
struct tf_legacy {
    PyArray_CopySwapFunc *copyswap;
    PyArray_CopySwapNFunc *copyswapn;
    PyArray_CompareFunc *compare;
    PyArray_ArgSortFunc *argsort;
    PyArray_ArgFunc *argmax, *argmin;
    PyArray_DotFunc *dot;
    PyArray_NonzeroFunc *nonzero;
    PyArray_FillFunc *fill;
};
extern const struct tf_legacy tf_legacy[TF_FORMAT_COUNT];

/* Memory of scalar objects, whose types are made from a specification. */
static inline PyObject *tf_scalar_alloc(PyTypeObject *type)
{
    return type->tp_alloc(type, 0);
}

static inline void tf_scalar_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* NumPy asks for a reduction's initial value just before it asks for the
 * loop, with the same context, in the same thread. */
void tf_reduction_begins(const void *context);
int tf_reduction_began(const void *context);

#endif
