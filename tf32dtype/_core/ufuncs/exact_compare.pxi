# Exact numbers: what comparisons and bounds make of Python numbers and of integers that
# float64 does not hold (src/ufuncs/exact_compare.h). No array of a user's has this dtype.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.ufuncs.ufuncs cimport *

cdef object exact_repr(object self):
    return "exact_number"


class ExactNumber:
    """The scalar type that NumPy wants a dtype to have; there are no such scalars."""


cdef PyObject *exact_singleton(PyArray_DTypeMeta *cls) noexcept:
    return dtype_singleton(cls)


cdef PyObject *exact_common(PyArray_DTypeMeta *cls, PyArray_DTypeMeta *other) noexcept:
    cdef PyObject *result = <PyObject *>NotImplemented
    if is_python_number(other):
        result = <PyObject *>cls
    incref(result)
    return result


cdef object exact_getitem(descr_t *descr, char *item):
    cdef float x
    memcpy(&x, item, sizeof(x))
    return float(x)


cdef int exact_setitem(descr_t *descr, object value, char *item) except -1:
    cdef float x = exact_from_object(value)
    memcpy(item, &x, sizeof(x))
    return 0


cdef float exact_from_object(object value) except? -1.0:
    if not isinstance(value, int):
        return tf_exact_from_double(value, False)
    # Its highest 53 bits, which float64 holds; beyond 2**1023 all numbers are alike.
    magnitude = abs(value)
    surplus = max(magnitude.bit_length() - 53, 0)
    if surplus > 970:
        return tf_exact_from_double(1e300 if value > 0 else -1e300, True)
    kept = magnitude >> surplus
    odd = tf_exact_from_double(
        float(kept << surplus), kept << surplus != magnitude)
    return odd if value >= 0 else -odd


def register_exact_dtype():
    cdef PyArrayDTypeMeta_Spec spec
    cdef PyType_Slot slots[7]
    cdef cast_list casts
    cdef int i
    tf_exact_dtype_ready(<reprfunc><void *>exact_repr)
    slots[0] = PyType_Slot(NPY_DT_discover_descr_from_pyobject, <void *>dtype_discover)
    slots[1] = PyType_Slot(NPY_DT_default_descr, <void *>exact_singleton)
    slots[2] = PyType_Slot(NPY_DT_common_dtype, <void *>exact_common)
    slots[3] = PyType_Slot(NPY_DT_ensure_canonical, <void *>dtype_canonical)
    slots[4] = PyType_Slot(NPY_DT_setitem, <void *>exact_setitem)
    slots[5] = PyType_Slot(NPY_DT_getitem, <void *>exact_getitem)
    slots[6] = PyType_Slot(0, NULL)
    casts.count = 0
    add_cast(&casts, NULL, NULL, copy_slots, cnp.NPY_NO_CASTING)
    for i in range(builtin_count):
        if not builtins[i].is_complex:
            add_cast(&casts, builtins[i].dtype, NULL, number_cast_slots,
                     cnp.NPY_SAFE_CASTING)
    for i in range(TF_FORMAT_COUNT):
        add_cast(&casts, &tf_dtypes[i], NULL, number_cast_slots, cnp.NPY_SAFE_CASTING)
    memset(&spec, 0, sizeof(spec))
    spec.typeobj = <PyTypeObject *>ExactNumber
    spec.casts = casts.pointers
    spec.slots = slots
    PyArrayInitDTypeMeta_FromSpec(&tf_exact_dtype, &spec)
    tf_exact_dtype_make_descr()
    return <object><PyObject *>tf_exact_dtype.singleton


# -- loops -------------------------------------------------------------------------------

cdef int exact_compare_loop(PyArrayMethod_Context *context, items_t data,
                            const npy_intp *dimensions, const npy_intp *strides,
                            NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_exact_compare(loop.format, <tf_compare_op>loop.op, loop.exact, data, strides,
                     dimensions[0])
    return 0


cdef int exact_extreme_loop(PyArrayMethod_Context *context, items_t data,
                            const npy_intp *dimensions, const npy_intp *strides,
                            NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_exact_extreme(loop.format, <tf_binary_op>loop.op, loop.exact, data, strides,
                     dimensions[0])
    return 0


cdef int exact_clip_loop(PyArrayMethod_Context *context, items_t data,
                         const npy_intp *dimensions, const npy_intp *strides,
                         NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_exact_clip(loop.format, loop.exact == 0, data, strides, dimensions[0])
    return 0


cdef int exact_nextafter_loop(PyArrayMethod_Context *context, items_t data,
                              const npy_intp *dimensions, const npy_intp *strides,
                              NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_exact_nextafter(loop.format, data, strides, dimensions[0])
    return 0


cdef int exact_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                        const npy_intp *strides, strided_loop *loop,
                        NpyAuxData **auxiliary, int *flags) except -1:
    cdef operation *entry = &operations[find_operation(context)]
    cdef bint exact_first = (
        <PyArray_DTypeMeta *>Py_TYPE(<object><PyObject *>context.descriptors[0])
        == &tf_exact_dtype)
    cdef loop_data *made = new_data()
    made.base.free = free_data
    made.base.clone = no_copy
    made.op = entry.op
    made.exact = 0 if exact_first else 1
    if entry.loop == clip_loop:
        loop[0] = exact_clip_loop
        made.format = tf_format_of_descr(context.descriptors[3])
    else:
        if entry.loop == compare_loop:
            loop[0] = exact_compare_loop
        elif entry.loop == code_op_loop:
            loop[0] = exact_nextafter_loop
        else:
            loop[0] = exact_extreme_loop
        made.format = tf_format_of_descr(context.descriptors[1 - made.exact])
    auxiliary[0] = &made.base
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS if entry.loop == compare_loop else 0
    return 0


cdef PyType_Slot exact_slots[2]
exact_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>exact_get_loop)
exact_slots[1] = PyType_Slot(0, NULL)


cdef int add_exact_loop(object ufunc, PyArray_DTypeMeta **dtypes) except -1:
    cdef int silent = NPY_METH_NO_FLOATINGPOINT_ERRORS if ufunc in comparisons else 0
    cdef PyArrayMethod_Spec spec = loop_spec(
        "tf32dtype_exact_loop", ufunc.nin, 1, NPY_METH_SUPPORTS_UNALIGNED | silent, dtypes,
        exact_slots)
    return add_late_loop(ufunc, &spec)


# -- promotion ---------------------------------------------------------------------------

comparisons = {umath.equal, umath.not_equal, umath.less, umath.less_equal,
               umath.greater, umath.greater_equal}
bounds = {umath.maximum, umath.minimum, umath.fmax, umath.fmin, umath.clip,
          umath.nextafter}


cdef bint is_python_number(PyArray_DTypeMeta *dtype) noexcept:
    return dtype == &PyArray_PyLongDType or dtype == &PyArray_PyFloatDType


cdef bint compares_exactly(PyArray_DTypeMeta *dtype) noexcept:
    """Is there no dtype that holds its numbers and all of any format? float64 does not
    hold all integers of 64 bits, and e8m0 no False."""
    cdef builtin *known = find_builtin(dtype)
    return is_python_number(dtype) or (known != NULL and (
        known.kind == TF_INT64 or known.kind == TF_UINT64 or known.kind == TF_BOOL))


cdef int promote_exact(PyObject *ufunc, PyArray_DTypeMeta **given,
                       PyArray_DTypeMeta **signature,
                       PyArray_DTypeMeta **promoted) except -1:
    """A comparison, or bounds: of which Python numbers and what has no dtype in common
    with a format that holds it are not cast to the format."""
    cdef int nin = (<object>ufunc).nin
    cdef PyArray_DTypeMeta *out = signature[nin]
    cdef PyArray_DTypeMeta *common
    cdef int i
    cdef bint is_comparison = <object>ufunc in comparisons
    if given[0] == NULL or (is_comparison and out != NULL and out != bool_dtype):
        return promote(ufunc, given, signature, promoted)
    if is_comparison:
        if compares_exactly(given[0]):
            promoted[0], promoted[1] = &tf_exact_dtype, given[1]
        elif compares_exactly(given[1]):
            promoted[0], promoted[1] = given[0], &tf_exact_dtype
        else:
            return promote(ufunc, given, signature, promoted)
        promoted[2] = bool_dtype
    else:
        for i in range(nin):
            if is_python_number(given[i]):
                break
        else:
            return promote(ufunc, given, signature, promoted)
        if i == 0 and <object>ufunc is umath.nextafter:  # no bound, but what is rounded
            return promote(ufunc, given, signature, promoted)
        common = PyArray_PromoteDTypeSequence(nin, given)
        if common == NULL:
            return -1
        decref(<PyObject *>common)  # a class lives as long as the process
        if tf_format_of_dtype(common) < 0 or (out != NULL and out != common):
            return promote(ufunc, given, signature, promoted)
        for i in range(nin):
            # All bounds of clip alike: casts to exact numbers change none.
            promoted[i] = (&tf_exact_dtype if is_python_number(given[i])
                           or (nin == 3 and i > 0) else common)
        promoted[nin] = common
    add_exact_loop(<object>ufunc, promoted)
    for i in range(nin + 1):
        incref(<PyObject *>promoted[i])
    return 0
