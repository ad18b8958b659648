# Exact dot products and sums: thin adapters of src/exact/.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.exact.exact cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.tensor_core.tensor_core cimport *


def float64_matmul(a, b, out):
    """Compute a @ b, of float32 or float64, in float64, whatever the precision.

    The call is not counted. Each product is rounded at most `float64_depth` times until
    it has been added."""
    cdef tf_target target
    cdef bint was_aside
    if tf_float64_depth(1) == 0:
        was_aside = tf_blas_is_aside()
        tf_blas_step_aside(True)
        try:
            np.matmul(a, b, out=out, dtype=np.float64)
        finally:
            tf_blas_step_aside(was_aside)
        return
    target.sums = <char *>doubles_of(out, (len(a), b.shape[1]))
    target.row = b.shape[1]
    multiply_doubles(a, b, store_tile, &target)


def float64_depth(size_t k):
    """Return the most roundings of a product in a sum of `float64_matmul`."""
    cdef size_t depth = tf_float64_depth(k)
    return depth if depth else k


cdef struct tf_target:
    char *sums
    size_t row


cdef void store_tile(const void *context, const double *sums, size_t ld, size_t i,
                     size_t j, size_t rows, size_t columns) noexcept nogil:
    """Copy the sums of a tile to a matrix."""
    cdef const tf_target *target = <const tf_target *>context
    cdef size_t row
    for row in range(rows):
        memcpy(target.sums + ((i + row) * target.row + j) * sizeof(double),
               sums + row * ld, columns * sizeof(double))


cdef int multiply_doubles(a, b, tf_sums_fn *store, const void *context) except -1:
    """Give the sums of a @ b, each float32 or float64, to `store`."""
    cdef npy_intp m, n = b.shape[1], k
    cdef tf_matrix x, y
    cdef int failed
    m, k = a.shape
    kinds = [real_kind(array) for array in (a, b)]
    if min(kinds) < TF_FLOAT32 or len(b) != k:
        raise ValueError("a and b must be float32 or float64 of shapes (m, k) and (k, n);"
                         f" got {a.dtype} of {a.shape} and {b.dtype} of {b.shape}")
    x = matrix_of(a[None], kinds[0])
    y = matrix_of(b[None], kinds[1])
    with nogil:
        failed = tf_float64_matmul(x, y, m, n, k, store, context)
    if failed:
        raise_failure()
    return 0


cdef double *doubles_of(cnp.ndarray array, tuple shape) except? NULL:
    """Return the items of a contiguous array of float64."""
    return <double *>items_of(array, shape, np.float64)


cdef void *items_of(cnp.ndarray array, tuple shape, dtype) except? NULL:
    """Return the items of a contiguous array of a shape and a dtype."""
    if (array.dtype != dtype or np.shape(array) != shape
            or not cnp.PyArray_IS_C_CONTIGUOUS(array)):
        raise ValueError(f"array must be contiguous {np.dtype(dtype)} of shape {shape};"
                         f" got {array.dtype} of shape {np.shape(array)}")
    return cnp.PyArray_DATA(array)


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


def exact_dots(x, y, pairs, out, int rounding):
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
    cdef size_t k = x.shape[1], count = len(out)
    cdef const double *rows = doubles_of(x, x.shape)
    cdef const double *others = doubles_of(y, (len(y), k))
    cdef const int64_t *places = <const int64_t *>items_of(pairs, (count, 2), np.int64)
    cdef tf_exact_results results = results_of(out, rounding)
    cdef int failed
    with nogil:
        failed = tf_exact_dots(rows, others, k, places, count, results)
    if failed:
        raise_failure()


cdef tf_exact_matrix matrix_of_numbers(cnp.ndarray x) except *:
    cdef tf_exact_matrix given
    if x.dtype not in (np.float32, np.float64) or cnp.PyArray_NDIM(x) != 2:
        raise ValueError(f"x must be a matrix of float32 or float64; got {x.dtype} of"
                         f" shape {np.shape(x)}")
    given.items = cnp.PyArray_BYTES(x)
    given.strides[0] = cnp.PyArray_STRIDE(x, 0)
    given.strides[1] = cnp.PyArray_STRIDE(x, 1)
    given.m, given.k = np.shape(x)
    given.is_float = x.dtype == np.float32
    return given


def exact_sums(x, out, int rounding):
    """Write the sum of each row of a matrix of any strides, rounded once."""
    cdef tf_exact_matrix given = matrix_of_numbers(x)
    cdef tf_exact_results results = results_of(out, rounding)
    cdef int failed
    if np.shape(out) != (given.m,):
        raise ValueError(f"out must have the shape ({given.m},); got {out.shape}")
    with nogil:
        failed = tf_exact_sums(given, results)
    if failed:
        raise_failure()


def exact_load(x):
    """Return the rows of a matrix of float32 or float64, as contiguous float64."""
    cdef tf_exact_matrix given = matrix_of_numbers(x)
    rows = np.empty(np.shape(x))
    cdef double *values = doubles_of(rows, np.shape(x))
    cdef int failed
    with nogil:
        failed = tf_exact_load(given, values, NULL)
    if failed:
        raise_failure()
    return rows


def exact_facts(x):
    """Return the facts of the rows of a matrix of float32 or float64.

    They are an array of structures with an element for each row: see `struct
    tf_row_facts`."""
    cdef tf_exact_matrix given = matrix_of_numbers(x)
    found = np.empty(given.m, _FACTS)
    cdef tf_row_facts *facts = <tf_row_facts *>cnp.PyArray_DATA(<cnp.ndarray>found)
    cdef int failed
    with nogil:
        failed = tf_exact_load(given, NULL, facts)
    if failed:
        raise_failure()
    return found


_FACTS = np.dtype([("norm", "f8"), ("unit", "f8"), ("largest", "f8"), ("special", "i4")],
                  align=True)
assert _FACTS.itemsize == sizeof(tf_row_facts)


def exact_slice(rest, slice, exponents):
    """Move multiples of 2**exponents from the rows of `rest` to `slice`.

    Return the norms of both, of shape (m, 2)."""
    cdef size_t m = len(rest), k = rest.shape[1]
    cdef double *source = doubles_of(rest, rest.shape)
    cdef double *target = doubles_of(slice, rest.shape)
    cdef const int64_t *units = <const int64_t *>items_of(exponents, (m,), np.int64)
    norms = np.empty((m, 2))
    cdef double *lengths = doubles_of(norms, (m, 2))
    cdef int failed
    with nogil:
        failed = tf_exact_slice(source, target, m, k, units, lengths)
    if failed:
        raise_failure()
    return norms


def exact_compensate(x, y, pairs):
    """Return the dot products of pairs of rows, each as a sum of two numbers."""
    cdef size_t k = x.shape[1], count = len(pairs)
    cdef const double *rows = doubles_of(x, x.shape)
    cdef const double *others = doubles_of(y, (len(y), k))
    cdef const int64_t *places = <const int64_t *>items_of(pairs, (count, 2), np.int64)
    sums = np.empty((count, 2))
    cdef double *both = doubles_of(sums, (count, 2))
    cdef int failed
    with nogil:
        failed = tf_exact_compensate(rows, others, k, places, count, both)
    if failed:
        raise_failure()
    return sums


def exact_round(terms, row_bounds, column_bounds, row_ratios, column_ratios, exponents,
                int rounding, out, undecided):
    """Round sums where their bounds decide; return the number of undecided ones.

    Parameters
    ----------
    terms : ndarray of float64, (count, m, n), or tuple of ndarray of float64
        The terms of each sum. If there are two matrices, (m, k) and (k, n), the sums are
        their product as `float64_matmul` computes it, which is not stored.
    row_bounds, column_bounds : ndarray of float64, (ranks, m) and (ranks, n)
        The error of an element is at most the sum of the products of its bounds.
    row_ratios, column_ratios : ndarray of float64, (m,) and (n,)
        A sum is exact if the product of its ratios is at most 2**53.
    exponents : tuple of ndarray of int64, (m,) and (n,), or None
        The powers of two that the sums are multiplied by.
    rounding : int
        A value of `enum tf_rounding`.
    out : ndarray of float32 or float64, (m, n)
        The results.
    undecided : ndarray of uint8, (m, n)
        1 for sums that the bounds do not decide, else 0.
    """
    cdef tf_exact_rounding call
    cdef tf_exact_results results = results_of(out, rounding)
    cdef size_t m = len(out), n = out.shape[1], ranks = len(row_bounds)
    cdef bint is_product = type(terms) is tuple
    cdef int failed
    if is_product and tf_float64_depth(1) == 0:
        sums = np.empty((1, m, n))
        float64_matmul(*terms, sums[0])
        terms, is_product = sums, False
    memset(&call, 0, sizeof(call))
    call.first.n, call.m = n, m
    call.first.count, call.first.term_step = 1, m * n
    if not is_product:
        call.first.count = len(terms)
        call.first.terms = doubles_of(terms, (len(terms), m, n))
    call.first.row_bounds = doubles_of(row_bounds, (ranks, m))
    call.first.column_bounds = doubles_of(column_bounds, (ranks, n))
    call.first.ranks, call.first.row_step, call.first.column_step = ranks, m, n
    call.row_ratios = doubles_of(row_ratios, (m,))
    call.first.column_ratios = doubles_of(column_ratios, (n,))
    if exponents is not None:
        call.row_exponents = <const int64_t *>items_of(exponents[0], (m,), np.int64)
        call.first.column_exponents = <const int64_t *>items_of(exponents[1], (n,),
                                                                np.int64)
    call.rounding, call.is_float = results.rounding, results.is_float
    call.results = items_of(out, (m, n), out.dtype)
    call.undecided = <uint8_t *>items_of(undecided, (m, n), np.uint8)
    if is_product:
        if (len(terms[0]), terms[1].shape[1]) != (m, n):
            raise ValueError(f"terms must be matrices whose product has shape ({m}, {n})")
        multiply_doubles(terms[0], terms[1], tf_exact_round_tile, &call)
        return call.left
    with nogil:
        failed = tf_exact_round(&call)
    if failed:
        raise_failure()
    return call.left
