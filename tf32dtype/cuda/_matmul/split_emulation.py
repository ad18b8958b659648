"""float32 products by tensor cores: operands rounded, or split in parts.

The precisions are those of docs/precision.md; what is said there of rounding, scales,
Inf and NaN holds here. No floating-point errors are reported.

The sums are the device's own, by cuBLAS; but tensor cores cut what they add, and
products of the greatest parts count most. For these a launch of the kernel of `native`
adds the results of short chains, to nearest.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..._formats.quantize import ROUNDINGS
from ..._matmul.precisions import (
    Precision,
    RoundingOptions,
    Settings,
    find_precision,
)
from ..._matmul.precisions import check as check_options
from .._arrays.ndarray import allocate, lying
from .._runtime import cublas
from .._runtime.backend import (
    KEPT,
    Backend,
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

#: elements; rows of what cuBLAS multiplies begin at multiples of it
ALIGNED = 8
BLOCK = 32, 8  # src/cuda/matmul/operands.h; a tile is 32 x 32

PATCH = Kernel("cuda/matmul/patch_specials.cu", "patch")


class Chunks(NamedTuple):
    """How many k of a product of parts are summed by a tensor core, which cuts.

    Sums of chunks are added in float32, to nearest.
    """

    #: of the products of the greatest parts: `native.Sums.promote`
    leading: int
    #: of the others, whose sums count 2^8 or 2^11 times less; k of all parts in a row
    others: int
    #: k of the greatest parts whose chunks make a sum of their own: else the rounding
    #: of many additions would show in sums of one sign. `native.Sums.stretch`
    stretch: int


#: The longest ones that keep the accuracy of NumPy's float32 product, by what the parts
#: are: benchmarks/results/gpu_ksplit.json has the figures, of the models in
#: tf32dtype.tensor_core. What limits them are sums of one sign, and of numbers that
#: differ by many octaves: an MMA group cuts what is small beside its greatest.
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
#: Where sums are this short, float32 additions have rounded less than MMA groups cut.
SHORT, SHORTEST = 128, 8
#: And where they are this long, groups of bfloat16 cut less than additions round.
LONG, LONGEST = 4096, 16


@lru_cache(maxsize=KEPT)
def chunks_for(architecture: str, precision: str, k: int) -> Chunks:
    """What `product` cuts sums of k products into; on an unknown device as on Ampere,
    whose tensor cores cut the most."""
    table = LEADING.get(architecture.rstrip("a"), _AMPERE)
    format = find_precision(precision).format
    leading = SHORTEST if k <= SHORT else table[format]
    if k >= LONG and format == "bfloat16":
        leading = LONGEST
    # About as many chunks in a stretch as there are stretches, or more; but no fewer
    # than 32, as after each the results are read and written.
    stretch = 1 << math.isqrt(max(k - 1, 0) * leading).bit_length()
    return Chunks(leading, OTHERS, max(stretch, 32 * leading))


def choose_precision(
    precision: str | None, strategy: strategies.Strategy, m: int, n: int, k: int
) -> str:
    """The precision that a product of (m, k) and (k, n) is computed in.

    Parameters
    ----------
    precision : str or None
        A long or short name of `matmul_precision`; None is "f32".
    strategy : {"performant", "eager"}
        What becomes of "tf32x3", "bf16x3", "bf16x6" and "bf16x9", which emulate
        float32. "eager": always that; "performant": that where this device is known to
        be faster so (see `strategy.emulates`), else "f32". Other precisions are what
        they are.

    Returns
    -------
    str
        A short name.

    Raises
    ------
    ValueError
        For unknown names.
    """
    row = find_precision("f32" if precision is None else precision)
    if strategies.emulates(row.short, strategy, m, n, k) or row.parts == 1:
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
        float32, of shapes (s, m, k) and (s, k, n), or without s, and any strides.
    out : cupy.ndarray
        float32, of shape (s, m, n) or (m, n) and C-contiguous. It is overwritten, and
        overlaps neither operand.
    precision : str
        A long or short name of `matmul_precision`.
    chunks : Chunks, optional
        How sums of parts are cut up. None: what `chunks_for` has for this device.
    **options
        `rounding`, `scale` and `special_values`, as in `matmul_precision`.

    Raises
    ------
    ValueError
        For an unknown name, or a keyword that the precision has no use for.

    Notes
    -----
    Of one part, Inf and NaN are numbers as any others; a NaN has the bits of the
    device. Products of parts are those of "f32", in the bits of the CPU, where a row or
    a column holds an Inf or a NaN, and where sums go beyond the range.
    """
    settings = Settings(precision, **options)
    check_options(*settings)
    row = find_precision(precision)
    machine = current()
    if out.size == 0:
        return
    check_aligned((a, b, out))  # kernels are given no arrays, but what is in them
    if a.shape[-1] == 0:
        machine.call("ndarray.fill", out, 0)
        return
    out = View.of(out)
    if row.format == "float32":
        stacks = (x if x.ndim == 3 else stack_of_one(x) for x in (a, b))
        x, y = (cublas.arranged(operand) for operand in stacks)
        machine.gemm(x, y, out, "float32")
    elif row.parts == 1:
        own = None if not row.short.startswith("fp8") else settings.scale == "row"
        x, y = View.of(a), View.of(b)
        _narrow_product(
            machine, x, y, out, row, ROUNDINGS.index(settings.rounding), own
        )
    else:
        chunks = chunks or chunks_for(machine.architecture(), precision, a.shape[-1])
        saturates = settings.special_values == "saturate"
        _split_product(machine, View.of(a), View.of(b), out, row, saturates, chunks)


# -- products of parts -----------------------------------------------------------------


#: Shape and strides of what `_lined_up` makes.
_Lines = tuple[tuple[int, ...], tuple[int, ...]]


class Step(NamedTuple):
    """A product of consecutive k of parts: of A, and of B, whose parts are reversed."""

    in_a: int
    in_b: int
    depth: int
    #: what it multiplies the sum by that it adds to
    beta: float
    #: whether it is that of the greatest parts
    leading: bool


@lru_cache(maxsize=KEPT)
def steps(precision: Precision, depth: int, chunk: int) -> tuple[Step, ...]:
    """All products of parts of `depth` k each, in order, of at most so many k; that of
    the greatest parts, which is last, of all.

    Parts i of A and j of B make the split order i + j, which counts 2^(-p (i + j)). The
    smallest order is first.
    """
    between = 2.0 ** -(8 if precision.format == "bfloat16" else 11)
    found = []
    for order in range(precision.split_orders - 1, -1, -1):
        least = max(0, order - precision.parts + 1)
        greatest = order - least
        in_a, in_b = least * depth, (precision.parts - 1 - greatest) * depth
        length = (greatest - least + 1) * depth
        most = chunk if order else length
        for first in range(0, length, most):
            beta = (
                1.0 if first else between if order < precision.split_orders - 1 else 0.0
            )
            last = min(first + most, length)
            found.append(
                Step(in_a + first, in_b + first, last - first, beta, not order)
            )
    return tuple(found)


#: The kernel of a format's parts, and how they are stored.
_SPLITS = {
    "bfloat16": (
        Kernel("cuda/matmul/split_operands.cu", "split", ("-DPART_BITS=8",)),
        np.dtype(np.uint16),
    ),
    "tf32": (
        Kernel("cuda/matmul/split_operands.cu", "split", ("-DPART_BITS=11",)),
        np.dtype(np.float32),
    ),
}


class _KRange(NamedTuple):
    """Some k of all lines."""

    first: int  #: bytes from the first line's begin
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(maxsize=KEPT)
def _k_ranges(
    precision: Precision, depth: int, chunk: int, count: int, a: _Lines, b: _Lines
) -> tuple[tuple[Step, _KRange, _KRange], ...]:
    """Where the operands of all steps are in lines, for `count` matrices."""
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
    chunks: Chunks,
) -> None:
    kind = precision.format
    kernel, dtype = _SPLITS[kind]
    depth = _aligned(a.shape[-1])
    flag = int32(saturates)
    lines = [
        _lined_up(
            machine, kernel, x, dtype, precision.parts * depth,
            depth, int32(precision.parts), int32(is_b), flag,
        )
        for is_b, x in enumerate((a, b.swapaxes(1, 2)))
    ]  # fmt: skip
    in_a, in_b = (made.data for made in lines)
    layouts = [(made.shape, made.strides) for made in lines]
    for step, of_a, of_b in _k_ranges(
        precision, depth, chunks.others, out.shape[0], *layouts
    ):
        x = View(dtype, in_a + of_a.first, of_a.shape, of_a.strides)
        y = View(dtype, in_b + of_b.first, of_b.shape, of_b.strides)
        if step.leading:
            sums = native.Sums(chunks.leading, chunks.stretch, step.beta)
            _sum_leading(x, y, out, kind, sums)
        else:
            machine.gemm(x, y, out, kind, 1.0, step.beta)
    _launch(
        machine, PATCH, out.shape, BLOCK[1], _matrices(a), _matrices(b), out,
        *(int64(i) for i in (*out.shape, a.shape[-1])), flag,
    )  # fmt: skip


def _sum_leading(a: Any, b: Any, out: Any, kind: str, sums: native.Sums) -> None:
    """By wgmma where that may be, whose model is that of mma.sync here."""
    if wgmma.leads(out.shape) and wgmma.sums_here(sums, a.dtype.itemsize, a.shape[-1]):
        try:
            wgmma.multiply(a, b, out, (kind, kind), sums)
        except TensorMapError:
            pass
        else:
            return
    native.multiply(a, b, out, (kind, kind), sums=sums)


# -- products of rounded operands ------------------------------------------------------

#: How a format's numbers are stored for the tensor core, which gets those of fp8 as
#: float16: all are exact there, and every GPU multiplies it.
_STORED = {"tf32": "tf32", "bfloat16": "bfloat16"}
_ITEMS = {"tf32": np.float32, "bfloat16": np.uint16, "float16": np.uint16}


def narrow_options(format: str) -> tuple[str, ...]:
    """Of src/cuda/matmul/round_operands.cu."""
    stored = _STORED.get(format, "float16")
    bits = 8 * np.dtype(_ITEMS[stored]).itemsize
    return f"-DFORMAT=tf_{format}", f"-DSTORED=tf_{stored}", f"-DSTORED_BITS={bits}"


def _narrow_product(
    machine: Backend,
    a: View,
    b: View,
    out: Any,
    precision: Precision,
    rounding: int,
    own: bool | None,
) -> None:
    """`own`: whether lines have scales of their own; None: there are no scales."""
    options = narrow_options(precision.format)
    kind = _STORED.get(precision.format, "float16")
    depth = _aligned(a.shape[-1])
    flag = int32(bool(own))
    lines = [a, b.swapaxes(1, 2)]
    found, items = [], []
    for x in lines:
        greatest = None
        if own is not None:
            count = _distinct(x) * (x.shape[1] if own else 1)
            greatest = machine.call("zeros", count, np.uint32)
            kernel = Kernel("cuda/matmul/round_operands.cu", "greatest", options)
            _launch_tiles(machine, kernel, x, x.shape[-1], greatest, flag)
            machine.launch(
                Kernel("cuda/matmul/round_operands.cu", "scales", options),
                (-(-count // 256),), (256,), greatest, int64(count),
            )  # fmt: skip
        found.append(greatest)
        made = _lined_up(
            machine, Kernel("cuda/matmul/round_operands.cu", "narrow", options), x,
            _ITEMS[kind], depth, depth, int32(rounding), greatest, flag,
        )  # fmt: skip
        _, *layout = _k_range((made.shape, made.strides), out.shape[0], 0, depth)
        items.append(View(made.dtype, made.data, *layout))
    machine.gemm(items[0], items[1].swapaxes(1, 2), out, kind)
    if own is not None:
        counts = [int64(i) for i in out.shape]
        each = [int32(_distinct(x) > 1) for x in lines]
        kernel = Kernel("cuda/matmul/round_operands.cu", "rescale", options)
        _launch(machine, kernel, out.shape, BLOCK[1], out, *found, *counts, *each, flag)


# -- what both need --------------------------------------------------------------------


def _aligned(k: int) -> int:
    return -(-k // ALIGNED) * ALIGNED


def _distinct(x: Any) -> int:
    """How many matrices of a stack are not the same."""
    return x.shape[0] if x.strides[0] else 1


def _lined_up(
    machine: Backend,
    kernel: Kernel,
    x: Any,
    dtype: Any,
    width: int,
    depth: int,
    *arguments: Any,
) -> Any:
    """What a kernel makes of a stack of lines, which may be one for many: `width` items
    of each, side by side."""
    dtype = np.dtype(dtype)
    shape = (_distinct(x), x.shape[1], width)
    made = allocate(shape, dtype, lying(shape, dtype.itemsize))
    _launch_tiles(machine, kernel, x, depth, made, int64(depth), *arguments)
    return made


def _launch_tiles(
    machine: Backend, kernel: Kernel, x: Any, padded: int, *arguments: Any
) -> None:
    operand = Words(  # struct strided_operand of operands.h
        x.data.ptr, *_items(x), _distinct(x), *x.shape[1:]
    )
    extent = _distinct(x), x.shape[1], padded
    _launch(machine, kernel, extent, 32, operand, *arguments)


def _launch(
    machine: Backend,
    kernel: Kernel,
    extent: tuple[int, int, int],
    rows: int,
    *arguments: Any,
) -> None:
    """A kernel whose thread blocks have 32 columns and some rows of a stack's
    matrices each; they go on to others where the grid does not reach."""
    count, height, width = extent
    grid = -(-width // 32), min(-(-height // rows), 65535), min(count, 65535)
    machine.launch(kernel, grid, BLOCK, *arguments)


def _matrices(x: Any) -> Words:
    return Words(x.data.ptr, *_items(x))  # struct matrices of patch_specials.cu


def _items(x: Any) -> list[int]:
    """Strides as kernels here count them."""
    return [stride // x.itemsize for stride in x.strides]
