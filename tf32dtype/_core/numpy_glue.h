/* The hybrid registration: a new-style DType that also owns a legacy type
 * number. All of NumPy's legacy interface that we use is behind this header. */
#ifndef TF32DTYPE_NUMPY_GLUE_H
#define TF32DTYPE_NUMPY_GLUE_H

#include <Python.h>
#include <stddef.h>

#include <numpy/ndarraytypes.h>
#include <numpy/dtype_api.h>

#include "formats/formats.h"

/* One class per format, and the abstract class that all derive from. */
extern PyArray_DTypeMeta tf_dtypes[TF_FORMAT_COUNT];
extern PyArray_DTypeMeta tf_dtype_base;

/* A class without instances. NumPy accepts casts only together with a new class, and
 * does not check that they are from or to this class. The carrier registers casts
 * between our dtypes and those of another package, which may be imported after our
 * classes were made. */
extern PyArray_DTypeMeta tf_dtype_carrier;

/* Returns the format of a DType class, or -1. */
static inline int tf_format_of_dtype(const PyArray_DTypeMeta *dtype)
{
    const ptrdiff_t index = dtype - tf_dtypes;
    return dtype >= tf_dtypes && index < TF_FORMAT_COUNT ? (int)index : -1;
}

static inline int tf_format_of_descr(const PyArray_Descr *descr)
{
    return tf_format_of_dtype((const PyArray_DTypeMeta *)Py_TYPE(descr));
}

/* Prepare the class objects. The caller then calls PyArrayInitDTypeMeta_FromSpec with its
 * own slots and casts. */
int tf_dtype_base_ready(void);
int tf_dtype_carrier_ready(reprfunc repr);
int tf_dtype_ready(int format, const char *name, newfunc new_, PyMethodDef *methods,
                   PyGetSetDef *getset);

/* The class of exact numbers (src/ufuncs/exact_compare.h). It has no type number, because
 * no array of a user contains such numbers. */
extern PyArray_DTypeMeta tf_exact_dtype;
int tf_exact_dtype_ready(reprfunc repr);
int tf_exact_dtype_make_descr(void);

/* Gives a class a type number of its own. Call once, after its initialization. */
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

/* tf_reduction_begins notes the context of a reduction when NumPy asks for the initial
 * value. tf_reduction_began returns whether a context is that of the reduction, and forgets
 * it: NumPy asks for the loop just after the value, with the same context, in the same
 * thread. */
void tf_reduction_begins(const void *context);
int tf_reduction_began(const void *context);

/* Returns whether an address is that of a local variable of a caller. A false 1 is possible
 * for an address just above the stack of a thread. */
static inline int tf_is_on_stack(const void *place)
{
    enum { REACH = 1 << 16 }; /* from this frame to that of the loop over rows */
    return (uintptr_t)place - (uintptr_t)__builtin_frame_address(0) < REACH;
}

#endif
