# Means, variances, norms, sums and products in one pass, also of elements that a mask
# selects or that are not NaN: see moments.h. The functions return NotImplemented to let
# NumPy's own function compute the result.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.ufuncs.ufuncs cimport *

cdef enum:
    MOST_AXES = 64
    MOST_RESULTS = 1 << 20  # each takes 32 bytes on the way
    PREDICATES = 1024  # at a time


cdef bint is_true(object where):
    return where is True or where is np._NoValue


cdef bint axes_of(object axis, int ndim, bint *reduced) except -1:
    """Mark the axes to reduce; return False if `axis` has another form."""
    cdef int i, one
    for i in range(ndim):
        reduced[i] = axis is None
    if axis is None:
        return True
    for given in axis if type(axis) is tuple else (axis,):
        if type(given) is not int or not -ndim <= given < ndim:
            return False
        one = given
        one += ndim if one < 0 else 0
        if reduced[one]:
            return False
        reduced[one] = True
    return True


cdef bint lines_of(cnp.ndarray a, cnp.ndarray mask, const bint *reduced,
                   tf_summed *lines) noexcept:
    """Describe an array by four axes.

    Return False if it needs more, or is neither in C order nor in Fortran order."""
    cdef int i, at, part = 3
    cdef int ndim = a.ndim
    cdef bint backwards = False
    cdef npy_intp sizes[4]
    lines.items = <const char *>cnp.PyArray_DATA(a)
    lines.stride = cnp.PyArray_ITEMSIZE(a)
    lines.mask = NULL
    if ndim == 1 and mask is None and reduced[0]:
        lines.stride = cnp.PyArray_STRIDE(a, 0)
        if lines.stride < 0:  # the order does not matter
            lines.items += (cnp.PyArray_SIZE(a) - 1) * lines.stride
            lines.stride = -lines.stride
    elif cnp.PyArray_IS_C_CONTIGUOUS(a):
        pass
    elif cnp.PyArray_IS_F_CONTIGUOUS(a):
        backwards = True
    else:
        return False
    if mask is not None:
        if not (cnp.PyArray_IS_F_CONTIGUOUS(mask) if backwards
                else cnp.PyArray_IS_C_CONTIGUOUS(mask)):
            return False
        lines.mask = <const uint8_t *>cnp.PyArray_DATA(mask)
    sizes[0] = sizes[1] = sizes[2] = sizes[3] = 1
    for i in range(ndim):
        at = i if backwards else ndim - 1 - i
        if cnp.PyArray_DIM(a, at) == 1:
            continue
        while part >= 0 and (part % 2 == 0) != reduced[at]:
            part -= 1
        if part < 0:
            return False
        sizes[part] *= cnp.PyArray_DIM(a, at)
    lines.repeats, lines.outer, lines.n, lines.inner = (sizes[0], sizes[1], sizes[2],
                                                        sizes[3])
    return True


def statistic(int which, a, axis, double freedom=0, keepdims=False, where=True,
              bint without_nans=False):
    """Compute one of `enum tf_statistic` along some axes of an array of ours."""
    cdef bint reduced[MOST_AXES]
    cdef tf_summed lines
    cdef tf_sums found
    cdef npy_intp count, i
    cdef double few[4]
    cdef double *room
    cdef cnp.ndarray source, result, mask = None
    cdef tf_statistic what = <tf_statistic>which
    cdef bint is_sure, is_cast = what != TF_TOTAL and what != TF_PRODUCT
    cdef unsigned flags = 0
    if not cnp.PyArray_CheckExact(a):
        return NotImplemented
    source = a
    lines.format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(source))
    lines.without_nans = without_nans
    if (lines.format < 0 or cnp.PyArray_SIZE(source) == 0
            or cnp.PyArray_ISBYTESWAPPED(source)):
        return NotImplemented
    if keepdims is np._NoValue:
        keepdims = False
    if type(keepdims) is not bool:
        return NotImplemented
    if not is_true(where):
        if (not cnp.PyArray_CheckExact(where) or where.dtype != np.bool_
                or where.shape != a.shape):
            return NotImplemented
        mask = where
    if not (axes_of(axis, source.ndim, reduced)
            and lines_of(source, mask, reduced, &lines)):
        return NotImplemented
    if what == TF_PRODUCT and (lines.inner > 1 or lines.repeats > 1
                               or mask is not None):
        return NotImplemented  # NumPy calls the loop for each step: each may underflow
    shape = tuple([1 if reduced[i] else cnp.PyArray_DIM(source, i)
                   for i in range(source.ndim) if keepdims or not reduced[i]])
    backwards = not cnp.PyArray_IS_C_CONTIGUOUS(source)
    result = np.empty(shape, a.dtype, "F" if backwards else "C")
    count = lines.outer * lines.inner
    if count > MOST_RESULTS:
        return NotImplemented
    room = &few[0] if count == 1 else <double *>malloc(<size_t>count * sizeof(few))
    if room == NULL:
        return NotImplemented
    found.sums, found.counts = room, room + count
    found.squares = found.exponents = NULL
    if what == TF_PRODUCT:
        found.exponents = <int64_t *>(room + 2 * count)
    elif what != TF_TOTAL and what != TF_MEAN:
        found.squares = room + 2 * count
    found.greatest = <int32_t *>(room + 3 * count)
    found.least = found.greatest + count
    with nogil:
        tf_add_lines(&lines, what, found)
        is_sure = tf_statistics(&lines, what, freedom, found,
                                cnp.PyArray_DATA(result), &flags)
    if room != &few[0]:
        free(room)
    if not is_sure:
        return NotImplemented
    if what == TF_TOTAL and without_nans and tf_sum_begins_with_nan(lines.format):
        is_cast = True  # the sum is cast from float64, which has a zero for NaN
    tf_warn(flags, b"cast" if is_cast else b"reduce")
    return result if shape else result[()]


def count_nonzero(a=None, axis=None, *others, **unknown):
    """Count the nonzero elements of a whole large array of ours.

    NumPy's own function would call a function of the dtype for each element."""
    cdef bint reduced[MOST_AXES]
    cdef uint8_t zeros[PREDICATES]
    cdef tf_summed lines
    cdef npy_intp done = 0, n, i, count = 0
    cdef npy_intp[2] strides
    cdef char *data[2]
    cdef cnp.ndarray source
    if others or unknown or axis is not None or not cnp.PyArray_CheckExact(a):
        return NotImplemented
    source = a
    lines.format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(source))
    axes_of(None, source.ndim, reduced)
    if (lines.format < 0 or cnp.PyArray_SIZE(source) < PREDICATES
            or cnp.PyArray_ISBYTESWAPPED(source)
            or not lines_of(source, None, reduced, &lines)):
        return NotImplemented
    with nogil:
        strides[0], strides[1] = lines.stride, 1
        while done < lines.n:
            n = min(lines.n - done, <npy_intp>PREDICATES)
            data[0] = <char *>lines.items + done * lines.stride
            data[1] = <char *>zeros
            tf_predicate(lines.format, TF_LOGICAL_NOT, data, strides, n)
            for i in range(n):
                count += not zeros[i]
            done += n
    return np.intp(count)


def weighted_mean(a, weights):
    """Compute the weighted mean of a vector; both arrays have the same format."""
    cdef tf_summed lines
    cdef unsigned flags = 0
    cdef bint is_sure
    cdef cnp.ndarray source, other, result
    if not cnp.PyArray_CheckExact(a) or not cnp.PyArray_CheckExact(weights):
        return NotImplemented
    source, other = a, weights
    lines.format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(source))
    lines.without_nans = False
    if (lines.format < 0 or tf_sum_begins_with_nan(lines.format) or source.ndim != 1
            or a.dtype != weights.dtype or a.shape != weights.shape
            or cnp.PyArray_SIZE(source) == 0 or cnp.PyArray_ISBYTESWAPPED(source)
            or cnp.PyArray_ISBYTESWAPPED(other)):
        return NotImplemented
    lines.items, lines.mask = <const char *>cnp.PyArray_DATA(source), NULL
    lines.stride, lines.n = cnp.PyArray_STRIDE(source, 0), cnp.PyArray_SIZE(source)
    lines.repeats = lines.outer = lines.inner = 1
    result = np.empty((), a.dtype)
    with nogil:
        is_sure = tf_weighted_mean(&lines, <const char *>cnp.PyArray_DATA(other),
                                   cnp.PyArray_STRIDE(other, 0),
                                   cnp.PyArray_DATA(result), &flags)
    if not is_sure:
        return NotImplemented
    tf_warn(flags, b"cast")
    return result[()]
