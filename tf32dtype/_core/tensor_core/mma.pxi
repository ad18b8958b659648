# Matrix units: convert rows of tf32dtype/tensor_core/models.py and rounded.py to C.

from tf32dtype._core.runtime cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.tensor_core.tensor_core cimport *

cdef int fill_model(tf_mma_model *fields, model) except -1:
    if not (1 <= model.depth <= 64 and 1 <= model.fraction <= 35
            and 1 <= model.kept <= 23
            and 1 <= model.instruction_depth // model.depth <= 64):
        raise ValueError(f"MMA group of the model is not supported: {model}")
    fields.depth, fields.fraction, fields.kept = model.depth, model.fraction, model.kept
    fields.instruction_depth = model.instruction_depth
    fields.half = model.accumulator == "float16"
    fields.emulated = model.emulated
    fields.least_a, fields.least_b = model.least_exponents
    fields.floor = TF_NO_EXPONENT if model.floor is None else model.floor
    fields.zero_c = (TF_NO_EXPONENT if model.zero_c_exponent is None else
                     model.zero_c_exponent)
    fields.zero_products = model.zero_products
    fields.negative_zero = model.negative_zero
    fields.cut_first = model.cut_first or 0
    return 0


cdef int fill_rounded(tf_rounded_model *fields, model) except -1:
    if not (1 <= model.depth <= TF_DEEPEST_ROUNDED
            and 0 <= model.lanes <= model.instruction_depth
            and model.instruction_depth % (model.depth * max(model.lanes, 1)
                                           if model.arithmetic == "fused"
                                           else model.depth) == 0
            and model.accumulator == "float32"
            and (model.depth == 1 or not model.odd_first)
            and (model.depth & (model.depth - 1) == 0
                 or model.arithmetic != "stepwise")
            and (model.lanes >= 1 or model.arithmetic != "two stages")
            and not (model.flushes_results and model.arithmetic == "two stages")
            and (model.rounding == "ties_to_even" or model.flushes_results)):
        raise ValueError(f"group of the model is not supported: {model}")
    fields.arithmetic = {"fused": TF_FUSED, "stepwise": TF_STEPWISE,
                         "two stages": TF_TWO_STAGES}[model.arithmetic]
    fields.depth, fields.instruction_depth = model.depth, model.instruction_depth
    fields.lanes, fields.odd_first = model.lanes, model.odd_first
    fields.start = np.float32(model.start).view(np.uint32)
    fields.to_odd = model.rounding == "to_odd"
    fields.flush_operands = {
        "kept": TF_KEEP_SUBNORMAL, "+0": TF_FLUSH_TO_PLUS_ZERO,
        "zero of their sign": TF_FLUSH_TO_SIGNED_ZERO}[model.flushed]
    fields.flush_results = model.flushes_results
    fields.least_a, fields.least_b = model.least_exponents
    return 0


cdef int fill_device(tf_device *fields, model, int promote, bint scales_inside,
                     bint continues, bint silent, str format) except -1:
    fields.precision.path = &tf_mma_path
    fields.precision.promote = promote
    fields.precision.continues = continues
    fields.precision.silent = silent
    if hasattr(model, "arithmetic"):
        fill_rounded(&fields.rounded, model)
        if 64 % model.instruction_depth or promote < 0:
            raise ValueError(f"group of the model cannot multiply matrices: {model}")
        return 0
    fill_model(&fields.model, model)
    # The loops support only these models. They take 64 k at a time.
    single = model.accumulator == "float32"
    if (64 % (2 * model.depth if model.emulated else model.depth)
            or 64 % model.instruction_depth or model.instruction_depth % model.depth
            or model.fraction > (25 if model.kept == 23 or not single else 20)
            # The loops do not handle a higher floor by themselves. The exponent of zero
            # acts as a floor, because no value has a lower exponent.
            or max(fields.model.floor, fields.model.zero_c)
            > (-110 if single else -14)
            or promote < 0):
        raise ValueError(f"MMA group of the model cannot multiply matrices: {model}")
    # Exponent of the ratio of successive components of a split: minus their precision.
    fields.scales_inside = (0 if not scales_inside else
                            -8 if format == "bfloat16" else -11)
    return 0


cdef cnp.ndarray words_of(array, int ndim, str format=""):
    """Return a C-contiguous array of 32-bit words; for tf32, clear the unused bits."""
    if array.dtype != np.uint32 or array.ndim != ndim:
        raise TypeError(f"{ndim} axes of uint32 are needed, not {array.ndim} of"
                        f" {array.dtype}")
    return np.ascontiguousarray(array & np.uint32(0xFFFFE000) if format == "tf32" else
                                array)


def mma_accumulate(model, a, b, c):
    """Return the dot products of rows of a and b, plus c, as the model computes them.

    The chains are those of src/tensor_core/mma_model.h or rounded_model.h.

    Parameters
    ----------
    model : Model
        The model of MMA groups, with any values of its parameters.
    a, b : ndarray of uint32, (n, k)
        Bits of float32 values that the model's formats represent; for tf32, of any
        float32 values.
    c : ndarray of uint32, (n,)
        Bits of the accumulators, as float32 values even if they are float16.

    Returns
    -------
    ndarray of uint32, (n,)
        Bits of the resulting accumulators.
    """
    cdef tf_device fields
    cdef bint rounded = fill_any(&fields, model)
    cdef cnp.ndarray x = words_of(a, 2, model.a), y = words_of(b, 2, model.b)
    cdef cnp.ndarray z = words_of(c, 1)
    if np.shape(x) != np.shape(y) or len(x) != len(z):
        raise ValueError("a, b and c must have shapes (n, k), (n, k) and (n,); got"
                         f" {a.shape}, {b.shape} and {c.shape}")
    cdef cnp.ndarray out = np.empty(len(z), np.uint32)
    cdef npy_intp n = len(z), k = np.shape(x)[1], i
    cdef tf_watch watch
    memset(&watch, 0, sizeof(watch))
    cdef const uint32_t *p = <const uint32_t *>cnp.PyArray_BYTES(x)
    cdef const uint32_t *q = <const uint32_t *>cnp.PyArray_BYTES(y)
    cdef const uint32_t *r = <const uint32_t *>cnp.PyArray_BYTES(z)
    cdef uint32_t *d = <uint32_t *>cnp.PyArray_BYTES(out)
    with nogil:
        for i in range(n):
            if tf_is_stopped(&watch, True):
                break
            d[i] = accumulate(&fields, rounded, p + i * k, q + i * k, k, r[i], NULL)
    if tf_is_stopped(&watch, False):
        raise_failure()
    return out


cdef int fill_any(tf_device *fields, model) except -1:
    """Return whether `fields.rounded` is the model; `fields.model` is it otherwise."""
    if hasattr(model, "arithmetic"):
        fill_rounded(&fields.rounded, model)
        return 1
    return fill_model(&fields.model, model)


cdef uint32_t accumulate(const tf_device *fields, bint rounded, const uint32_t *a,
                         const uint32_t *b, npy_intp k, uint32_t c,
                         tf_mma_trace *trace) noexcept nogil:
    if rounded:
        return tf_rounded_accumulate(&fields.rounded, a, 1, b, 1, k, c, trace)
    return tf_mma_accumulate(&fields.model, a, 1, b, 1, k, c, trace)


#: Names of the values of `what` in `struct tf_told`, in the order of its enum.
TOLD = "k", "term", "sum", "rounded", "group", "addition", "brought"


def mma_trace(model, a, b, c, npy_intp every):
    """Record the steps in which `mma_accumulate` computes one element.

    Parameters
    ----------
    model : Model
        The model of MMA groups, with any values of its parameters.
    a, b : ndarray of uint32, (k,)
        Bits of float32 values, as for `mma_accumulate`.
    c : int
        Bits of the accumulator.
    every : int
        Number of k that are summed from 0 before they are added to the float32
        accumulator. With 0, all k are one chain that begins with the accumulator.

    Returns
    -------
    list of tuple
        The rows of `struct tf_told`. The first member is one of `TOLD`.
    """
    cdef tf_device fields
    cdef bint rounded = fill_any(&fields, model)
    cdef cnp.ndarray x = words_of(a, 1, model.a), y = words_of(b, 1, model.b), rows
    if len(x) != len(y) or every < 0:
        raise ValueError("a and b must have the same length, and every be 0 or more; got"
                         f" {a.shape}, {b.shape} and {every}")
    cdef const uint32_t *p = <const uint32_t *>cnp.PyArray_BYTES(x)
    cdef const uint32_t *q = <const uint32_t *>cnp.PyArray_BYTES(y)
    cdef npy_intp k = len(x), first
    cdef uint32_t start = c, total, sum
    cdef tf_mma_trace trace
    trace.count = 0
    for counted in (False, True):
        rows = np.empty((trace.count if counted else 0, 7), np.int64)
        trace.rows = <tf_told *>cnp.PyArray_BYTES(rows)
        trace.room, trace.count, trace.first = len(rows), 0, 0
        if every == 0:
            accumulate(&fields, rounded, p, q, k, start, &trace)
            continue
        total = start
        for first in range(0, k, every):
            trace.first = first
            sum = accumulate(&fields, rounded, p + first, q + first,
                             min(every, k - first), 0, &trace)
            total = tf_mma_add_sum(sum, total, 0, True, &trace)
    return [(TOLD[row[0]], *row[1:]) for row in rows.tolist()]


cdef tf_matrix matrix_of(cnp.ndarray x, kind):
    """Describe an array as a stack of matrices, by its last three axes."""
    cdef tf_matrix m
    cdef int ndim = cnp.PyArray_NDIM(x)
    m.data = cnp.PyArray_BYTES(x)
    m.strides[0] = cnp.PyArray_STRIDE(x, ndim - 2)
    m.strides[1] = cnp.PyArray_STRIDE(x, ndim - 1)
    m.step = cnp.PyArray_STRIDE(x, ndim - 3)
    m.kind = kind
    return m


def mma_matmul(MatmulSpec precision, a, b, out):
    """Add a @ b to `out`: (..., l, m, k), (..., l, k, n) and (..., l, m, n)."""
    add_products(&precision.fields.precision, 0, a, b, out)


def fma_matmul(model, a, b, out):
    """Add a @ b to `out` in float64, by a chain of fused multiply-adds.

    Shapes are those of `mma_matmul`."""
    if not (model.accumulator == "float64" and model.arithmetic == "fused"
            and model.depth == 1 and model.lanes == 0
            and model.rounding == "ties_to_even" and model.flushed == "kept"
            and not model.flushes_results and model.instruction_depth >= 1):
        raise ValueError("model must be a chain of float64 fused multiply-adds; got"
                         f" {model}")
    for array in (a, b, out):
        if array.dtype != np.float64:
            raise TypeError(f"a, b and out must be float64; got {array.dtype}")
    add_products(NULL, model.instruction_depth, a, b, out)


cdef int add_products(const tf_precision *precision, npy_intp instruction_depth, a, b,
                      out) except -1:
    """Add a @ b to `out` in a precision.

    If `precision` is NULL, compute float64 chains with instructions of the given depth.
    """
    cdef npy_intp count, m, n, k
    cdef int failed
    cdef tf_matrix x, y, z
    kinds = [real_kind(array) for array in (a, b, out)]
    if not (a.ndim == b.ndim == out.ndim >= 3) or not out.flags.writeable:
        raise ValueError("a, b and out must have as many axes, 3 or more, and out be"
                         f" writable; got {a.shape}, {b.shape} and {out.shape}")
    count, m, n = out.shape[-3:]
    k = a.shape[-1]
    if (a.shape != (*out.shape[:-1], k)
            or b.shape != (*out.shape[:-2], k, n)):
        raise ValueError("a, b and out must have shapes (..., m, k), (..., k, n) and"
                         f" (..., m, n); got {a.shape}, {b.shape} and {out.shape}")
    for index in np.ndindex(out.shape[:-3]):
        x = matrix_of(a[index], kinds[0])
        y = matrix_of(b[index], kinds[1])
        z = matrix_of(out[index], kinds[2])
        with nogil:
            if precision == NULL:
                failed = tf_fma_matmul(x, y, z, m, n, k, count, instruction_depth)
            else:
                failed = tf_matmul(precision, x, y, z, m, n, k, count)
        if failed:
            raise_failure()
    return 0
