# Sorting functions, which NumPy registers like ufuncs.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.ufuncs.ufuncs cimport *

cdef int sort_flags(PyArrayMethod_Context *context) noexcept nogil:
    return (<PyArrayMethod_SortParameters *>context.parameters).flags


cdef int sort_loop(PyArrayMethod_Context *context, items_t data,
                   const npy_intp *dimensions, const npy_intp *strides,
                   NpyAuxData *auxiliary) noexcept nogil:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    cdef int flags = sort_flags(context)
    if tf_sort(format, data[0], dimensions[0], flags & NPY_SORT_STABLE,
               flags & NPY_SORT_DESCENDING) < 0:
        return out_of_memory()
    return 0


cdef int argsort_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    if tf_argsort(format, data[0], <npy_intp *>data[1],
                  dimensions[0], sort_flags(context) & NPY_SORT_DESCENDING) < 0:
        return out_of_memory()
    return 0


# NumPy 2.4 has no default for these two.
cdef int sort_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                       const npy_intp *strides, strided_loop *loop,
                       NpyAuxData **auxiliary, int *flags) noexcept:
    loop[0] = sort_loop
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS
    return 0


cdef int argsort_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                          const npy_intp *strides, strided_loop *loop,
                          NpyAuxData **auxiliary, int *flags) noexcept:
    loop[0] = argsort_loop
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS
    return 0


cdef add_sorting():
    cdef PyType_Slot slots[2][2]
    cdef PyArrayMethod_Spec specs[2]
    cdef PyUFunc_LoopSlot loops[3]
    cdef PyArray_DTypeMeta *dtypes[2]
    cdef int i
    slots[0][0] = PyType_Slot(NPY_METH_get_loop, <void *>sort_get_loop)
    slots[1][0] = PyType_Slot(NPY_METH_get_loop, <void *>argsort_get_loop)
    for format in range(TF_FORMAT_COUNT):
        dtypes[0] = dtypes[1] = &tf_dtypes[format]
        for i in range(2):
            slots[i][1] = PyType_Slot(0, NULL)
            specs[i] = loop_spec("tf32dtype_sort", 1, 1, NPY_METH_NO_FLOATINGPOINT_ERRORS,
                                 dtypes, slots[i])
        loops[0].name, loops[0].spec = "sort", &specs[0]
        loops[1].name, loops[1].spec = "argsort", &specs[1]
        loops[2].name, loops[2].spec = NULL, NULL
        PyUFunc_AddLoopsFromSpecs(loops)
