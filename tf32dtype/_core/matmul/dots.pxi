# Compute np.dot, np.inner and np.vdot as products of matrices, by `np.matmul`.
#
# For a dtype that BLAS does not support, NumPy computes them element by element, and
# does not use the current precision. The functions of the same names in this file
# replace NumPy's if `chosen` is true for the dtype to which the operands promote. They
# return NotImplemented to let NumPy's own function compute the result: for other
# dtypes, scalars times arrays, and invalid arguments.
#
# Compiled functions have no frame, so that warnings show the line of the caller.

import math


def dot(chosen, a, b, out=None):
    found = dot_operands(chosen, a, b, out)
    if found is None:
        return NotImplemented
    x, y = map(np.asarray, found)
    return _contract(x, y, found, out)


def inner(chosen, a, b, /):
    found = dot_operands(chosen, a, b)
    if found is None:
        return NotImplemented
    x, y = map(np.asarray, found)
    return _contract(x, y if y.ndim < 2 else y.swapaxes(-1, -2), found)


def vdot(chosen, a, b, /):
    found = dot_operands(chosen, a, b)
    if found is None:
        return NotImplemented
    x, y = np.asarray(found[0]).ravel(), np.asarray(found[1]).ravel()
    return np.vecdot(x, y) if x.size == y.size else NotImplemented


# For missing or unknown arguments of the next functions, NumPy raises the error.

def format_dot(a=NotImplemented, b=NotImplemented, out=None, *others, **unknown):
    """Compute `np.dot` of our formats, except of long vectors.

    For long vectors, NumPy calls a function of the dtype."""
    if others or unknown:
        return NotImplemented
    if out is None and _are_of_one_format(a, b):
        if _are_short_vectors(a, b):
            return _dot_of_vectors(a, b)
        if _are_matrices(a, b):
            return np.matmul(a, b)
    if b is NotImplemented or _are_vectors(a, b):
        return NotImplemented
    return dot(_is_format, a, b, out)


def format_inner(a=NotImplemented, b=NotImplemented, /, *others, **unknown):
    if b is NotImplemented or others or unknown:
        return NotImplemented
    if _are_of_one_format(a, b) and _are_short_vectors(a, b):
        return _dot_of_vectors(a, b)
    if _are_vectors(a, b):
        return NotImplemented
    return inner(_is_format, a, b)


def format_vdot(a=NotImplemented, b=NotImplemented, /, *others, **unknown):
    """Compute `np.vdot` of short vectors; for others NumPy asks the dtype."""
    if b is NotImplemented or others or unknown:
        return NotImplemented
    if _are_of_one_format(a, b) and _are_short_vectors(a, b):
        return _dot_of_vectors(a, b)
    return NotImplemented


def dot_operands(chosen, *arguments):
    """Return the first two as arrays, if the dtype of their product is chosen.

    Return None for empty operands, because NumPy determines the dtype of an empty list.
    """
    for argument in arguments:
        override = getattr(type(argument), "__array_function__", None)
        if override is not None and override is not np.ndarray.__array_function__:
            return None
    a, b = np.asanyarray(arguments[0]), np.asanyarray(arguments[1])
    try:
        dtype = np.promote_types(a.dtype, b.dtype)
    except TypeError:
        return None
    return (a, b) if a.size and b.size and chosen(dtype) else None


def _contract(x, y, operands, out=None):
    """Sum products over the last axis of x and the second-to-last or only axis of y.

    `np.matmul` multiplies both as matrices, to which other axes are joined. The
    exception is a precision with one scale per matrix of a stack.
    """
    if x.ndim == 0 or y.ndim == 0 or x.shape[-1] != y.shape[max(y.ndim - 2, 0)]:
        return NotImplemented
    rows = x.shape[:-1]
    columns = y.shape[:-2] + y.shape[-1:] if y.ndim > 1 else ()
    if out is not None and not _fits(
        out, rows + columns, np.promote_types(x.dtype, y.dtype)
    ):
        return NotImplemented
    precision = current_precision()
    if max(x.ndim, y.ndim) > 2 and precision is not None and precision.scales_matrices:
        result = _contract_stacks(x, y)
        if out is not None:
            np.copyto(out, result)
    else:
        if x.ndim > 2:
            x = x.reshape(math.prod(rows), x.shape[-1])
        if y.ndim > 2:
            y = np.moveaxis(y, -2, 0).reshape(y.shape[-2], math.prod(columns))
        if out is None:
            result = np.matmul(x, y).reshape(rows + columns)
        else:
            np.matmul(x, y, out=np.asarray(out).reshape(x.shape[:-1] + y.shape[1:]))
    if out is None:
        return _like(result, *operands)
    return out if out.ndim else out[()]


def _contract_stacks(x, y):
    """Multiply each matrix of x by each of y; at least one has more than two axes."""
    above = x.ndim - 2
    if above >= 0:
        others = (1,) * max(y.ndim - 2, 0)
        x = x.reshape(x.shape[:above] + others + x.shape[above:])
    result = np.matmul(x, y)
    return np.moveaxis(result, -2, above) if above >= 0 and y.ndim > 2 else result


def _fits(out, shape, dtype):
    """Return whether `np.dot` would accept this array as `out`."""
    return (
        isinstance(out, np.ndarray)
        and out.shape == shape
        and out.dtype == dtype
        and out.flags.carray
    )


def _like(result, a, b):
    """Return the result in the class that `np.dot` chooses, or as a scalar."""
    if result.ndim == 0:
        return result[()]
    if type(a) is type(b) is np.ndarray:
        return result
    priorities = [
        0.0 if type(x) is np.ndarray else getattr(x, "__array_priority__", 0.0)
        for x in (a, b)
    ]
    second = type(a) is not type(b) and priorities[1] > priorities[0]
    return np.ndarray.__array_wrap__(b if second else a, result)


def _is_format(dtype):
    return tf_format_of_descr(<descr_t *><PyObject *>dtype) >= 0


ctypedef void (*dot_function)(void *, npy_intp, void *, npy_intp, void *, npy_intp,
                              void *) except *


cdef bint _are_of_one_format(object a, object b) except -1:
    """Return whether both are plain arrays of one format, the usual case."""
    return (cnp.PyArray_CheckExact(a) and cnp.PyArray_CheckExact(b)
            and cnp.PyArray_DESCR(a) == cnp.PyArray_DESCR(b)
            and tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(a)) >= 0)


cdef bint _are_matrices(object a, object b) except -1:
    """Return whether np.matmul computes the same: a matrix times a matrix or vector."""
    return (cnp.PyArray_NDIM(a) == 2 and 1 <= cnp.PyArray_NDIM(b) <= 2
            and cnp.PyArray_DIM(a, 1) == cnp.PyArray_DIM(b, 0)
            and cnp.PyArray_SIZE(a) and cnp.PyArray_SIZE(b))


cdef bint _are_short_vectors(object a, object b) except -1:
    """Return whether vectors are so short that the GIL need not be released."""
    return (cnp.PyArray_NDIM(a) == 1 and cnp.PyArray_NDIM(b) == 1
            and cnp.PyArray_DIM(a, 0) == cnp.PyArray_DIM(b, 0)
            and 0 < cnp.PyArray_DIM(a, 0) <= 4096)


cdef object _dot_of_vectors(object a, object b):
    """Call the dtype's dot function directly, without NumPy's overhead."""
    cdef char item[4]
    cdef int format = tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(a))
    (<dot_function>tf_legacy[format].dot)(
        cnp.PyArray_DATA(a), cnp.PyArray_STRIDE(a, 0), cnp.PyArray_DATA(b),
        cnp.PyArray_STRIDE(b, 0), item, cnp.PyArray_DIM(a, 0), NULL)
    return new_scalar(format, item)


cdef bint _are_vectors(object a, object b) except -1:
    if cnp.PyArray_Check(a) and cnp.PyArray_Check(b):
        return cnp.PyArray_NDIM(a) < 2 and cnp.PyArray_NDIM(b) < 2
    return np.ndim(a) < 2 and np.ndim(b) < 2
