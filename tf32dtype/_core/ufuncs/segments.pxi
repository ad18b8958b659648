# ufunc.reduceat. NumPy calls a loop for each segment; one call here computes all.

from tf32dtype._core.ufuncs.ufuncs cimport *

def reduce_segments(ufunc=None, a=None, indices=None, axis=0, *others, **unknown):
    """Compute `reduceat` of an array of ours along its last axis.

    It supports sums, products and extremes. For other calls, including invalid ones, it
    returns NotImplemented, and NumPy's own method is used."""
    cdef tf_segments segments
    cdef cnp.ndarray source, starts, result
    cdef operation *found
    cdef int format, number, failed = 0
    cdef unsigned flags = 0
    cdef npy_intp i, rows = 1
    cdef char *out
    if (others or unknown or not cnp.PyArray_CheckExact(a)
            or not cnp.PyArray_CheckExact(indices) or type(axis) is not int):
        return NotImplemented
    source, starts = a, indices
    format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(source))
    number = place_of(<PyObject *>ufunc)[0] - 1
    if (format < 0 or number < 0
            or not (source.ndim == 1 or cnp.PyArray_IS_C_CONTIGUOUS(source))
            or source.ndim == 0 or axis not in (-1, source.ndim - 1)
            or cnp.PyArray_ISBYTESWAPPED(source) or starts.ndim != 1
            or cnp.PyArray_TYPE(starts) != cnp.NPY_INTP
            or not cnp.PyArray_ISCARRAY_RO(starts)):
        return NotImplemented
    found = &operations[number]
    if found.loop != sum_loop and not is_extreme(found.op, found.loop):
        return NotImplemented
    segments.items = <const char *>cnp.PyArray_DATA(source)
    segments.stride = cnp.PyArray_STRIDE(source, source.ndim - 1)
    segments.size = cnp.PyArray_DIM(source, source.ndim - 1)
    segments.starts = <const npy_intp *>cnp.PyArray_DATA(starts)
    segments.count = cnp.PyArray_SIZE(starts)
    for i in range(segments.count):
        if not 0 <= segments.starts[i] < segments.size:
            return NotImplemented
    for i in range(source.ndim - 1):
        rows *= cnp.PyArray_DIM(source, i)
    result = np.empty(a.shape[:-1] + (segments.count,), a.dtype)
    out = <char *>cnp.PyArray_DATA(result)
    with nogil:
        for i in range(rows):
            if found.loop == sum_loop:
                failed |= tf_reduce_segments(format, <tf_reduction>found.op, &segments,
                                             out, &flags)
            else:
                tf_extreme_segments(format, <tf_binary_op>found.op, &segments, out)
            segments.items += segments.size * segments.stride
            out += segments.count * cnp.PyArray_ITEMSIZE(source)
    if failed:
        raise MemoryError()
    tf_warn(flags, b"reduceat")
    return result
