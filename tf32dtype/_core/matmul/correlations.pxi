# np.convolve and np.correlate: a matrix of windows of the longer vector is multiplied
# by the shorter vector.
#
# NumPy calls a function of the dtype for each sum. The functions here only do this
# where the shorter vector extends past an end of the longer one. As in NumPy, sums that
# are NaN raise no warning.

from tf32dtype._core.matmul.matmul cimport *

def format_convolve(a=NotImplemented, v=NotImplemented, mode="full", *others, **unknown):
    if others or unknown or not _are_vectors_with_numbers(a, v):
        return NotImplemented
    if len(v) > len(a):
        a, v = v, a
    return _correlate(a, v[::-1], mode)


def format_correlate(a=NotImplemented, v=NotImplemented, mode="valid", *others,
                     **unknown):
    if others or unknown or not _are_vectors_with_numbers(a, v):
        return NotImplemented
    if len(a) >= len(v):
        return _correlate(a, v, mode)
    result = _correlate(v, a, mode)
    return result if result is NotImplemented else result[::-1].copy()


cdef bint _are_vectors_with_numbers(object a, object v) except -1:
    return (_are_of_one_format(a, v)
            and cnp.PyArray_NDIM(a) == 1 and cnp.PyArray_NDIM(v) == 1
            and cnp.PyArray_DIM(a, 0) > 0 and cnp.PyArray_DIM(v, 0) > 0)


cdef object _correlate(object a, object v, object mode):
    """Sums of each place where `v`, which is not longer than `a`, meets it."""
    cdef npy_intp n = cnp.PyArray_DIM(a, 0), m = cnp.PyArray_DIM(v, 0), early, late
    if type(mode) is not str or mode not in ("valid", "same", "full"):
        return NotImplemented  # what NumPy says of it
    early = 0 if mode == "valid" else m // 2 if mode == "same" else m - 1
    late = 0 if mode == "valid" else m - 1 - early if mode == "same" else m - 1
    a, v = np.ascontiguousarray(a), np.ascontiguousarray(v)
    result = np.empty(early + n - m + 1 + late, a.dtype)
    cdef int format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(a))
    cdef npy_intp size = cnp.PyArray_ITEMSIZE(a), i
    cdef char *x = <char *>cnp.PyArray_DATA(a)
    cdef char *y = <char *>cnp.PyArray_DATA(v)
    cdef char *out = <char *>cnp.PyArray_DATA(result)
    cdef dot_function dot = <dot_function>tf_legacy[format].dot
    cdef tf_matrix windows, column, sums
    cdef int failed
    for i in range(early):
        dot(x, size, y + (early - i) * size, size, out, m - early + i, NULL)
        out += size
    windows = strided_matrix(x, size, size, format)
    column = strided_matrix(y, size, 0, format)
    sums = strided_matrix(out, size, 0, format)
    with nogil:
        failed = tf_matmul(&as_they_are, windows, column, sums, n - m + 1, 1, m, 1)
    if failed < 0:
        raise_failure()
    out += (n - m + 1) * size
    for i in range(late):
        dot(x + (n - m + 1 + i) * size, size, y, size, out, m - 1 - i, NULL)
        out += size
    return result


cdef tf_matrix strided_matrix(char *data, npy_intp row, npy_intp column,
                              int kind) noexcept:
    cdef tf_matrix x
    x.data = data
    x.strides[0] = row
    x.strides[1] = column
    x.step = 0
    x.kind = kind
    return x
