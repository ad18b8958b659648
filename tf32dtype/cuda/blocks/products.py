"""Multiply arrays of blocks on a GPU: see src/cuda/blocks/fma_matmul.cu."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import DTypeLike

from ..._base.matrices import check_k, stack_of
from ..._base.wording import one_of
from ..._formats.table import find_dtype
from ..._formats.typed import Terms
from ...blocks.base import Blocks
from .._arrays.ndarray import lying
from .._matmul import wgmma as wide
from .._matmul.matmul import as_target, cast, copy_into
from .._matmul.mode import Mode, current_mode
from .._matmul.stacks import Axis, places, stacked
from .._matmul.tensor_cores import check_instruction
from .._matmul.tile_options import (
    LARGEST,
    MOST,
    Launch,
    Launches,
    Matrices,
    in_c_order,
    pieces,
)
from .._runtime import backend
from .._runtime.backend import KEPT, Constant, Kernel, Shape, View
from .._runtime.storage import is_ours, plain
from .._runtime.tensor_maps import TensorMapError
from . import kernels, native, wgmma
from .operands import Levels, Lines, Operand, Writer, lines_of, places_of

FLOAT32, BYTE = np.dtype(np.float32), np.dtype(np.uint8)
THREADS = 256
#: k of a tile in shared memory, and padding of its lines.
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
    """A kernel, and the size of the tile of C that a block of threads computes."""

    kernel: str
    rows: int
    columns: int

    @property
    def shared(self) -> int:
        """Return the bytes of shared memory.

        For each operand, there are two tiles and the scales of two blocks.
        """
        lines = self.rows + self.columns
        return 8 * (_DEPTH * (lines + 2 * _PADDING) + 2 * lines)


LARGE = Tile("block_chain_large", 128, 128)
SMALL = Tile("block_chain_small", 64, 64)


def matmul(
    a: Any,
    b: Any,
    *,
    terms: Terms | None = None,
    dtype: DTypeLike = np.float32,
    out: Any = None,
) -> Any:
    """Multiply arrays of blocks, or one by an array of numbers, on a GPU.

    The blocks along k are added in order. A block has one term (hi hi), or several with
    residuals: hi hi, hi lo, lo hi and lo lo. For each term, a chain of float32 fused
    multiply-adds from +0 sums the products of the elements' values. Another fused
    multiply-add adds this sum, times the product of the two scales rounded to float32,
    to the result. The bits are those of `tf32dtype.blocks.matmul` on the CPU.

    Within ``tf32dtype.cuda.matmul_mode("native")``, a chain of FP8 instructions of this
    GPU's tensor cores computes the sum of a block. The instruction is mma.sync. With
    ``instruction="wgmma"`` on compute capability 9.0 it is wgmma, which is faster and
    keeps 13 bits of a block's sum. Both operands must have blocks of 32, 64 or 128, and
    elements of 4, 6 or 8 bits, except 8-bit integers.

    Parameters
    ----------
    a : BlockArray or cupy.ndarray
        Array of shape (..., m, k), with blocks along the last axis.
    b : BlockArray or cupy.ndarray
        Array of shape (..., k, n), with blocks along the second-to-last axis. One of
        the operands may be an array without blocks. Its dtype is a format of this
        package, float16, float32, bool, or an integer dtype that float32 represents.
    terms : {1, 3, 4}, optional
        Terms to compute if there are residuals: only hi hi, all but lo lo, or all
        (default: all).
    dtype : dtype
        Dtype of the result (default: float32), to which the float32 sums are rounded
        once, ties to even.
    out : cupy.ndarray, optional
        Array to write the result to.

    Returns
    -------
    cupy.ndarray
        Array of shape (..., m, n); `out` if given.

    Raises
    ------
    TypeError
        If an operand has another type or dtype, or if neither is an array of blocks.
    ValueError
        If shapes, block axes, block sizes or `terms` do not match, or if the current
        mode does not support the operands.

    See Also
    --------
    quantize : Round numbers to blocks on the GPU.
    tf32dtype.blocks.matmul : Multiply arrays of blocks on the CPU.
    tf32dtype.cuda.matmul_mode : Use tensor cores instead.

    Examples
    --------
    >>> import numpy as np, tf32dtype.cuda as tfc
    >>> a = tfc.blocks.quantize(tfc.asarray(np.ones((2, 64), np.float32)), "mxfp8")
    >>> tfc.blocks.matmul(a, a.T).get()
    array([[64., 64.],
           [64., 64.]], dtype=float32)
    """
    wanted = find_dtype(dtype)
    if not (is_ours(wanted) or wanted.kind == "f"):
        raise TypeError(f"dtype must be a floating-point dtype; got {wanted}")
    if terms not in (None, 1, 3, 4):
        raise ValueError(one_of("terms", terms, (1, 3, 4, None)))
    left, right = _operand(a, "a", -1), _operand(b, "b", -2)
    shape, batch = _fit(a, b, left, right)
    mode = current_mode()
    if mode.name == "model":
        raise ValueError(
            "mode='model' does not multiply arrays of blocks on a GPU; use"
            " tf32dtype.tensor_core.matmul on the CPU, with x.get()"
        )
    if mode.name == "native":
        native.check(left, right)
        check_instruction(mode.instruction)
        left, right = native.bytewise(a, left), native.bytewise(b, right)
    if out is not None:
        out = as_target(out, wanted, shape)
    matrices = (*batch, left.lines, right.lines)
    direct = (
        out is not None
        and out.dtype == wanted == FLOAT32
        and out.flags.c_contiguous
        and out.shape == shape
        and not any(cupy.may_share_memory(out, _memory(x)) for x in (a, b))
    )
    sums = out.reshape(matrices) if direct else cupy.empty(matrices, FLOAT32)
    if sums.size and left.k == 0:
        backend.current().call("copyto", sums, np.float32(0))
    elif sums.size:
        machine = backend.current()
        plan = _plan(
            lines_of(left), lines_of(right), batch, _levels(left, right, terms), mode,
            (machine.architecture(), machine.processors(), wide.ENABLED),
        )  # fmt: skip
        arrays = (*left.arrays, *right.arrays, sums)
        views = [
            layout.view(x.data) for layout, x in zip(plan.layouts, arrays, strict=True)
        ]
        for starts in places(plan.others, len(views)):
            plan.write(*(x.at(i) for x, i in zip(views, starts, strict=True)))
    if direct:
        return out
    result = cast(sums, wanted).reshape(shape)
    if out is not None:
        copy_into(result, out)
        return out
    return result


# -- operands --------------------------------------------------------------------------


def _memory(x: Any) -> Any:
    """Return the array that stores an operand's bytes."""
    return x.buffer if isinstance(x, Blocks) else x


def _operand(x: Any, name: str, axis: int) -> Operand:
    if isinstance(x, Blocks) and isinstance(x.buffer, cupy.ndarray):
        axis = max(axis, -x.ndim)
        if x.axis - x.ndim != axis:
            raise ValueError(
                f"{name} must have its blocks along k, which is axis {axis}; got blocks"
                f" along axis {x.axis} of shape {x.shape}"
            )
        plan = x._layout
        found = places_of(
            plan.row, plan.shape, plan.axis, plan.block_size, plan.scale_format
        )
        start = x.buffer.data
        hi, scales, *residuals = (
            View(BYTE, start + first, shape, steps) for first, shape, steps in found
        )
        lo = residuals[0] if residuals else None
        return Operand(hi, lo, kernels.scale_numbers(plan, scales), plan, plan.length)
    if not isinstance(x, cupy.ndarray):
        raise TypeError(
            f"{name} must be an array on a GPU; got"
            f" {type(x).__module__}.{type(x).__name__}. Use tf32dtype.cuda.asarray or"
            " tf32dtype.cuda.blocks.asarray"
        )
    if not (is_ours(x.dtype) or np.can_cast(x.dtype, FLOAT32)):
        raise TypeError(
            f"{name} must have a dtype that float32 represents; got {x.dtype}. Use"
            f" {name}.astype(np.float32)"
        )
    if x.ndim == 0:
        raise ValueError(f"{name} must have at least one axis; got a scalar")
    numbers = plain(cast(x, FLOAT32))
    if x.ndim == 1:
        numbers = numbers[np.newaxis]
    elif axis == -2:
        numbers = numbers.swapaxes(-1, -2)
    return Operand(numbers, None, None, None, numbers.shape[-1])


def _fit(
    a: Any, b: Any, left: Operand, right: Operand
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of the result, and the shape of its stack of matrices."""
    if left.layout is None and right.layout is None:
        raise TypeError(
            "a or b must be an array of blocks; for other arrays, use"
            " tf32dtype.cuda.matmul"
        )
    check_k(left.k, right.k, a.shape, b.shape)
    sizes = {x.layout.block_size for x in (left, right) if x.layout is not None}
    if len(sizes) > 1:
        raise ValueError(
            f"a and b must have the same block size; got {left.layout.block_size} and"
            f" {right.layout.block_size}"
        )
    batch = stack_of(left.batch, right.batch, a.shape, b.shape)
    if max(left.lines, right.lines, left.k) > LARGEST:
        raise ValueError(
            f"a and b must have at most {LARGEST} elements along an axis; got shapes"
            f" {a.shape} and {b.shape}"
        )
    rows, columns = (left.lines,) * (a.ndim > 1), (right.lines,) * (b.ndim > 1)
    return (*batch, *rows, *columns), batch


def _levels(left: Operand, right: Operand, terms: int | None) -> Levels:
    """Return the terms of a block, as pairs of levels of a and b; 1 means residuals."""
    found = tuple(
        (i, j)
        for i in range(1 if left.lo is None else 2)
        for j in range(1 if right.lo is None else 2)
    )
    if terms == 1:
        return found[:1]
    return tuple(x for x in found if terms != 3 or x != (1, 1))


# -- kernels ---------------------------------------------------------------------------


class _Plan(NamedTuple):
    """A plan of a product."""

    write: Writer  #: writes a piece of the product
    layouts: tuple[Matrices, ...]  #: layouts of the arrays of a piece
    others: tuple[Axis, ...]  #: axes at each position of which there is a piece


@lru_cache(maxsize=KEPT)
def _plan(
    a: Lines,
    b: Lines,
    batch: Shape,
    levels: Levels,
    mode: Mode,
    device: tuple[object, ...],
) -> _Plan:
    """Plan a product in a mode; `device` is only a key of the cache."""
    matrices = *batch, a.hi.shape[-2], b.hi.shape[-2]
    c = Matrices(matrices, lying(matrices, 4), FLOAT32)
    layouts, others = stacked((*a.arrays, *b.arrays, c), batch)
    x, y = Lines(*a[:4], *layouts[:3]), Lines(*b[:4], *layouts[3:6])
    *_, c = layouts
    if mode.name == "native":
        own = wgmma.plan if mode.instruction == "wgmma" else _plan_mma_sync
        write: Writer = in_c_order(partial(own, x, y, levels=levels), c)
    else:
        write = plan_chain(x, y, c, levels)
    return _Plan(write, layouts, others)


def _plan_mma_sync(a: Lines, b: Lines, c: Matrices, levels: Levels) -> Writer:
    """Plan products with the bits of mma.sync, by wgmma of float16 if possible."""
    write = native.plan(a, b, c, levels)
    if not wide.leads(c.shape) or a.block != native.LEAST:
        return write
    halves = wgmma.plan(a, b, c, levels, halves=True)

    def either(*arrays: View) -> None:
        try:
            halves(*arrays)
        except TensorMapError:  # only the driver knows whether it can make maps
            write(*arrays)

    return either


def options(left: Lines, right: Lines) -> tuple[str, ...]:
    """Return the compilation options for the elements of operands."""
    found = []
    for side, operand in (("A", left), ("B", right)):
        for level, name in zip(("HI", "LO"), operand.names, strict=True):
            element = "-1" if name is None else f"tf_element_{name}"
            found.append(f"-D{side}_{level}={element}")
    return tuple(found)


def _side(x: Lines) -> Any:
    side = np.zeros((), _SIDE)
    side["hi"] = x.hi.strides
    if x.levels == 0:
        _, down, across = x.hi.strides
        side["across"] = abs(down) < abs(across)
        return side
    side["scales"] = x.scales.strides[0] // 4
    side["pitch"] = x.scales.shape[2] // x.levels
    side["lo"] = x.lo.strides[:2]
    return side


def plan_chain(a: Lines, b: Lines, c: Matrices, levels: Levels) -> Launches:
    """Plan a @ b for c, (s, m, n), float32, in the order that `matmul` documents."""
    count, m, n = c.shape
    tiles = count * pieces(m, LARGE.rows) * pieces(n, LARGE.columns)
    tile = LARGE if tiles >= backend.current().processors() else SMALL
    kernel = Kernel("cuda/blocks/fma_matmul.cu", tile.kernel, options(a, b))
    task = np.zeros((), TASK)
    task["a"], task["b"], task["c"] = _side(a), _side(b), c.strides
    task["m"], task["n"], task["k"] = m, n, a.k
    task["block"] = a.block or b.block
    task["terms"] = len(levels)
    task["levels"] = sum((i + 2 * j) << 2 * t for t, (i, j) in enumerate(levels))
    told, blocks = Constant(task), pieces(m, tile.rows) * pieces(n, tile.columns)
    launches = []
    for first in range(0, count, MOST):
        parts = [x.part(0, first, MOST) for x in (*a.arrays, *b.arrays, c)]
        arrays = tuple((i, x.start) for i, x in enumerate(parts))
        grid = blocks, parts[-1].shape[0]
        launches.append(Launch(kernel, grid, (THREADS,), told, arrays, tile.shared))
    return Launches(tuple(launches))
