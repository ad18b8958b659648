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
    cdef PyType_Slot sort_slots[2]
    cdef PyType_Slot argsort_slots[2]
    cdef PyArrayMethod_Spec specs[2]
    cdef PyUFunc_LoopSlot loops[3]
    cdef PyArray_DTypeMeta *dtypes[2]
    sort_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>sort_get_loop)
    sort_slots[1] = PyType_Slot(0, NULL)
    argsort_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>argsort_get_loop)
    argsort_slots[1] = PyType_Slot(0, NULL)
    for format in range(TF_FORMAT_COUNT):
        dtypes[0] = &tf_dtypes[format]
        dtypes[1] = &tf_dtypes[format]
        for i in range(2):
            specs[i].name = "tf32dtype_sort"
            specs[i].nin = 1
            specs[i].nout = 1
            specs[i].casting = cnp.NPY_NO_CASTING
            specs[i].flags = NPY_METH_NO_FLOATINGPOINT_ERRORS
            specs[i].dtypes = dtypes
        specs[0].slots = sort_slots
        specs[1].slots = argsort_slots
        loops[0].name, loops[0].spec = "sort", &specs[0]
        loops[1].name, loops[1].spec = "argsort", &specs[1]
        loops[2].name, loops[2].spec = NULL, NULL
        PyUFunc_AddLoopsFromSpecs(loops)
