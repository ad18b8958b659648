# Exact dot products and sums: thin adapters of src/exact/.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.exact.exact cimport *


cdef const double *doubles_of(cnp.ndarray array, int ndim) except? NULL:
    """Return the items of a contiguous array of float64."""
    if (array.dtype != np.float64 or cnp.PyArray_NDIM(array) != ndim
            or not cnp.PyArray_IS_C_CONTIGUOUS(array)):
        raise ValueError(f"array must be contiguous float64 with {ndim} axes; got"
                         f" {array.dtype} of shape {np.shape(array)}")
    return <const double *>cnp.PyArray_DATA(array)


cdef tf_exact_results results_of(cnp.ndarray out, int rounding) except *:
    cdef tf_exact_results results
    if (out.dtype not in (np.float32, np.float64)
            or not cnp.PyArray_IS_C_CONTIGUOUS(out)
            or not 0 <= rounding < TF_STOCHASTIC):
        raise ValueError("out must be contiguous float32 or float64, and rounding known;"
                         f" got {out.dtype} and {rounding}")
    results.data = cnp.PyArray_DATA(out)
    results.is_float = out.dtype == np.float32
    results.rounding = <tf_rounding>rounding
    return results


def exact_dots(x, y, cnp.ndarray pairs, out, int rounding):
    """Write the dot products of pairs of rows, each rounded once.

    Parameters
    ----------
    x, y : ndarray of float64, (m, k) and (n, k)
        Contiguous rows.
    pairs : ndarray of int64, (count, 2)
        A row of `x` and a row of `y` for each result.
    out : ndarray of float32 or float64, (count,)
        The results.
    rounding : int
        A value of `enum tf_rounding`.
    """
    cdef const double *rows = doubles_of(x, 2)
    cdef const double *others = doubles_of(y, 2)
    cdef tf_exact_results results = results_of(out, rounding)
    cdef size_t k = x.shape[1], count = len(out)
    cdef int failed
    if (y.shape[1] != x.shape[1] or pairs.dtype != np.int64
            or not cnp.PyArray_IS_C_CONTIGUOUS(pairs)
            or np.shape(pairs) != (len(out), 2)):
        raise ValueError(f"x, y, pairs and out must fit; got {x.shape}, {y.shape},"
                         f" {np.shape(pairs)} and {out.shape}")
    cdef const int64_t *places = <const int64_t *>cnp.PyArray_DATA(pairs)
    with nogil:
        failed = tf_exact_dots(rows, others, k, places, count, results)
    if failed:
        raise_failure()


def exact_sums(cnp.ndarray x, out, int rounding):
    """Write the sum of each row of a float64 array of any strides, rounded once."""
    cdef tf_exact_results results = results_of(out, rounding)
    cdef int failed
    if (x.dtype != np.float64 or cnp.PyArray_NDIM(x) != 2
            or np.shape(out) != (np.shape(x)[0],)):
        raise ValueError(f"x must be rows of float64, and out fit; got {x.dtype},"
                         f" {np.shape(x)} and {out.shape}")
    cdef const char *items = cnp.PyArray_BYTES(x)
    cdef npy_intp step = cnp.PyArray_STRIDE(x, 0), along = cnp.PyArray_STRIDE(x, 1)
    cdef size_t n = cnp.PyArray_DIM(x, 1), count = cnp.PyArray_DIM(x, 0)
    with nogil:
        failed = tf_exact_sums(items, step, along, n, count, results)
    if failed:
        raise_failure()
