# Products of block arrays.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.blocks.blocks cimport *

cdef int check_packed(cnp.ndarray x, npy_intp inside, str what) except -1:
    """Check for bytes whose last `inside` axes, those of a line, have no gaps."""
    cdef npy_intp size = 1, axis
    cdef int ndim = cnp.PyArray_NDIM(x)
    if cnp.PyArray_TYPE(x) != cnp.NPY_UINT8 or ndim < inside + 2:
        raise ValueError(f"{what} must be uint8 with {inside + 2} axes or more; got"
                         f" {x.dtype} with {ndim}")
    for axis in range(ndim - 1, ndim - 1 - inside, -1):
        if cnp.PyArray_DIM(x, axis) > 1 and cnp.PyArray_STRIDE(x, axis) != size:
            raise ValueError(f"{what} of a line must be contiguous; got strides"
                             f" {(<object>x).strides}")
        size *= cnp.PyArray_DIM(x, axis)
    return 0


cdef int check_size(size_t found, size_t needed, str what) except -1:
    if found != needed:
        raise ValueError(f"number of {what} must be {needed}; got {found}")
    return 0


cdef int fill_level(tf_block_level *level, cnp.ndarray codes, int element,
                    npy_intp blocks, npy_intp block) except -1:
    cdef int ndim = cnp.PyArray_NDIM(codes)
    if not 0 <= element < TF_ELEMENT_COUNT:
        raise ValueError(f"element must be from 0 to {TF_ELEMENT_COUNT - 1}; got"
                         f" {element}")
    check_packed(codes, 2, "codes")
    check_size(cnp.PyArray_DIM(codes, ndim - 2), blocks, "blocks")
    check_size(cnp.PyArray_DIM(codes, ndim - 1), block * tf_elements[element].width // 8,
               "bytes of a block")
    level.codes = <const uint8_t *>cnp.PyArray_BYTES(codes)
    level.line = cnp.PyArray_STRIDE(codes, ndim - 3)
    level.step = cnp.PyArray_STRIDE(codes, ndim - 4)
    level.element = element
    return 0


cdef int fill_factor(tf_block_operand *x, operand, tuple lines, npy_intp k,
                     npy_intp block) except -1:
    """Fill in an operand as `block_matmul` describes it.

    `lines` is the shape of the operand without k."""
    cdef cnp.ndarray numbers, scales
    cdef int ndim, element, residual
    cdef npy_intp blocks = (k + block - 1) // block
    memset(x, 0, sizeof(x[0]))
    if isinstance(operand, np.ndarray):
        numbers = operand
        ndim = cnp.PyArray_NDIM(numbers)
        x.kind = real_kind(numbers)
        if x.kind > TF_FLOAT32 or operand.shape != (*lines, k):
            raise ValueError(f"operand must be float32 or narrower, of shape"
                             f" {(*lines, k)}; got {operand.dtype}, {operand.shape}")
        x.numbers = cnp.PyArray_BYTES(numbers)
        x.stride = cnp.PyArray_STRIDE(numbers, ndim - 2)
        x.along = cnp.PyArray_STRIDE(numbers, ndim - 1)
        x.step = cnp.PyArray_STRIDE(numbers, ndim - 3)
        return 0
    codes, scales, residuals, element, residual, x.scale, x.tensor_scale = operand
    if not 0 <= x.scale < TF_SCALE_COUNT:
        raise ValueError(f"scale must be from 0 to {TF_SCALE_COUNT - 1}; got {x.scale}")
    x.levels = 1 if residuals is None else 2
    if codes.shape[:-2] != lines or (x.levels == 2 and residuals.shape[:-2] != lines):
        raise ValueError(f"codes must have a shape that begins with {lines}; got"
                         f" {codes.shape}")
    grid = (*lines, blocks, 2) if x.levels == 2 else (*lines, blocks)
    if np.shape(scales) != grid:
        raise ValueError(f"scales must have shape {grid}; got {np.shape(scales)}")
    fill_level(&x.level[0], codes, element, blocks, block)
    if x.levels == 2:
        fill_level(&x.level[1], residuals, residual, blocks, block)
    ndim = cnp.PyArray_NDIM(scales)
    check_packed(scales, x.levels, "scales")
    x.scales = <const uint8_t *>cnp.PyArray_BYTES(scales)
    x.scales_line = cnp.PyArray_STRIDE(scales, ndim - 1 - x.levels)
    x.scales_step = cnp.PyArray_STRIDE(scales, ndim - 2 - x.levels)
    return 0


cdef object part_of(operand, tuple index):
    """Return the operand of one stack of matrices out of several."""
    if isinstance(operand, np.ndarray):
        return operand[index]
    codes, scales, residuals, *rest = operand
    return (codes[index], scales[index],
            None if residuals is None else residuals[index], *rest)


def block_matmul(a, b, out, npy_intp k, npy_intp block, int terms):
    """Write the product of arrays of blocks to `out`, and return floating-point flags.

    Parameters
    ----------
    a, b : tuple or ndarray
        Lines along k: rows of the first operand, (..., l, m), and columns of the
        second, (..., l, n). An operand without blocks is an array of this shape with an
        additional last axis of length k. An operand with blocks is a tuple of packed
        codes (..., blocks, bytes), codes of scales (..., blocks) or (..., blocks, 2),
        packed codes of residuals or None, the indices of the element, the residual and
        the scale format, and the tensor scale.
    out : ndarray, (..., l, m, n)
        Array to write to.
    k, block : int
        Number of values of a line, and of a block.
    terms : int
        Number of terms per block, in the order of src/blocks/block_matmul.h.
    """
    cdef tf_block_operand x, y
    cdef tf_matrix z
    cdef npy_intp m, n, count
    cdef unsigned flags = 0
    cdef int failed, kind = real_kind(out)
    if (out.ndim < 3 or not out.flags.writeable or k < 0
            or block not in (16, 32, 64, 128)):
        raise ValueError("out must be writable with 3 axes or more, k from 0 and block"
                         f" 16, 32, 64 or 128; got shape {out.shape}, {k} and {block}")
    count, m, n = out.shape[-3:]
    for index in np.ndindex(out.shape[:-3]):
        fill_factor(&x, part_of(a, index), (count, m), k, block)
        fill_factor(&y, part_of(b, index), (count, n), k, block)
        z = matrix_of(out[index], kind)
        with nogil:
            failed = tf_block_matmul(&x, &y, z, m, n, k, count, block, terms, &flags)
        if failed:
            raise_failure()
    return flags
