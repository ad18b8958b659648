"""Products of arrays of blocks on a GPU: see src/cuda/blocks/fma_matmul.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import DTypeLike

from ..._formats.table import find_dtype
from ..._wording import brief
from ...blocks.base import Blocks
from .._matmul import wgmma as wide
from .._matmul.matmul import as_target, cast, copy_into
from .._matmul.mode import current_mode
from .._matmul.stacks import stacks
from .._matmul.tensor_cores import check_instruction
from .._matmul.tile_options import LARGEST, MOST, pieces
from .._runtime import backend
from .._runtime.backend import Kernel
from .._runtime.storage import is_ours, plain
from .._runtime.tensor_maps import TensorMapError
from . import kernels, native, wgmma

FLOAT32 = np.dtype(np.float32)
THREADS = 256
#: k of a tile in shared memory, and what its lines are longer than they are wide
_DEPTH, _PADDING = 16, 4

#: struct tf_side and struct tf_block_task of fma_matmul.cu
_SIDE = np.dtype(
    [
        ("hi", np.int64, 3), ("lo", np.int64, 2), ("scales", np.int64),
        ("pitch", np.int32), ("across", np.int32),
    ]
)  # fmt: skip
TASK = np.dtype(
    [
        ("a", _SIDE), ("b", _SIDE), ("c", np.int64, 3),
        *((name, np.int32) for name in ("m", "n", "k", "block", "terms", "levels")),
    ]
)  # fmt: skip


class Tile(NamedTuple):
    """A kernel and what of C its blocks of threads compute."""

    kernel: str
    rows: int
    columns: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory: two tiles and two blocks' scales of each operand."""
        lines = self.rows + self.columns
        return 8 * (_DEPTH * (lines + 2 * _PADDING) + 2 * lines)


LARGE = Tile("block_chain_large", 128, 128)
SMALL = Tile("block_chain_small", 64, 64)


def matmul(
    a: Any,
    b: Any,
    *,
    terms: int | None = None,
    dtype: DTypeLike = np.float32,
    out: Any = None,
) -> Any:
    """Multiply arrays of blocks, or one by an array of numbers, on a GPU.

    For each block of k in order, and each term of it (hi hi, hi lo, lo hi, lo lo, those
    that there are), the elements' values are multiplied and added by a chain of float32
    fused multiply-adds from +0, and the sum is added to the result's by another, times
    the product of the two scales rounded to float32. The bits are those of
    `tf32dtype.blocks.matmul` on the CPU.

    Within ``tf32dtype.cuda.matmul_mode("native")`` the sum of a block is a chain of FP8
    instructions of this GPU's tensor cores from +0 instead: mma.sync, or on compute
    capability 9.0 with ``instruction="wgmma"`` that, which is faster and keeps 13 bits
    of a block's sum. That is for elements of 4, 6 and 8 bits but integers of 8, of both
    operands, in blocks of 32, 64 or 128. Untested on a GPU.

    Parameters
    ----------
    a : BlockArray or cupy.ndarray
        (..., m, k), blocks along the last axis.
    b : BlockArray or cupy.ndarray
        (..., k, n), blocks along the last axis but one. An array of numbers is of this
        package's formats, float16, float32, or of integers or bools that float32 has.
    terms : {1, 3, 4}, optional
        Of two levels: only hi hi, all but lo lo, or all, which is the default.
    dtype : dtype
        The float32 sums are rounded to it, once, ties to even.
    out : cupy.ndarray, optional
        What to write into.

    Returns
    -------
    cupy.ndarray
        (..., m, n); `out` if given.

    Raises
    ------
    TypeError
        For operands of other kinds or dtypes, or no array of blocks among them.
    ValueError
        For shapes, block axes, block sizes or `terms` that do not fit, and for what the
        mode in force does not have.
    """
    wanted = find_dtype(dtype)
    if not (is_ours(wanted) or wanted.kind == "f"):
        raise TypeError(f"dtype={dtype!r}: sums in float32 are cast to floats alone")
    if terms not in (None, 1, 3, 4):
        raise ValueError(f"terms={brief(terms)}: known are 1, 3, 4, and None for all")
    left, right = _operand(a, "a", -1), _operand(b, "b", -2)
    shape, batch = _fit(a, b, left, right)
    mode, _, instruction = current_mode()
    if mode == "model":
        raise ValueError(
            "mode='model' has no products of blocks on a GPU:"
            " tf32dtype.tensor_core computes them on the CPU, of x.get()"
        )
    if mode == "native":
        native.check(left, right)
        check_instruction(instruction)
        left, right = native.bytewise(a, left), native.bytewise(b, right)
    if out is not None:
        out = as_target(out, wanted, shape)
    matrices = (*batch, left.lines, right.lines)
    direct = (
        out is not None
        and out.dtype == wanted == FLOAT32
        and out.flags.c_contiguous
        and out.shape == shape
        and not any(cupy.may_share_memory(out, x) for x in (left.hi, right.hi))
    )
    sums = out.reshape(matrices) if direct else cupy.empty(matrices, FLOAT32)
    if sums.size and left.k == 0:
        backend.current().call("copyto", sums, np.float32(0))
    elif sums.size:
        own = wgmma.product if instruction == "wgmma" else _as_mma_sync
        write = own if mode == "native" else chain
        _write(left, right, sums, _levels(left, right, terms), write)
    if direct:
        return out
    result = cast(sums, wanted).reshape(shape)
    if out is not None:
        copy_into(result, out)
        return out
    return result


# -- operands --------------------------------------------------------------------------


class Operand(NamedTuple):
    """Rows of a or columns of b: lines of blocks, or of float32 numbers."""

    #: the first code of each block (..., lines, blocks), or numbers (..., lines, k)
    hi: Any
    lo: Any
    #: float32 (..., blocks, levels * pitch); None: numbers
    scales: Any
    layout: Any
    k: int

    @property
    def lines(self) -> int:
        return int(self.hi.shape[-2])

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(self.hi.shape[:-2])

    @property
    def names(self) -> tuple[str | None, str | None]:
        """Of the elements of both levels."""
        if self.layout is None:
            return None, None
        return self.layout.row.element, self.layout.row.residual


def _operand(x: Any, name: str, axis: int) -> Operand:
    if isinstance(x, Blocks) and isinstance(x.codes, cupy.ndarray):
        axis = max(axis, -x.ndim)
        if x.axis - x.ndim != axis:
            raise ValueError(
                f"blocks of {name} lie along axis {x.axis} of its {x.ndim}; in a"
                f" product they lie along k, its axis {axis}"
            )
        hi, lo = x.codes[..., 0], x.residuals
        lo = None if lo is None else lo[..., 0]
        if x.ndim == 1:
            hi, lo = hi[np.newaxis], None if lo is None else lo[np.newaxis]
        scales = kernels.scale_numbers(x._layout, x.scales)
        return Operand(hi, lo, scales, x._layout, x.shape[axis])
    if not isinstance(x, cupy.ndarray):
        raise TypeError(
            f"{name} is a {type(x).__module__}.{type(x).__name__}, not an array on a"
            " GPU: tf32dtype.cuda.asarray and tf32dtype.cuda.blocks.asarray move it"
            " there"
        )
    if not (is_ours(x.dtype) or np.can_cast(x.dtype, FLOAT32)):
        raise TypeError(
            f"{name} is an array of {x.dtype}, which float32 does not hold: cast it"
            " first"
        )
    if x.ndim == 0:
        raise ValueError(f"{name} is at least a vector, not a single number")
    numbers = plain(cast(x, FLOAT32))
    if x.ndim == 1:
        numbers = numbers[np.newaxis]
    elif axis == -2:
        numbers = numbers.swapaxes(-1, -2)
    return Operand(numbers, None, None, None, numbers.shape[-1])


def _fit(
    a: Any, b: Any, left: Operand, right: Operand
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The result's shape, and that of its stack."""
    if left.layout is None and right.layout is None:
        raise TypeError("neither a nor b is an array of blocks: tf32dtype.cuda.matmul")
    if left.k != right.k:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} do not fit: k is {left.k} and {right.k}"
        )
    sizes = {x.layout.block_size for x in (left, right) if x.layout is not None}
    if len(sizes) > 1:
        raise ValueError(
            f"blocks of a have {left.layout.block_size} values, those of b"
            f" {right.layout.block_size}: a product needs one block size"
        )
    try:
        batch = np.broadcast_shapes(left.batch, right.batch)
    except ValueError:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} do not fit: stacks {left.batch} and"
            f" {right.batch} do not broadcast"
        ) from None
    if max(left.lines, right.lines, left.k) > LARGEST:
        raise ValueError(
            f"shapes {a.shape} and {b.shape}: kernels of products count to {LARGEST}"
            " along an axis"
        )
    rows, columns = (left.lines,) * (a.ndim > 1), (right.lines,) * (b.ndim > 1)
    return (*batch, *rows, *columns), batch


def _levels(left: Operand, right: Operand, terms: int | None) -> list[tuple[int, int]]:
    """The terms of a block: whether each takes a's residuals, and b's."""
    found = [
        (i, j)
        for i in range(1 if left.lo is None else 2)
        for j in range(1 if right.lo is None else 2)
    ]
    return found[:1] if terms == 1 else [x for x in found if terms != 3 or x != (1, 1)]


# -- kernels ---------------------------------------------------------------------------


def _write(
    left: Operand,
    right: Operand,
    sums: Any,
    levels: list[tuple[int, int]],
    write: Callable[[Operand, Operand, Any, list[tuple[int, int]]], None],
) -> None:
    """Products of all matrices of a stack into a C-contiguous array."""
    batch = sums.shape[:-2]
    given = [left.hi, left.lo, left.scales, right.hi, right.lo, right.scales]
    arrays = [
        cupy.broadcast_to(x, (*batch, *x.shape[-2:])) for x in given if x is not None
    ]
    for *parts, c in stacks(*arrays, sums):
        views = iter(parts)
        mine = [None if x is None else next(views) for x in given]
        a = left._replace(hi=mine[0], lo=mine[1], scales=mine[2])
        b = right._replace(hi=mine[3], lo=mine[4], scales=mine[5])
        for first in range(0, len(c), MOST):
            here = slice(first, first + MOST)
            write(_of(a, here), _of(b, here), c[here], levels)


def _as_mma_sync(a: Operand, b: Operand, c: Any, levels: list[tuple[int, int]]) -> None:
    """By wgmma of float16 where that may be, which has mma.sync's bits."""
    if wide.leads(c.shape) and a.layout.block_size == native.LEAST:
        try:
            return wgmma.product(a, b, c, levels, halves=True)
        except TensorMapError:
            pass
    return native.product(a, b, c, levels)


def _of(x: Operand, here: slice) -> Operand:
    """Some matrices of a stack."""
    parts = [y if y is None else y[here] for y in x[:3]]
    return x._replace(hi=parts[0], lo=parts[1], scales=parts[2])


def options(left: Operand, right: Operand) -> tuple[str, ...]:
    """Of the compilation for operands' elements."""
    found = []
    for side, operand in (("A", left), ("B", right)):
        for level, name in zip(("HI", "LO"), operand.names, strict=True):
            element = "-1" if name is None else f"tf_element_{name}"
            found.append(f"-D{side}_{level}={element}")
    return tuple(found)


def _side(x: Operand) -> Any:
    side = np.zeros((), _SIDE)
    side["hi"] = x.hi.strides
    if x.layout is None:
        side["across"] = abs(x.hi.strides[1]) < abs(x.hi.strides[2])
        return side
    side["scales"] = x.scales.strides[0] // 4
    side["pitch"] = x.scales.shape[-1] // x.layout.row.levels
    if x.lo is not None:
        side["lo"] = x.lo.strides[:2]
    return side


def chain(
    a: Operand,
    b: Operand,
    c: Any,
    levels: list[tuple[int, int]],
    tile: Tile | None = None,
) -> None:
    """Write a @ b to c, (s, m, n), float32, in the contract's order."""
    count, m, n = c.shape
    task = np.zeros((), TASK)
    task["a"], task["b"], task["c"] = _side(a), _side(b), c.strides
    task["m"], task["n"], task["k"] = m, n, a.k
    task["block"] = (b if a.layout is None else a).layout.block_size
    task["terms"] = len(levels)
    task["levels"] = sum((i + 2 * j) << 2 * t for t, (i, j) in enumerate(levels))
    if tile is None:
        tiles = count * pieces(m, LARGE.rows) * pieces(n, LARGE.columns)
        tile = LARGE if tiles >= backend.current().processors() else SMALL
    backend.current().launch(
        Kernel("cuda/blocks/fma_matmul.cu", tile.kernel, options(a, b)),
        (pieces(m, tile.rows) * pieces(n, tile.columns), count),
        (THREADS,),
        task, a.hi, a.lo, a.scales, b.hi, b.lo, b.scales, c,
        shared=tile.shared,
    )  # fmt: skip
