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
from functools import partial
from typing import Any, NamedTuple, Unpack

import cupy
import numpy as np

from ..._formats.quantize import ROUNDINGS
from ..._formats.table import find_dtype
from ..._matmul.precisions import (
    Precision,
    RoundingOptions,
    Settings,
    find_precision,
    rounding_of,
)
from ..._matmul.precisions import check as check_options
from .._arrays.ndarray import lying
from .._runtime.backend import (
    Constant,
    Kernel,
    Shape,
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
from .tensor_cores import by_cublas
from .tile_options import Launches, Matrices, Room, Writer, write_zeros

#: Rows of operands of cuBLAS begin at multiples of so many elements.
ALIGNED = 8
BLOCK = 32, 8  # src/cuda/matmul/operands.h
TILE = 32, 64  # lines and k of a block
#: Bytes of a float32.
ITEM = 4
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


def chunks_for(architecture: str, precision: str, k: int) -> Chunks:
    """Return the lengths into which `plan` divides sums of k terms.

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


def plan(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    precision: str,
    *,
    chunks: Chunks | None = None,
    **options: Unpack[RoundingOptions],
) -> Writer:
    """Plan a product of stacks of float32 matrices in a precision.

    Parameters
    ----------
    a, b : Matrices
        float32 operands (s, m, k) and (s, k, n), with any strides.
    c : Matrices
        float32 result (s, m, n) in C order. It must not overlap the operands.
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
    if 0 in c.shape:
        return Launches()
    if a.shape[2] == 0:
        return write_zeros
    if row.format == "float32":
        return partial(by_cublas, kind="float32")
    if row.components == 1:
        own = None if not row.short.startswith("fp8") else settings.scale == "row"
        rounding = ROUNDINGS.index(rounding_of(settings, row))
        return _plan_narrow(a, b, c, row.format, rounding, own)
    return _plan_split(a, b, c, row, settings.special_values == "saturate", chunks)


# -- products of parts -----------------------------------------------------------------


#: Significant bits of the parts of a format.
PART_BITS = {"bfloat16": 8, "tf32": 11}


def between(format: str) -> float:
    """Return the weight of a split order relative to the order before it."""
    return float(2.0 ** -PART_BITS[format])


class Step(NamedTuple):
    """A product of consecutive k in the lines of A and B; parts of B are reversed."""

    in_a: int  #: first k in a line of A
    in_b: int  #: first k in a line of B
    depth: int  #: number of k
    #: factor of the previous sum, to which the product is added
    beta: float
    #: whether this is the product of the largest parts
    leading: bool


def steps(precision: Precision, depth: int, chunk: int) -> list[Step]:
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
    return found


def split_kernel(format: str, parts: int) -> Kernel:
    """Return the kernel that splits both operands."""
    options = f"-DPARTS={parts}", f"-DPART_BITS={PART_BITS[format]}"
    return Kernel("cuda/matmul/split_operands.cu", "split", options)


class Split(NamedTuple):
    """A launch that splits both operands into parts.

    Called with views of (s, m, k) and (s, n, k), it returns lines of parts, which share
    an allocation. The largest part is first in the lines of a, and last in those of b.
    """

    kernel: Kernel
    grid: tuple[int]
    extents: tuple[Shape, Shape]
    numbers: tuple[Constant, Constant]
    a: Matrices  #: layout of the lines of a, at the start of the allocation
    b: Matrices  #: layout of the lines of b, in the same allocation
    size: int  #: bytes of the allocation

    def __call__(self, a: View, b: View) -> tuple[View, View]:
        memory = cupy.cuda.alloc(self.size)
        x, y = self.a.view(memory), self.b.view(memory)
        given = (
            Words(i.data.ptr, *extents)
            for i, extents in zip((a, b), self.extents, strict=True)
        )
        current().launch(self.kernel, self.grid, BLOCK, *given, x, y, *self.numbers)
        return x, y


def plan_split(
    a: Matrices, b: Matrices, precision: Precision, depth: int, saturates: bool
) -> Split:
    """Plan to split (s, m, k) and (s, n, k) into parts of `depth` k, an even number."""
    format, parts = precision.format, precision.components
    x, y = (_lines(i, parts * depth, format) for i in (a, b))
    room = Room()
    room.place(_size(x))
    second = room.place(_size(y))
    return Split(
        split_kernel(format, parts),
        _grid(depth, a, b),
        (a.extents, b.extents),
        (int64(depth), int32(saturates)),
        x,
        y._replace(start=second),
        room.size,
    )


class _SplitProduct(NamedTuple):
    """The launches of a product of split operands."""

    split: Split
    fused: Writer | None  #: all products of parts in one launch, by wgmma
    pieces: Matrices | None  #: results for pieces of k, which the last launch adds
    #: products of parts, with the layouts of their operands in the split's allocation
    steps: tuple[tuple[Writer, Matrices, Matrices], ...]
    strides: tuple[Shape, Shape]  #: strides of operands, in elements
    grid: tuple[int]
    numbers: tuple[Constant, ...]

    def __call__(self, a: View, b: View, out: View) -> None:
        check_aligned((a, b, out))  # launches cannot check, as they get no arrays
        pieces = self._sum(*self.split(a, b.swapaxes(1, 2)), out)
        given = (
            Words(x.data.ptr, *strides)
            for x, strides in zip((a, b), self.strides, strict=True)
        )
        threads = (PATCH_THREADS,)
        current().launch(PATCH, self.grid, threads, *given, out, pieces, *self.numbers)

    def _sum(self, x: View, y: View, out: View) -> View | None:
        """Sum products of parts to `out`, or return the sums of pieces of k."""
        if self.fused is not None:
            pieces = None
            if self.pieces is not None:
                pieces = self.pieces.view(cupy.cuda.alloc(_size(self.pieces)))
            try:
                self.fused(x, y.swapaxes(1, 2), pieces or out)
                return pieces
            except TensorMapError:
                pass  # only this driver knows whether it can make maps
        for write, of_x, of_y in self.steps:
            write(of_x.view(x.data), of_y.view(x.data), out)
        return None


def _plan_split(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    precision: Precision,
    saturates: bool,
    chunks: Chunks | None,
) -> _SplitProduct:
    k, format = a.shape[2], precision.format
    found = None
    if chunks is None and wgmma.ENABLED and wgmma.is_here():
        found = plan_of_parts(precision, c.shape, k)
    parts, count, depth = found or (wgmma.WHOLE, 1, _aligned(k, ALIGNED))
    split = plan_split(a, b.flipped, precision, depth, saturates)
    fused, pieces = None, None
    if found is not None:
        shape = count * c.shape[0], *c.shape[1:]
        to = c._replace(shape=shape, strides=lying(shape, ITEM))
        fused = wgmma.plan(split.a, split.b.flipped, to, parts, count)
        pieces = to if count > 1 else None
    chunks = chunks or chunks_for(current().architecture(), precision.short, k)
    each = []
    for step in steps(precision, depth, chunks.others):
        x = split.a.part(2, step.in_a, step.depth)
        y = split.b.part(2, step.in_b, step.depth).flipped
        write: Writer = partial(by_cublas, kind=format, beta=step.beta)
        if step.leading:
            sums = native.Sums(chunks.leading, chunks.stretch, step.beta)
            write = native.plan(x, y, c, sums=sums)
        each.append((write, x, y))
    return _SplitProduct(
        split,
        fused,
        pieces,
        tuple(each),
        (a.extents[:3], b.extents[:3]),
        (-(-math.prod(c.shape) // PATCHED),),
        (int32(count), *map(int64, (*c.shape, k)), int32(saturates)),
    )


def plan_of_parts(
    precision: Precision, shape: Shape, k: int
) -> tuple[wgmma.Parts, int, int] | None:
    """Plan how wgmma sums products of parts; return None if cuBLAS does.

    The plan has the parts, the number of pieces, and k rounded up to whole slices.
    """
    in_slice = wgmma.SLICE // find_dtype(precision.format).itemsize
    stretch = LONGER.get(precision.short, STRETCH) // in_slice
    parts = wgmma.Parts(
        precision.components,
        precision.split_orders,
        between(precision.format),
        stretch,
    )
    slices = -(-k // in_slice)
    if not wgmma.suits(shape, slices, parts, wgmma.SLICE // in_slice):
        return None
    return parts, wgmma.choose_pieces(shape, slices, parts), slices * in_slice


# -- products of rounded operands ------------------------------------------------------


def _multiplied(format: str) -> str:
    """Return the format in which tensor cores multiply values rounded to a format.

    It is float16 for FP8, which represents all values and which every GPU supports.
    """
    return format if format in PART_BITS else "float16"


def narrow_options(format: str) -> tuple[str, ...]:
    """Return the compilation options of src/cuda/matmul/round_operands.cu."""
    stored = _multiplied(format)
    bits = 8 * find_dtype(stored).itemsize
    return f"-DFORMAT=tf_{format}", f"-DSTORED=tf_{stored}", f"-DSTORED_BITS={bits}"


def _narrow_kernel(format: str, name: str) -> Kernel:
    return Kernel("cuda/matmul/round_operands.cu", name, narrow_options(format))


class _Rounding(NamedTuple):
    """The launches that round an operand, a view of (s, lines, k)."""

    kernels: tuple[Kernel, ...]  #: kernels for the maxima, the scales and the rounding
    grid: tuple[int]
    extents: Shape
    lines: Matrices  #: layout of the rounded lines
    scales: int  #: number of scales, or 0
    own: Constant  #: whether each line has its own scale
    numbers: tuple[Constant, Constant]

    def __call__(self, x: View) -> tuple[View, Any]:
        """Return the rounded lines and their scales."""
        machine, scales = current(), None
        to_greatest, to_scales, narrow = self.kernels
        given = Words(x.data.ptr, *self.extents)
        if self.scales:
            scales = machine.call("zeros", self.scales, np.uint32)
            machine.launch(to_greatest, self.grid, BLOCK, given, scales, self.own)
            grid, count = (-(-self.scales // 256),), int64(self.scales)
            machine.launch(to_scales, grid, (256,), scales, count)
        lines = self.lines.view(cupy.cuda.alloc(_size(self.lines)))
        machine.launch(
            narrow, self.grid, BLOCK, given, lines, *self.numbers, scales, self.own
        )
        return lines, scales


class _NarrowProduct(NamedTuple):
    """The launches of a product of rounded operands."""

    a: _Rounding
    b: _Rounding
    kind: str
    rescale: Kernel
    grid: Shape
    numbers: tuple[Constant, ...]

    def __call__(self, a: View, b: View, out: View) -> None:
        check_aligned((a, b, out))  # launches cannot check, as they get no arrays
        (x, of_x), (y, of_y) = self.a(a), self.b(b.swapaxes(1, 2))
        by_cublas(x, y.swapaxes(1, 2), out, self.kind)
        if of_x is not None:
            current().launch(
                self.rescale, self.grid, BLOCK, out, of_x, of_y, *self.numbers
            )


def _plan_narrow(
    a: Matrices, b: Matrices, c: Matrices, format: str, rounding: int, own: bool | None
) -> _NarrowProduct:
    """Plan a product of rounded operands.

    `own` is True for one scale per line, False for one per matrix, None without scales.
    """
    depth, flag = _aligned(a.shape[2], ALIGNED), int32(bool(own))

    def rounded(x: Matrices) -> _Rounding:
        return _Rounding(
            tuple(_narrow_kernel(format, i) for i in ("greatest", "scales", "narrow")),
            _grid(depth, x),
            x.extents,
            _lines(x, depth, _multiplied(format)),
            0 if own is None else x.distinct * (x.shape[1] if own else 1),
            flag,
            (int64(depth), int32(rounding)),
        )

    each = (int32(x.distinct > 1) for x in (a, b))
    # Blocks of 32 columns and 8 rows loop if the grid cannot cover the result.
    s, m, n = c.shape
    return _NarrowProduct(
        rounded(a),
        rounded(b.flipped),
        _multiplied(format),
        _narrow_kernel(format, "rescale"),
        (-(-n // BLOCK[0]), min(-(-m // BLOCK[1]), 65535), min(s, 65535)),
        (*map(int64, c.shape), *each, flag),
    )


# -- common functions ------------------------------------------------------------------


def _aligned(k: int, to: int) -> int:
    return -(-k // to) * to


def _lines(x: Matrices, length: int, format: str) -> Matrices:
    """Return the layout of lines of `length` k for those of (s, lines, k).

    They have no gaps. A stack that repeats one matrix has one.
    """
    dtype, (s, rows, _) = find_dtype(format), x.shape
    stack, pitch, step = lying((s, rows, length), dtype.itemsize)
    strides = stack if x.distinct > 1 else 0, pitch, step
    return Matrices((s, rows, length), strides, dtype)


def _size(x: Matrices) -> int:
    """Return the bytes of matrices without gaps."""
    return x.distinct * math.prod(x.shape[1:]) * x.dtype.itemsize


def _grid(padded: int, *operands: Matrices) -> tuple[int]:
    """Return the grid with a block for each tile of padded lines: see operands.h."""
    lines, depth = TILE
    each = (x.distinct * -(-x.shape[1] // lines) for x in operands)
    tiles = sum(each) * -(-padded // depth)
    if tiles >= 1 << 31:
        shapes = " and ".join(str(x.shape) for x in operands)
        raise ValueError(
            f"a and b must be small enough for one launch; got shapes {shapes}"
        )
    return (tiles,)
