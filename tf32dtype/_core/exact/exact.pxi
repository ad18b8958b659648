# Exact dot products and sums: thin adapters of src/exact/.

from libc.math cimport INFINITY

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.exact.exact cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.tensor_core.tensor_core cimport *


# Comparing these is faster than comparing with a scalar type.
_FLOAT32, _FLOAT64, _INT64, _BOOL = map(np.dtype, ("f4", "f8", "i8", "?"))


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
    return <double *>items_of(array, shape, _FLOAT64)


cdef void *items_of(cnp.ndarray array, tuple shape, dtype) except? NULL:
    """Return the items of a contiguous array of a shape and a dtype."""
    if (array.dtype != dtype or (<object>array).shape != shape
            or not cnp.PyArray_IS_C_CONTIGUOUS(array)):
        raise ValueError(f"array must be contiguous {dtype} of shape {shape};"
                         f" got {array.dtype} of shape {(<object>array).shape}")
    return cnp.PyArray_DATA(array)


cdef tf_exact_results results_of(cnp.ndarray out, int rounding) except *:
    cdef tf_exact_results results
    if (out.dtype not in (_FLOAT32, _FLOAT64)
            or not cnp.PyArray_IS_C_CONTIGUOUS(out)
            or not 0 <= rounding < TF_STOCHASTIC):
        raise ValueError("out must be contiguous float32 or float64, and rounding known;"
                         f" got {out.dtype} and {rounding}")
    results.data = cnp.PyArray_DATA(out)
    results.is_float = out.dtype == _FLOAT32
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
    cdef const int64_t *places = <const int64_t *>items_of(pairs, (count, 2), _INT64)
    cdef tf_exact_results results = results_of(out, rounding)
    cdef int failed
    with nogil:
        failed = tf_exact_dots(rows, others, k, places, count, results)
    if failed:
        raise_failure()


cdef tf_exact_matrix matrix_of_numbers(cnp.ndarray x) except *:
    cdef tf_exact_matrix given
    if x.dtype not in (_FLOAT32, _FLOAT64) or cnp.PyArray_NDIM(x) != 2:
        raise ValueError(f"x must be a matrix of float32 or float64; got {x.dtype} of"
                         f" shape {(<object>x).shape}")
    given.items = cnp.PyArray_BYTES(x)
    given.strides[0] = cnp.PyArray_STRIDE(x, 0)
    given.strides[1] = cnp.PyArray_STRIDE(x, 1)
    given.m, given.k = (<object>x).shape
    given.is_float = x.dtype == _FLOAT32
    return given


def exact_sums(x, out, int rounding):
    """Write the sum of each row of a matrix of any strides, rounded once."""
    cdef tf_exact_matrix given = matrix_of_numbers(x)
    cdef tf_exact_results results = results_of(out, rounding)
    cdef int failed
    if (<object>out).shape != (given.m,):
        raise ValueError(f"out must have the shape ({given.m},); got {out.shape}")
    with nogil:
        failed = tf_exact_sums(given, results)
    if failed:
        raise_failure()


def exact_load(x):
    """Return the rows of a matrix of float32 or float64, as contiguous float64."""
    cdef tf_exact_matrix given = matrix_of_numbers(x)
    rows = np.empty((<object>x).shape)
    cdef double *values = doubles_of(rows, (<object>x).shape)
    cdef int failed
    with nogil:
        failed = tf_exact_load(given, values, NULL)
    if failed:
        raise_failure()
    return rows


def exact_facts(x):
    """Return the facts of the rows of a matrix of float32 or float64.

    Returns
    -------
    facts : ndarray of float64, (4, m)
        Upper bounds of the rows' norms, the norms in units of the last bits, these
        units, and the largest magnitudes: see `struct tf_row_facts`.
    extremes : tuple of float
        The largest norm, the least unit and the largest magnitude of all rows. The last
        one is Inf if a row has an Inf or a NaN.
    """
    cdef tf_exact_matrix given = matrix_of_numbers(x)
    cdef size_t m = given.m, i
    cdef int failed
    cdef double norm = 0, unit = INFINITY, largest = 0
    found = np.empty((4, m))
    cdef double *numbers = doubles_of(found, (4, m))
    cdef tf_row_facts *facts = <tf_row_facts *>malloc(max(m, 1) * sizeof(tf_row_facts))
    if facts == NULL:
        raise MemoryError
    with nogil:
        failed = tf_exact_load(given, NULL, facts)
        for i in range(0 if failed else m):
            numbers[i] = facts[i].norm
            numbers[m + i] = facts[i].norm / facts[i].unit * (1 + 2.0**-50)
            numbers[2 * m + i] = facts[i].unit
            numbers[3 * m + i] = facts[i].largest
            norm = max(norm, facts[i].norm)
            unit = min(unit, facts[i].unit)
            largest = INFINITY if facts[i].special else max(largest, facts[i].largest)
        free(facts)
    if failed:
        raise_failure()
    return found, (norm, unit, largest)


def exact_slice(rest, slice, exponents):
    """Move multiples of 2**exponents from the rows of `rest` to `slice`.

    `slice` is float64, or float32 if this holds the multiples. Return the norms of
    both, of shape (m, 2)."""
    cdef size_t m = len(rest), k = rest.shape[1]
    cdef double *source = doubles_of(rest, rest.shape)
    cdef bint is_float = slice.dtype == _FLOAT32
    cdef void *target = items_of(slice, rest.shape, _FLOAT32 if is_float else _FLOAT64)
    cdef const int64_t *units = <const int64_t *>items_of(exponents, (m,), _INT64)
    norms = np.empty((m, 2))
    cdef double *lengths = doubles_of(norms, (m, 2))
    cdef int failed
    with nogil:
        failed = tf_exact_slice(source, target, m, k, is_float, units, lengths)
    if failed:
        raise_failure()
    return norms


cdef tf_exact_side side_of(rows) except *:
    cdef tf_exact_side side
    given, operand, norms, _, exponents, lost, special, _ = rows
    cdef size_t m = len(given)
    memset(&side, 0, sizeof(side))
    side.given, side.operand = matrix_of_numbers(given), matrix_of_numbers(operand)
    side.norms = doubles_of(norms, (m,))
    if exponents is not None:
        side.exponents = <const int64_t *>items_of(exponents, (m,), _INT64)
    if lost is not None:
        side.lost = doubles_of(lost, (m,))
    if special is not None:
        side.special = <const uint8_t *>items_of(special, (m,), _BOOL)
    return side


def exact_elements(x, y, double error, pairs, out, int rounding):
    """Write products of pairs of rows, each rounded once.

    Parameters
    ----------
    x, y : Rows
        See tf32dtype/_exact/rows.py.
    error : float
        A bound of the errors of compensated dot products, relative to the norms.
    pairs : ndarray of int64, (count, 2)
        A row of `x` and a row of `y` for each result.
    out : ndarray of float32 or float64, (count,) or (m, n)
        The results, or a matrix of which they are elements.
    rounding : int
        A value of `enum tf_rounding`.

    Returns
    -------
    int
        The number of results that are exact sums.
    """
    cdef tf_exact_elements call
    cdef size_t count = len(pairs)
    cdef int failed
    memset(&call, 0, sizeof(call))
    call.x, call.y = side_of(x), side_of(y)
    if (call.x.given.k != call.y.given.k
            or (<object>out).shape not in ((count,), (call.x.given.m, call.y.given.m))):
        raise ValueError(f"out must have a result for each pair; got {(<object>out).shape}")
    call.error = error
    call.pairs = <const int64_t *>items_of(pairs, (count, 2), _INT64)
    call.count = count
    call.results = results_of(out, rounding)
    call.row = out.shape[1] if out.ndim == 2 else 0
    with nogil:
        failed = tf_exact_compute(&call)
    if failed:
        raise_failure()
    return call.sums


def exact_round(terms, row_bounds, column_bounds, row_ratios, column_ratios, exponents,
                int rounding, out, size_t most):
    """Round sums where their bounds decide.

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
    most : int
        How many undecided sums the caller can use.

    Returns
    -------
    ndarray of int64, (count, 2), or None
        The row and the column of each sum that the bounds do not decide. None if there
        are more than `most`.
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
        call.row_exponents = <const int64_t *>items_of(exponents[0], (m,), _INT64)
        call.first.column_exponents = <const int64_t *>items_of(exponents[1], (n,),
                                                                _INT64)
    call.rounding, call.is_float = results.rounding, results.is_float
    call.results = items_of(out, (m, n), out.dtype)
    pairs = np.empty((most, 2), _INT64)
    call.pairs, call.most = <int64_t *>items_of(pairs, (most, 2), _INT64), most
    if is_product:
        if (len(terms[0]), terms[1].shape[1]) != (m, n):
            raise ValueError(f"terms must be matrices whose product has shape ({m}, {n})")
        multiply_doubles(terms[0], terms[1], tf_exact_round_tile, &call)
    else:
        with nogil:
            failed = tf_exact_round(&call)
        if failed:
            raise_failure()
    return pairs[:call.left] if call.left <= most else None
