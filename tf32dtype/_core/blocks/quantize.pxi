# Blocks with a common scale: arrays to codes and back.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.blocks.blocks cimport *

block_elements = tuple((tf_elements[i].name.decode(), tf_elements[i].width)
                       for i in range(TF_ELEMENT_COUNT))
block_scales = tuple((tf_scales[i].name.decode(), tf_scales[i].mantissa_bits)
                     for i in range(TF_SCALE_COUNT))


cdef int fill_plan(tf_block_plan *plan, layout, int rule, float tensor_scale,
                   int rounding, bint poison) except -1:
    cdef tf_block_format fields
    fields.element, fields.residual, fields.scale, fields.block = layout
    fields.tensor_scale = tensor_scale
    # The loops support two elements of residuals.
    if not (0 <= fields.element < TF_ELEMENT_COUNT
            and (fields.residual == -1 or fields.element == TF_E4M3
                 and fields.residual in (TF_INT4, TF_E4M3))
            and 0 <= fields.scale < TF_SCALE_COUNT
            and fields.block in (16, 32, 64, 128)
            and 0 <= rule < TF_RULE_COUNT and 0 <= rounding < TF_ROUNDING_COUNT
            and 0 < tensor_scale < float("inf")):
        raise ValueError("layout, rule, tensor_scale and rounding must be those of a"
                         f" block format; got {layout}, {rule}, {tensor_scale} and"
                         f" {rounding}")
    if poison and tf_scales[fields.scale].kind != TF_SCALE_POWERS:
        raise ValueError("blocks are poisoned by the NaN of float8_e8m0fnu, which"
                         f" {tf_scales[fields.scale].name.decode()} does not have")
    tf_block_plan_fill(plan, fields, rule, rounding, poison)
    return 0


cdef tf_block_lines block_lines_of(cnp.ndarray lines) except *:
    """Check that lines are C-contiguous, and return their count and length."""
    cdef tf_block_lines shape
    if lines.ndim != 2 or not cnp.PyArray_ISCARRAY_RO(lines):
        raise ValueError(
            "lines must be contiguous and aligned, with 2 axes; got shape"
            f" {np.shape(lines)}")
    shape.count, shape.length = np.shape(lines)
    return shape


cdef cnp.ndarray floats_of(array):
    if array.dtype != np.float32:
        raise TypeError(f"lines must be float32; got {array.dtype}")
    return array


cdef const uint64_t *draws_of(draws, cnp.ndarray lines) except? NULL:
    if draws is None:
        return NULL
    if (draws.dtype != np.uint64 or draws.shape != np.shape(lines)
            or not draws.flags.c_contiguous):
        raise ValueError("draws must be uint64 and have the shape of the lines,"
                         f" {np.shape(lines)}; got {draws.dtype}, {draws.shape}")
    return <const uint64_t *>cnp.PyArray_BYTES(draws)


cdef list part_sizes(layout, npy_intp blocks):
    """Return the bytes of codes, of scales, and of residuals if there are any."""
    element, residual, _, block = layout
    sizes = [blocks * block * tf_elements[<int>element].width // 8, blocks]
    if residual >= 0:
        sizes[1] *= 2
        sizes.append(blocks * block * tf_elements[<int>residual].width // 8)
    return sizes


cdef tf_block_codes parts_of(cnp.ndarray codes, cnp.ndarray scales, residuals,
                             layout, npy_intp blocks) except *:
    """Return pointers to codes, scales and residuals, after checking their sizes."""
    cdef tf_block_codes parts
    given = [codes, scales] if residuals is None else [codes, scales, residuals]
    for part, size in zip(given, part_sizes(layout, blocks), strict=True):
        if part.dtype != np.uint8 or part.size != size or not part.flags.c_contiguous:
            raise ValueError("codes, scales and residuals must be contiguous bytes, here"
                             f" {size}; got {part.size} of {part.dtype}")
    parts.codes = <uint8_t *>cnp.PyArray_BYTES(codes)
    parts.scales = <uint8_t *>cnp.PyArray_BYTES(scales)
    parts.residuals = NULL
    if residuals is not None:
        parts.residuals = <uint8_t *>cnp.PyArray_BYTES(residuals)
    return parts


def block_plan(layout, int rule, float tensor_scale, int rounding, bint poison):
    """Return the bytes of a `struct tf_block_plan` (src/blocks/block_plan.h)."""
    cdef tf_block_plan plan
    memset(&plan, 0, sizeof(plan))
    fill_plan(&plan, layout, rule, tensor_scale, rounding, poison)
    return (<char *>&plan)[:sizeof(plan)]


def block_quantize(lines, layout, int rule, float tensor_scale, int rounding,
                   bint poison, draws=None, out=None):
    """Quantize lines of values to codes, scales and residuals.

    Parameters
    ----------
    lines : ndarray of float32, (count, length)
        C-contiguous lines. Each line is divided into blocks; a short last block is
        padded with zeros.
    layout : tuple of int
        Indices of element and residual (-1: none) in `block_elements`, index of the
        scale format in `block_scales`, and block size.
    rule : int
        Index of the rule: amax, floor, even, nf, mse, published.
    tensor_scale : float
        The tensor scale, a float32 value.
    rounding : int
        Rounding, as in src/formats/codec.h.
    poison : bool
        Whether an Inf or NaN makes its whole block NaN. Otherwise Inf becomes the
        largest value, and NaN stays NaN if the element has it.
    draws : ndarray of uint64, (count, length), optional
        Random numbers for stochastic rounding.
    out : tuple, optional
        Three arrays to write the results to, and to return.

    Returns
    -------
    codes, scales, residuals : ndarray of uint8
        Flat arrays of packed codes. The scales S and R of a block are next to each
        other. `residuals` may be None.
    """
    cdef tf_block_plan plan
    fill_plan(&plan, layout, rule, tensor_scale, rounding, poison)
    cdef cnp.ndarray array = floats_of(lines)
    cdef tf_block_lines shape = block_lines_of(array)
    cdef const uint64_t *random = draws_of(draws, array)
    element, residual, _, block = layout
    cdef npy_intp blocks = shape.count * (-(-shape.length // <npy_intp>block))
    if out is None:
        sizes = part_sizes(layout, blocks)
        out = [np.empty(size, np.uint8) for size in sizes] + [None] * (3 - len(sizes))
    codes, scales, residuals = out
    cdef tf_block_codes parts = parts_of(codes, scales, residuals, layout, blocks)
    cdef const float *x = <const float *>cnp.PyArray_BYTES(array)
    cdef int failed
    with nogil:
        failed = tf_blocks_quantize(&plan, x, shape, random, parts)
    if failed:
        raise_failure()
    return codes, scales, residuals


def block_round(lines, layout, int rule, float tensor_scale, int rounding,
                bint poison, draws, out):
    """Quantize lines, dequantize them again, and write the values to `out`."""
    cdef tf_block_plan plan
    fill_plan(&plan, layout, rule, tensor_scale, rounding, poison)
    cdef cnp.ndarray array = floats_of(lines), target = floats_of(out)
    cdef tf_block_lines shape = block_lines_of(array)
    cdef const uint64_t *random = draws_of(draws, array)
    block_lines_of(target)
    if np.shape(array) != np.shape(target) or not target.flags.writeable:
        raise ValueError(f"out must be writable and have shape {np.shape(array)}; got"
                         f" {np.shape(target)}")
    cdef const float *x = <const float *>cnp.PyArray_BYTES(array)
    cdef float *y = <float *>cnp.PyArray_BYTES(target)
    cdef int failed
    with nogil:
        failed = tf_blocks_round(&plan, x, shape, random, y)
    if failed:
        raise_failure()


def block_dequantize(codes, scales, residuals, layout, float tensor_scale,
                     npy_intp length, out, bint odd=False):
    """Write the values of lines of blocks to `out`, float32 or float64.

    float32 values are rounded once, to nearest. With `odd` they are rounded to odd, so
    that a later cast to fewer bits rounds as if from the exact value. float64 values
    are exact if float64 represents them.
    """
    cdef tf_block_plan plan
    fill_plan(&plan, layout, 0, tensor_scale, 0, False)
    cdef cnp.ndarray target = out
    cdef tf_block_lines shape = block_lines_of(target)
    cdef bint wide = out.dtype == np.float64
    if shape.length != length or not out.flags.writeable:
        raise ValueError(f"out has lines of {shape.length}, not {length}")
    if not wide:
        floats_of(out)
    cdef npy_intp blocks = shape.count * (-(-length // <npy_intp>plan.layout.block))
    cdef tf_block_codes parts = parts_of(codes, scales, residuals, layout, blocks)
    cdef char *y = cnp.PyArray_BYTES(target)
    cdef int failed
    with nogil:
        if wide:
            failed = tf_blocks_dequantize_double(&plan, parts, shape, <double *>y)
        else:
            failed = tf_blocks_dequantize(&plan, parts, shape, odd, <float *>y)
    if failed:
        raise_failure()


def block_bounds(lines, int block):
    """Return the range of float32 lines, from which the tensor scale is computed.

    Returns
    -------
    largest : float
        The largest finite magnitude; 0 if there is none.
    smallest : float
        The smallest of the blocks' largest finite magnitudes, except 0; Inf if there is
        none.
    special : int
        Flat index of the first value that is not finite; -1 if there is none.
    """
    cdef cnp.ndarray array = floats_of(lines)
    cdef tf_block_lines shape = block_lines_of(array)
    cdef const float *x = <const float *>cnp.PyArray_BYTES(array)
    cdef tf_block_bounds bounds
    if block < 1 or block > TF_BLOCK_MOST:
        raise ValueError(f"block must be from 1 to {TF_BLOCK_MOST}; got {block}")
    with nogil:
        bounds = tf_blocks_bounds(x, shape, block)
    return bounds.greatest, bounds.least, bounds.special
