# Tensor cores whose operands have a scale for each block of k: convert rows of
# tf32dtype/tensor_core/block_scaled.py to C.

from tf32dtype._core.tensor_core.tensor_core cimport *
from tf32dtype._core.blocks.blocks cimport *

cdef int fill_scaled(tf_scaled_model *fields, model) except -1:
    if not (1 <= model.group <= model.block_size <= model.depth <= 64
            and model.depth % model.block_size == 0
            and model.block_size % model.group == 0
            and (6 if model.group == 1 else 1) <= model.fraction
            and model.fraction <= (25 if model.group == 1 else 35)):
        raise ValueError(f"instruction of the model is not supported: {model}")
    fields.depth, fields.block = model.depth, model.block_size
    fields.group, fields.fraction = model.group, model.fraction
    fields.powers = model.scale == "float8_e8m0fnu"
    fields.least_a, fields.least_b = model.least_exponents
    fields.floor = TF_NO_EXPONENT if model.floor is None else model.floor
    fields.zero_c = (TF_NO_EXPONENT if model.zero_c_exponent is None else
                     model.zero_c_exponent)
    fields.zero_terms = ("never", "canceled", "always").index(model.zero_terms)
    fields.negative_zero = model.negative_zero
    return 0


cdef cnp.ndarray scales_of(array, model, npy_intp n, npy_intp k):
    """Check codes of scales, and return them as a C-contiguous array."""
    if array.dtype != np.uint8 or array.shape != (n, -(-k // model.block_size)):
        raise ValueError(f"a byte for each block is needed, not {array.dtype} of shape"
                         f" {array.shape}")
    return np.ascontiguousarray(array)


cdef tf_scaled_lines scaled_lines(cnp.ndarray x, cnp.ndarray scales, format):
    cdef tf_scaled_lines lines
    lines.codes = cnp.PyArray_BYTES(x)
    lines.line, lines.along = cnp.PyArray_STRIDE(x, 0), cnp.PyArray_STRIDE(x, 1)
    lines.scales = cnp.PyArray_BYTES(scales)
    lines.scale_line = cnp.PyArray_STRIDE(scales, 0)
    lines.scale_along = cnp.PyArray_STRIDE(scales, 1)
    lines.format = format
    return lines


def scaled_mma_matmul(model, a, scales_a, b, scales_b, out):
    """Add the product of codes to `out`, a C-contiguous float32 array (m, n).

    Rows of a, (m, k), are multiplied by rows of b, (n, k). Each block of k has one byte
    of `scales_a` and `scales_b`.
    """
    cdef tf_scaled_model fields
    cdef int failed
    fill_scaled(&fields, model)
    if (fields.depth, fields.group) not in ((32, 1), (64, 16)):
        raise ValueError(f"instruction of the model cannot multiply matrices: {model}")
    m, n = out.shape
    k = a.shape[1]
    if (a.dtype != np.uint8 or b.dtype != np.uint8 or a.shape != (m, k)
            or b.shape != (n, k) or out.dtype != np.float32
            or not out.flags.carray):
        raise ValueError("a, b and out must be uint8 (m, k), uint8 (n, k) and float32"
                         f" (m, n); got {a.dtype} {a.shape}, {b.dtype} {b.shape} and"
                         f" {out.dtype} {out.shape}")
    cdef cnp.ndarray s = scales_of(scales_a, model, m, k)
    cdef cnp.ndarray t = scales_of(scales_b, model, n, k)
    cdef cnp.ndarray target = out
    cdef tf_scaled_lines x = scaled_lines(a, s, names.index(model.a))
    cdef tf_scaled_lines y = scaled_lines(b, t, names.index(model.b))
    cdef npy_intp rows = m, columns = n, depth = k
    cdef float *c = <float *>cnp.PyArray_BYTES(target)
    with nogil:
        failed = tf_scaled_matmul(&fields, x, y, c, rows, columns, depth)
    if failed:
        raise_failure()


def promote_block(sums, block, scales_a, scales_b):
    """Compute sums = fma(scales_a * scales_b, block, sums) in place.

    The arrays are C-contiguous float32 arrays. `sums` and `block` have shape (m, n),
    `scales_a` has shape (m,), and `scales_b` has shape (n,).
    """
    arrays = sums, block, scales_a, scales_b
    if not all(x.dtype == np.float32 and x.flags.c_contiguous for x in arrays):
        raise TypeError("sums, block, scales_a and scales_b must be C-contiguous"
                        f" float32; got {', '.join(str(x.dtype) for x in arrays)}")
    if (sums.shape != (len(scales_a), len(scales_b)) or block.shape != sums.shape
            or not sums.flags.writeable):
        raise ValueError("sums and block must have shape"
                         f" {(len(scales_a), len(scales_b))}, and sums be writable; got"
                         f" {sums.shape} and {block.shape}")
    cdef npy_intp m = len(scales_a), n = len(scales_b)
    cdef float *to = <float *>cnp.PyArray_BYTES(sums)
    cdef const float *added = <const float *>cnp.PyArray_BYTES(block)
    cdef const float *s = <const float *>cnp.PyArray_BYTES(scales_a)
    cdef const float *t = <const float *>cnp.PyArray_BYTES(scales_b)
    with nogil:
        tf_promote_block(added, s, t, to, m, n)


def scale_values(str scale, str residual=""):
    """Return the float32 values of the 256 codes of a scale format.

    With `residual`, the name of an element, return their values as scales of residuals.
    """
    cdef cnp.ndarray out = np.empty(256, np.float32)
    if tf_scale_values(scale.encode(), residual.encode(),
                       <float *>cnp.PyArray_BYTES(out)):
        raise ValueError("scale must be a scale format, residual an element; got"
                         f" {scale!r} and {residual!r}")
    return out
