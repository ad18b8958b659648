# timedelta64 times and over numbers, as NumPy has them for its own floats: through
# float64, toward zero, NaT where there is no such count.

from tf32dtype._core.formats.formats cimport *

cdef int64_t count_of(double value) noexcept nogil:
    # Ordered comparisons with NaN would raise invalid.
    if value == value and -9223372036854775808.0 < value < 9223372036854775808.0:
        return <int64_t>value
    return NPY_DATETIME_NAT


@cython.cdivision(True)
cdef int time_loop(PyArrayMethod_Context *context, items_t data,
                   const npy_intp *dimensions, const npy_intp *strides, int time,
                   bint divides) noexcept nogil:
    cdef int format = tf_format_of_descr(context.descriptors[1 - time])
    cdef int64_t count
    cdef double number
    cdef npy_intp i
    for i in range(dimensions[0]):
        memcpy(&count, data[time] + i * strides[time], sizeof(count))
        number = tf_double_from_code(
            tf_format_rows[format][0],
            tf_load_code(tf_format_rows[format][0],
                         data[1 - time] + i * strides[1 - time]))
        if count != NPY_DATETIME_NAT:
            count = count_of(<double>count / number if divides
                             else <double>count * number)
        memcpy(data[2] + i * strides[2], &count, sizeof(count))
    return 0


cdef int time_times_number(PyArrayMethod_Context *context, items_t data,
                           const npy_intp *dimensions, const npy_intp *strides,
                           NpyAuxData *auxiliary) noexcept nogil:
    return time_loop(context, data, dimensions, strides, 0, False)


cdef int number_times_time(PyArrayMethod_Context *context, items_t data,
                           const npy_intp *dimensions, const npy_intp *strides,
                           NpyAuxData *auxiliary) noexcept nogil:
    return time_loop(context, data, dimensions, strides, 1, False)


cdef int time_over_number(PyArrayMethod_Context *context, items_t data,
                          const npy_intp *dimensions, const npy_intp *strides,
                          NpyAuxData *auxiliary) noexcept nogil:
    return time_loop(context, data, dimensions, strides, 0, True)


cdef int time_operation_resolve(PyArrayMethodObject *method, PyArray_DTypeMeta **dtypes,
                                descrs_t given, descr_t **resolved,
                                npy_intp *view_offset) except -1:
    """The result has the unit of the time among the operands."""
    cdef int time = 0 if is_time(dtypes[0]) else 1
    cdef int i
    dtype = <object><PyObject *>given[time]
    native = dtype if dtype.isnative else dtype.newbyteorder("=")
    for i in range(3):
        resolved[i] = (given[i] if i == 1 - time else <descr_t *><PyObject *>native)
        incref(<PyObject *>resolved[i])
    return cnp.NPY_NO_CASTING if native is dtype else cnp.NPY_EQUIV_CASTING


cdef add_time_loop(object ufunc, int time, strided_loop loop):
    cdef PyArrayMethod_Spec spec
    cdef PyArray_DTypeMeta *dtypes[3]
    cdef PyType_Slot slots[4]
    cdef int format
    slots[0] = PyType_Slot(NPY_METH_strided_loop, <void *>loop)
    slots[1] = PyType_Slot(NPY_METH_unaligned_strided_loop, <void *>loop)
    slots[2] = PyType_Slot(
        NPY_METH_resolve_descriptors, <void *>time_operation_resolve)
    slots[3] = PyType_Slot(0, NULL)
    spec = loop_spec("tf32dtype_time_loop", 2, 1, NPY_METH_SUPPORTS_UNALIGNED, dtypes, slots)
    for format in range(TF_FORMAT_COUNT):
        dtypes[time] = time_dtypes[0]
        dtypes[1 - time] = &tf_dtypes[format]
        dtypes[2] = time_dtypes[0]
        PyUFunc_AddLoopFromSpec(ufunc, &spec)


def add_time_loops():
    add_time_loop(umath.multiply, 0, time_times_number)
    add_time_loop(umath.multiply, 1, number_times_time)
    add_time_loop(umath.divide, 0, time_over_number)
    add_time_loop(umath.floor_divide, 0, time_over_number)
