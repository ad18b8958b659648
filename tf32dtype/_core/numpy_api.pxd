# NumPy's C API that its own numpy.pxd lacks, most of it the DType API.

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint64_t
cimport numpy as cnp
from numpy cimport npy_intp

from tf32dtype._core.python_api cimport PyType_Slot


cdef extern from "numpy/ndarraytypes.h":
    ctypedef struct descr_t "PyArray_Descr"

    ctypedef struct PyArray_DTypeMeta:
        descr_t *singleton
        uint64_t flags

    ctypedef struct NpyAuxData:
        void (*free)(NpyAuxData *)
        NpyAuxData *(*clone)(NpyAuxData *)

    const int64_t NPY_DATETIME_NAT

    ctypedef enum NPY_SORTKIND:
        NPY_SORT_STABLE
        NPY_SORT_DESCENDING


cdef extern from "numpy/dtype_api.h":
    ctypedef struct PyArrayMethodObject "struct PyArrayMethodObject_tag"

    # Pointers that Cython cannot spell.
    ctypedef char **items_t "char *const *"
    ctypedef descr_t **descrs_t "PyArray_Descr *const *"

    ctypedef struct PyArrayMethod_Context:
        PyObject *caller
        PyArrayMethodObject *method
        descrs_t descriptors
        void *parameters

    ctypedef struct PyArrayMethod_Spec:
        const char *name
        int nin
        int nout
        int nout
        cnp.NPY_CASTING casting
        int flags
        PyArray_DTypeMeta **dtypes
        PyType_Slot *slots

    ctypedef struct PyUFunc_LoopSlot:
        const char *name
        PyArrayMethod_Spec *spec

    ctypedef struct PyArrayDTypeMeta_Spec:
        PyTypeObject *typeobj
        int flags
        PyArrayMethod_Spec **casts
        PyType_Slot *slots

    ctypedef struct PyArrayMethod_SortParameters:
        NPY_SORTKIND flags

    int NPY_METH_REQUIRES_PYAPI, NPY_METH_NO_FLOATINGPOINT_ERRORS
    int NPY_METH_SUPPORTS_UNALIGNED, NPY_METH_IS_REORDERABLE
    int NPY_METH_resolve_descriptors, NPY_METH_get_loop, NPY_METH_strided_loop
    int NPY_METH_contiguous_indexed_loop
    int NPY_METH_unaligned_strided_loop
    int NPY_METH_get_reduction_initial
    int NPY_DT_ABSTRACT
    int NPY_DT_NUMERIC
    int NPY_DT_discover_descr_from_pyobject, NPY_DT_default_descr
    int NPY_DT_common_dtype, NPY_DT_ensure_canonical
    int NPY_DT_setitem, NPY_DT_getitem, NPY_DT_get_constant
    int _NPY_DT_ARRFUNCS_OFFSET
    int NPY_DT_PyArray_ArrFuncs_compare, NPY_DT_PyArray_ArrFuncs_argmax
    int NPY_DT_PyArray_ArrFuncs_argmin, NPY_DT_PyArray_ArrFuncs_dotfunc
    int NPY_DT_PyArray_ArrFuncs_fromstr, NPY_DT_PyArray_ArrFuncs_scanfunc
    int NPY_DT_PyArray_ArrFuncs_nonzero, NPY_DT_PyArray_ArrFuncs_fill
    int NPY_CONSTANT_zero, NPY_CONSTANT_one, NPY_CONSTANT_maximum_finite
    int NPY_CONSTANT_minimum_finite, NPY_CONSTANT_inf, NPY_CONSTANT_ninf
    int NPY_CONSTANT_nan, NPY_CONSTANT_finfo_radix, NPY_CONSTANT_finfo_eps
    int NPY_CONSTANT_finfo_smallest_normal, NPY_CONSTANT_finfo_smallest_subnormal
    int NPY_CONSTANT_finfo_nmant, NPY_CONSTANT_finfo_min_exp
    int NPY_CONSTANT_finfo_max_exp, NPY_CONSTANT_finfo_decimal_digits

    PyArray_DTypeMeta PyArray_PyLongDType, PyArray_PyFloatDType
    PyArray_DTypeMeta PyArray_PyComplexDType


ctypedef int (*strided_loop)(
    PyArrayMethod_Context *, items_t, const npy_intp *, const npy_intp *,
    NpyAuxData *) noexcept nogil


cdef extern from "numpy/arrayobject.h":
    int PyArray_Pack(descr_t *descr, void *item, object value) except -1
    object PyArray_NewFromDescr(PyTypeObject *, descr_t *, int, npy_intp *, npy_intp *,
                                void *, int, PyObject *)
    object PyArray_Scalar(void *data, descr_t *descr, object base)
    int PyArrayInitDTypeMeta_FromSpec(PyArray_DTypeMeta *, PyArrayDTypeMeta_Spec *) except -1
    PyArray_DTypeMeta *PyArray_PromoteDTypeSequence(npy_intp, PyArray_DTypeMeta **)

    ctypedef struct npy_string_allocator
    ctypedef struct npy_packed_static_string
    ctypedef struct npy_static_string:
        size_t size
        const char *buf

    ctypedef struct PyArray_StringDTypeObject
    npy_string_allocator *NpyString_acquire_allocator(PyArray_StringDTypeObject *)
    void NpyString_release_allocator(npy_string_allocator *)
    int NpyString_load(npy_string_allocator *, npy_packed_static_string *,
                       npy_static_string *)


cdef extern from "numpy/ufuncobject.h":
    int PyUFunc_AddLoopFromSpec(object ufunc, PyArrayMethod_Spec *) except -1
    int PyUFunc_AddLoopsFromSpecs(PyUFunc_LoopSlot *) except -1
    int PyUFunc_AddPromoter(object ufunc, object dtypes, object capsule) except -1


# The fields of NumPy ufuncs: those of cnp.ufunc differ between versions.
cdef extern from *:
    ctypedef struct ufunc_object "PyUFuncObject":
        int nin
        int nout
        int nargs
        int ntypes
        cnp.PyUFuncGenericFunction *functions
        void **data
        const char *name
        const char *types
