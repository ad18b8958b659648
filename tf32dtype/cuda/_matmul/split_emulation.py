"""Multiply float32 on tensor cores, with operands rounded or split into components.

The components of an operand are called parts in the code. :doc:`/reference/precision`
describes the precisions and their rounding, scales, Inf and NaN. No floating-point
errors are reported.

cuBLAS computes the sums in an order of its own. Tensor cores truncate what they add,
and products of the largest parts contribute most. For these products, the kernel of
`native` adds the results of short chains with rounding to nearest. On Hopper, one
launch of the kernel of `wgmma` computes all products.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, Unpack

import cupy
import numpy as np

from ..._formats.quantize import ROUNDINGS
from ..._matmul.precisions import (
    Precision,
    RoundingOptions,
    Settings,
    find_precision,
    rounding_of,
)
from ..._matmul.precisions import check as check_options
from .._arrays.ndarray import allocate, lying
from .._runtime import cublas
from .._runtime.backend import (
    KEPT,
    Backend,
    Constant,
    Kernel,
    View,
    Words,
    check_aligned,
    current,
    int32,
    int64,
)
from .._runtime.tensor_maps import TensorMapError
from . import crossover as strategies
from . import native, wgmma
from .stacks import stack_of_one

#: Rows of operands of cuBLAS begin at multiples of so many elements.
ALIGNED = 8
BLOCK = 32, 8  # src/cuda/matmul/operands.h
TILE = 32, 64  # lines and k of a block
#: Bytes of a float32; alignment of arrays that share an allocation.
ITEM, BEGINS = 4, 256
#: Threads and results per block of patch_specials.cu.
PATCH_THREADS, PATCHED = 256, 1024

PATCH = Kernel("cuda/matmul/patch_specials.cu", "patch")


class Chunks(NamedTuple):
    """The numbers of k that a tensor core sums, with truncation, in products of parts.

    Sums of chunks are added in float32, with rounding to nearest.
    """

    #: k of a chunk of the largest parts: `native.Sums.promote`
    leading: int
    #: k of a chunk of the other parts, whose sums are 2^8 or 2^11 times smaller; all
    #: parts are counted
    others: int
    #: k of the largest parts whose chunks have a separate sum: `native.Sums.stretch`.
    #: One sum of all chunks would have visible rounding errors if terms have one sign
    stretch: int


#: The longest chunks that keep the accuracy of NumPy's float32 product, by the format
#: of the parts. benchmarks/results/gpu_ksplit.json has the measurements, made with the
#: models in tf32dtype.tensor_core. Sums of terms of one sign, and of terms in many
#: binades, set the limit: an MMA group truncates terms that are small compared with its
#: largest.
_AMPERE = {"bfloat16": 8, "tf32": 8}
_HOPPER = {"bfloat16": 16, "tf32": 8}
LEADING = {
    "sm_80": _AMPERE,
    "sm_86": _AMPERE,
    "sm_89": _AMPERE,
    "sm_90": _HOPPER,
    "sm_100": _HOPPER,
    "sm_120": _HOPPER,
}
OTHERS = 16384
#: For sums this short, roundings of float32 additions lose less than truncations of MMA
#: groups.
SHORT, SHORTEST = 128, 8
#: For sums this long, MMA groups of bfloat16 lose less than additions.
LONG, LONGEST = 4096, 16
#: k of a stretch by wgmma. Each addition has 16 or 8 of them. After a stretch, results
#: are read and written. For two parts of bfloat16, longer stretches are as accurate.
STRETCH = 1024
LONGER = {"bf16x3": 2048}


@lru_cache(maxsize=KEPT)
def chunks_for(architecture: str, precision: str, k: int) -> Chunks:
    """Return the lengths into which `product` divides sums of k terms.

    An unknown device uses those of Ampere, whose tensor cores truncate the most.
    """
    table = LEADING.get(architecture.rstrip("a"), _AMPERE)
    format = find_precision(precision).format
    leading = SHORTEST if k <= SHORT else table[format]
    if k >= LONG and format == "bfloat16":
        leading = LONGEST
    # A stretch has about as many chunks as there are stretches, or more. It has 32 at
    # least, because the results are read and written after each stretch.
    stretch = 1 << math.isqrt(max(k - 1, 0) * leading).bit_length()
    return Chunks(leading, OTHERS, max(stretch, 32 * leading))


def choose_precision(
    precision: str | None, strategy: strategies.Strategy, m: int, n: int, k: int
) -> str:
    """Choose the precision in which to multiply (m, k) by (k, n).

    Parameters
    ----------
    precision : str or None
        A long or short name of `matmul_precision`; None means "f32".
    strategy : {"performant", "eager"}
        When to use "tf32x3", "bf16x3", "bf16x6" and "bf16x9", which emulate float32.
        "eager" always uses them. "performant" uses them if they are known to be faster
        on this device (see `crossover.emulates`), otherwise "f32". Other precisions are
        never replaced.

    Returns
    -------
    str
        The short name of the precision.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    row = find_precision("f32" if precision is None else precision)
    if strategies.emulates(row.short, strategy, m, n, k) or row.components == 1:
        return row.short
    return "f32"


def product(
    a: Any,
    b: Any,
    out: Any,
    precision: str,
    *,
    chunks: Chunks | None = None,
    **options: Unpack[RoundingOptions],
) -> None:
    """Multiply stacks of float32 matrices in a precision.

    Parameters
    ----------
    a, b : cupy.ndarray
        float32 arrays of shapes (s, m, k) and (s, k, n), or without s, with any
        strides.
    out : cupy.ndarray
        C-contiguous float32 array of shape (s, m, n) or (m, n) to write to. It must not
        overlap the operands.
    precision : str
        A long or short name of `matmul_precision`.
    chunks : Chunks, optional
        How cuBLAS and mma.sync divide sums of parts. By default wgmma computes the sums
        if the device has it and it suits the shape, otherwise `chunks_for` chooses.
    **options
        `rounding`, `scale` and `special_values`, as in `matmul_precision`.

    Raises
    ------
    ValueError
        If the precision is unknown, or if it does not have an option.

    Notes
    -----
    If operands are only rounded, Inf and NaN need no special treatment, and a NaN has
    the bits of the device. If operands are split, an element of the result is that of
    "f32", with the bits of the CPU, in two cases: its row or column has an Inf or a
    NaN, or its sum overflows.
    """
    settings = Settings(precision, **options)
    check_options(*settings)
    row = find_precision(precision)
    machine = current()
    if out.size == 0:
        return
    check_aligned((a, b, out))  # launches cannot check, as they get no arrays
    if a.shape[-1] == 0:
        machine.call("ndarray.fill", out, 0)
        return
    out = View.of(out)
    if row.format == "float32":
        stacks = (x if x.ndim == 3 else stack_of_one(x) for x in (a, b))
        x, y = (cublas.arranged(operand) for operand in stacks)
        machine.gemm(x, y, out, "float32")
    elif row.components == 1:
        own = None if not row.short.startswith("fp8") else settings.scale == "row"
        x, y = View.of(a), View.of(b)
        rounding = ROUNDINGS.index(rounding_of(settings, row))
        _narrow_product(machine, x, y, out, row, rounding, own)
    else:
        saturates = settings.special_values == "saturate"
        _split_product(machine, View.of(a), View.of(b), out, row, saturates, chunks)


# -- products of parts -----------------------------------------------------------------


#: The dtype that stores the parts of a format, and their significant bits.
STORED: dict[str, tuple[np.dtype[Any], int]] = {
    "bfloat16": (np.dtype(np.uint16), 8),
    "tf32": (np.dtype(np.float32), 11),
}

#: The shape and strides of lines.
_Lines = tuple[tuple[int, ...], tuple[int, ...]]


def between(format: str) -> float:
    """Return the weight of a split order relative to the order before it."""
    return float(2.0 ** -STORED[format][1])


class Step(NamedTuple):
    """A product of consecutive k in the lines of A and B; parts of B are reversed."""

    in_a: int  #: first k in a line of A
    in_b: int  #: first k in a line of B
    depth: int  #: number of k
    #: factor of the previous sum, to which the product is added
    beta: float
    #: whether this is the product of the largest parts
    leading: bool


@lru_cache(maxsize=KEPT)
def steps(precision: Precision, depth: int, chunk: int) -> tuple[Step, ...]:
    """List all products of parts in the order in which they are added.

    Parts have `depth` k, and products at most `chunk`. The product of the largest parts
    is last, and has all k.

    The product of parts i of A and j of B has the split order i + j and the weight
    2^(-p (i + j)). Products with the smallest weight are first.
    """
    counts = between(precision.format)
    found = []
    for order in range(precision.split_orders - 1, -1, -1):
        least = max(0, order - precision.components + 1)
        greatest = order - least
        in_a, in_b = least * depth, (precision.components - 1 - greatest) * depth
        length = (greatest - least + 1) * depth
        most = chunk if order else length
        for first in range(0, length, most):
            beta = (
                1.0 if first else counts if order < precision.split_orders - 1 else 0.0
            )
            last = min(first + most, length)
            found.append(
                Step(in_a + first, in_b + first, last - first, beta, not order)
            )
    return tuple(found)


@lru_cache(maxsize=KEPT)
def split_kernel(format: str, parts: int) -> Kernel:
    """Return the kernel that splits both operands."""
    options = f"-DPARTS={parts}", f"-DPART_BITS={STORED[format][1]}"
    return Kernel("cuda/matmul/split_operands.cu", "split", options)


class _KRange(NamedTuple):
    """A range of k in all lines."""

    first: int  #: offset in bytes from the start of the first line
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(maxsize=KEPT)
def _k_ranges(
    precision: Precision, depth: int, chunk: int, count: int, a: _Lines, b: _Lines
) -> tuple[tuple[Step, _KRange, _KRange], ...]:
    """Return all steps with their ranges of k in the lines, for `count` matrices."""
    found = []
    for step in steps(precision, depth, chunk):
        x = _k_range(a, count, step.in_a, step.depth)
        y = _k_range(b, count, step.in_b, step.depth)
        (s, n, k), (stack, of_line, of_k) = y.shape, y.strides
        y = _KRange(y.first, (s, k, n), (stack, of_k, of_line))
        found.append((step, x, y))
    return tuple(found)


def _k_range(lines: _Lines, count: int, first: int, depth: int) -> _KRange:
    (distinct, rows, _), (stack, of_line, of_k) = lines
    steps = stack if distinct > 1 else 0, of_line, of_k
    return _KRange(first * of_k, (count, rows, depth), steps)


def _split_product(
    machine: Backend,
    a: View,
    b: View,
    out: Any,
    precision: Precision,
    saturates: bool,
    chunks: Chunks | None,
) -> None:
    plan, depth, count = None, _aligned(a.shape[-1], ALIGNED), 1
    if chunks is None and wgmma.ENABLED and wgmma.is_here():
        plan = plan_of_parts(precision, out.shape, a.shape[-1])
    if plan is not None:
        parts, count, depth = plan
    lines = split(machine, a, b.swapaxes(1, 2), precision, depth, saturates)
    pieces = None
    if plan is not None:
        try:
            pieces = _by_wgmma(lines, out, precision.format, parts, count)
        except TensorMapError:
            plan = None
    if plan is None:
        if chunks is None:
            arch = machine.architecture()
            chunks = chunks_for(arch, precision.short, a.shape[-1])
        _by_cublas(machine, lines, out, precision, depth, chunks)
    grid, numbers = _patching(out.shape, a.shape[-1], count, saturates)
    machine.launch(
        PATCH, grid, (PATCH_THREADS,), _matrices(a), _matrices(b), out, pieces, *numbers
    )


@lru_cache(maxsize=KEPT)
def _patching(
    shape: tuple[int, ...], k: int, count: int, saturates: bool
) -> tuple[tuple[int], tuple[Constant, ...]]:
    """Return the grid of a launch of patch_specials.cu, and its integer arguments."""
    sizes = map(int64, (*shape, k))
    grid = (-(-math.prod(shape) // PATCHED),)
    return grid, (int32(count), *sizes, int32(saturates))


def split(
    machine: Backend,
    a: View,
    b: View,
    precision: Precision,
    depth: int,
    saturates: bool,
) -> tuple[View, View]:
    """Split both operands into parts of `depth` k, an even number.

    The results are lines (s, lines, parts * depth). The largest part is first in the
    lines of a, and last in those of b.

    Parameters
    ----------
    a, b : View
        float32 (s, lines, k) with any strides. A stack that repeats one matrix, with
        stride 0, becomes a stack of one.
    """
    plan = _splitting(precision, depth, (a.shape, a.strides), (b.shape, b.strides))
    memory = cupy.cuda.alloc(plan.size)
    dtype = STORED[precision.format][0]
    of_a, of_b = plan.lines
    first, second = View(dtype, memory, *of_a), View(dtype, memory + plan.second, *of_b)
    machine.launch(
        plan.kernel, plan.grid, BLOCK, _strided(a), _strided(b), first, second,
        plan.depth, int32(saturates),
    )  # fmt: skip
    return first, second


class _Split(NamedTuple):
    """A launch of split_operands.cu, without the addresses of operands."""

    kernel: Kernel
    grid: tuple[int]
    lines: tuple[_Lines, _Lines]
    second: int  #: bytes from the first operand's lines to the second's
    size: int  #: bytes of both
    depth: Constant


@lru_cache(maxsize=KEPT)
def _splitting(precision: Precision, depth: int, a: _Lines, b: _Lines) -> _Split:
    itemsize = STORED[precision.format][0].itemsize
    lines, sizes = [], []
    for shape, strides in (a, b):
        made = _distinct(shape, strides), shape[1], precision.components * depth
        lines.append((made, lying(made, itemsize)))
        sizes.append(_aligned(math.prod(made) * itemsize, BEGINS))
    return _Split(
        split_kernel(precision.format, precision.components),
        _grid(depth, a, b),
        (lines[0], lines[1]),
        sizes[0],
        sum(sizes),
        int64(depth),
    )


@lru_cache(maxsize=KEPT)
def plan_of_parts(
    precision: Precision, shape: tuple[int, int, int], k: int
) -> tuple[wgmma.Parts, int, int] | None:
    """Plan how wgmma sums products of parts; return None if cuBLAS does.

    The plan has the parts, the number of pieces, and k rounded up to whole slices.
    """
    kind = precision.format
    size = STORED[kind][0].itemsize
    in_slice = wgmma.SLICE // size
    stretch = LONGER.get(precision.short, STRETCH) // in_slice
    parts = wgmma.Parts(
        precision.components, precision.split_orders, between(kind), stretch
    )
    slices = -(-k // in_slice)
    if not wgmma.suits(shape, slices, parts, size):
        return None
    return parts, wgmma.choose_pieces(shape, slices, parts), slices * in_slice


def _by_wgmma(
    lines: tuple[View, View], out: View, format: str, parts: wgmma.Parts, count: int
) -> View | None:
    """Compute all products of parts in one launch.

    Return the sums of pieces of k, or None if there is one piece.
    """
    to = out
    if count > 1:
        s, m, n = out.shape
        shape = count * s, m, n
        memory = cupy.cuda.alloc(math.prod(shape) * out.itemsize)
        to = View(out.dtype, memory, shape, lying(shape, out.itemsize))
    wgmma.multiply_parts(*lines, to, format, parts, count)
    return to if count > 1 else None


def _by_cublas(
    machine: Backend,
    lines: tuple[View, View],
    out: Any,
    precision: Precision,
    depth: int,
    chunks: Chunks,
) -> None:
    """Compute the products of the largest parts by `native`, all others by cuBLAS."""
    kind = precision.format
    in_a, in_b = (made.data for made in lines)
    layouts = [(made.shape, made.strides) for made in lines]
    for step, of_a, of_b in _k_ranges(
        precision, depth, chunks.others, out.shape[0], *layouts
    ):
        x = View(lines[0].dtype, in_a + of_a.first, of_a.shape, of_a.strides)
        y = View(lines[1].dtype, in_b + of_b.first, of_b.shape, of_b.strides)
        if step.leading:
            sums = native.Sums(chunks.leading, chunks.stretch, step.beta)
            native.multiply(x, y, out, (kind, kind), sums=sums)
        else:
            machine.gemm(x, y, out, kind, 1.0, step.beta)


# -- products of rounded operands ------------------------------------------------------

#: The format in which tensor cores multiply rounded operands. FP8 values are multiplied
#: as float16, which represents all of them and which every GPU supports.
_STORED = {"tf32": "tf32", "bfloat16": "bfloat16"}
_ITEMS = {"tf32": np.float32, "bfloat16": np.uint16, "float16": np.uint16}


def narrow_options(format: str) -> tuple[str, ...]:
    """Return the compilation options of src/cuda/matmul/round_operands.cu."""
    stored = _STORED.get(format, "float16")
    bits = 8 * np.dtype(_ITEMS[stored]).itemsize
    return f"-DFORMAT=tf_{format}", f"-DSTORED=tf_{stored}", f"-DSTORED_BITS={bits}"


class _Narrow(NamedTuple):
    """Launches of round_operands.cu for an operand, without its address."""

    kernels: tuple[Kernel, ...]  #: kernels for the maxima, the scales and the rounding
    grid: tuple[int]
    depth: Constant
    made: tuple[np.dtype[Any], _Lines]  #: dtype and layout of lines of rounded values
    stack: _Lines  #: layout of these lines as a stack with all matrices of the product
    scales: int  #: number of scales, if there are scales


@lru_cache(maxsize=KEPT)
def _narrowing(
    format: str, depth: int, own: bool, count: int, lines: _Lines
) -> _Narrow:
    """Plan the rounding of an operand; `own` means one scale per line."""
    options = narrow_options(format)
    item = np.dtype(_ITEMS[_STORED.get(format, "float16")])
    shape, strides = lines
    distinct, rows = _distinct(shape, strides), shape[1]
    padded = distinct, rows, depth
    made = padded, lying(padded, item.itemsize)
    _, *stack = _k_range(made, count, 0, depth)
    return _Narrow(
        tuple(
            Kernel("cuda/matmul/round_operands.cu", name, options)
            for name in ("greatest", "scales", "narrow")
        ),
        _grid(depth, lines),
        int64(depth),
        (item, made),
        (stack[0], stack[1]),
        distinct * (rows if own else 1),
    )


def _narrow_product(
    machine: Backend,
    a: View,
    b: View,
    out: Any,
    precision: Precision,
    rounding: int,
    own: bool | None,
) -> None:
    """Multiply rounded operands.

    `own` is True for one scale per line, False for one per matrix, None without scales.
    """
    depth = _aligned(a.shape[-1], ALIGNED)
    flag = int32(bool(own))
    lines = [a, b.swapaxes(1, 2)]
    found, items = [], []
    for x in lines:
        plan = _narrowing(
            precision.format, depth, bool(own), out.shape[0], (x.shape, x.strides)
        )
        to_greatest, to_scales, narrow = plan.kernels
        given, greatest = _strided(x), None
        if own is not None:
            greatest = machine.call("zeros", plan.scales, np.uint32)
            machine.launch(to_greatest, plan.grid, BLOCK, given, greatest, flag)
            machine.launch(
                to_scales, (-(-plan.scales // 256),), (256,), greatest,
                int64(plan.scales),
            )  # fmt: skip
        found.append(greatest)
        item, (shape, strides) = plan.made
        made = allocate(shape, item, strides)
        machine.launch(
            narrow, plan.grid, BLOCK, given, made, plan.depth, int32(rounding),
            greatest, flag,
        )  # fmt: skip
        items.append(View(item, made.data, *plan.stack))
    kind = _STORED.get(precision.format, "float16")
    machine.gemm(items[0], items[1].swapaxes(1, 2), out, kind)
    if own is not None:
        counts = [int64(i) for i in out.shape]
        each = [int32(_distinct(x.shape, x.strides) > 1) for x in lines]
        options = narrow_options(precision.format)
        kernel = Kernel("cuda/matmul/round_operands.cu", "rescale", options)
        # Blocks of 32 columns and 8 rows loop if the grid cannot cover the result.
        s, m, n = out.shape
        grid = -(-n // BLOCK[0]), min(-(-m // BLOCK[1]), 65535), min(s, 65535)
        machine.launch(kernel, grid, BLOCK, out, *found, *counts, *each, flag)


# -- common functions ------------------------------------------------------------------


def _aligned(k: int, to: int) -> int:
    return -(-k // to) * to


def _distinct(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return the number of different matrices of a stack: 1 if it repeats one."""
    return shape[0] if strides[0] else 1


def _grid(padded: int, *operands: _Lines) -> tuple[int]:
    """Return the grid with a block for each tile of padded lines: see operands.h."""
    lines, depth = TILE
    each = (_distinct(*x) * -(-x[0][1] // lines) for x in operands)
    tiles = sum(each) * -(-padded // depth)
    if tiles >= 1 << 31:
        shapes = " and ".join(str(shape) for shape, _ in operands)
        raise ValueError(
            f"a and b must be small enough for one launch; got shapes {shapes}"
        )
    return (tiles,)


def _strided(x: View) -> Words:
    """Return `struct strided_operand` of operands.h."""
    return Words(x.data.ptr, *_extents(x.shape, x.strides))


def _matrices(x: View) -> Words:
    """Return `struct matrices` of patch_specials.cu."""
    return Words(x.data.ptr, *_extents(x.shape, x.strides)[:3])


@lru_cache(maxsize=KEPT)
def _extents(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides in elements, and the numbers of matrices, lines and k."""
    steps = (step // ITEM for step in strides)
    return *steps, _distinct(shape, strides), *shape[1:]
