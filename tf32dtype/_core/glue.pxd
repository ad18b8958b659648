# C declarations of the files next to this one.

from cpython.object cimport PyObject, PyTypeObject

from tf32dtype._core.python_api cimport newfunc, PyGetSetDef, PyMethodDef, reprfunc
from tf32dtype._core.numpy_api cimport descr_t, PyArray_DTypeMeta


cdef extern from "numpy_glue.h":
    PyArray_DTypeMeta tf_dtypes[]
    PyArray_DTypeMeta tf_dtype_base
    PyArray_DTypeMeta tf_exact_dtype
    int tf_exact_dtype_ready(reprfunc) except -1
    int tf_exact_dtype_make_descr() except -1
    PyArray_DTypeMeta tf_dtype_carrier
    struct tf_legacy_functions "tf_legacy":
        void *copyswap
        void *copyswapn
        void *compare
        void *argmax
        void *argmin
        void *dot
        void *nonzero
        void *fill
    const tf_legacy_functions tf_legacy[]
    int tf_format_of_dtype(const PyArray_DTypeMeta *dtype) nogil
    int tf_format_of_descr(const descr_t *descr) nogil
    int tf_dtype_base_ready() except -1
    int tf_dtype_carrier_ready(reprfunc) except -1
    int tf_dtype_ready(int, const char *, newfunc, PyMethodDef *,
                       PyGetSetDef *) except -1
    int tf_dtype_make_hybrid(int, PyTypeObject *) except -1
    object tf_scalar_alloc(PyTypeObject *)
    void tf_scalar_dealloc(PyObject *)
    void tf_reduction_begins(const void *context)
    bint tf_reduction_began(const void *context)
    bint tf_is_on_stack(const void *place) nogil


cdef extern from "objects.h":
    struct tf_scalar:
        char item[4]
    struct tf_object_functions "tf_objects":
        void *get_item
        void *set_item
    const tf_object_functions tf_objects[]
    int tf_objects_ready(int (*)(int, PyObject *, char *) except -1) except -1
    int tf_warn(unsigned flags, const char *where) except -1
