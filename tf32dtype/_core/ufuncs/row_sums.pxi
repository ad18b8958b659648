# Sums over an outer axis. NumPy calls the loop of add once per row, and does not tell
# it which row is the last. So sums are rounded and stored after each row. The function
# in this file rounds them once.

from tf32dtype._core.ufuncs.ufuncs cimport *

cdef enum:
    FEW_ELEMENTS = 2048


def sum_over_rows(a=None, axis=None, *others, **unknown):
    """Compute `sum` of an array of ours.

    Return NotImplemented if NumPy is to compute the sum: of large arrays with other
    strides, and of infinities whose sum is NaN."""
    cdef npy_intp outer, rows, columns
    cdef int format, done
    cdef unsigned flags = 0
    cdef cnp.ndarray source, result
    if others or not cnp.PyArray_CheckExact(a):
        return NotImplemented
    for name, nothing in (("dtype", None), ("out", None), ("initial", np._NoValue)):
        if unknown.get(name, nothing) is nothing:  # nansum passes these defaults
            unknown.pop(name, None)
    if unknown:
        if not unknown.keys() <= {"where", "keepdims"}:
            return NotImplemented
        return statistic(TF_TOTAL, a, axis, 0, unknown.get("keepdims", False),
                         unknown.get("where", True))
    source = a
    if (type(axis) is tuple or cnp.PyArray_SIZE(source) < FEW_ELEMENTS
            or (source.ndim == 1 and cnp.PyArray_STRIDE(source, 0) < 0)):
        return statistic(TF_TOTAL, a, axis)
    if type(axis) is not int:
        return NotImplemented
    format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(source))
    if (format < 0 or not -source.ndim <= axis < source.ndim
            or not cnp.PyArray_ISCARRAY_RO(source)):
        return NotImplemented
    shape = a.shape
    at = axis % len(shape)
    outer, rows = math.prod(shape[:at]), shape[at]
    columns = math.prod(shape[at + 1:])
    if columns == 1:  # then NumPy sums in another order
        return statistic(TF_TOTAL, a, axis)
    result = np.empty(shape[:at] + shape[at + 1:], a.dtype)
    with nogil:
        done = tf_sum_rows(format, <const char *>cnp.PyArray_DATA(source),
                           <char *>cnp.PyArray_DATA(result), outer, rows, columns, &flags)
    if not done:
        return NotImplemented
    tf_warn(flags, b"reduce")
    return result
