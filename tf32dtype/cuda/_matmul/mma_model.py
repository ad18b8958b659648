"""Multiply matrices with the bits of a modeled tensor core, on any GPU.

The kernel is src/cuda/tensor_core/mma_model.cu.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, NamedTuple

from ...tensor_core.models import Aligned
from .._runtime import backend
from .._runtime.backend import KEPT, Constant, Kernel
from .stacks import of_stack
from .tile_options import MOST, Matrices, matrices, option, pieces, task

#: Rows and columns of C, and threads, per block of threads; k in shared memory.
ROWS, COLUMNS, THREADS, STAGE = 64, 64, 256, 32
_ELEMENTS = ROWS * COLUMNS // THREADS
_NONE = -100000  # enum TF_NO_EXPONENT


def shared_memory() -> int:
    """Return the bytes of `struct tiles`."""
    lines = ROWS + COLUMNS + 8
    exponents = 4 * (ROWS + 4) + 2 * (COLUMNS + 4)
    return STAGE * (4 * lines + exponents) + 4 * THREADS * _ELEMENTS


def options(model: Aligned, a: Any, b: Any) -> tuple[str, ...]:
    """Return the compilation options for a model and the dtypes of operands."""
    least_a, least_b = model.least_exponents
    zero_c = model.zero_c_exponent
    fields = {
        "GROUP": model.depth,
        "INSTRUCTION": model.instruction_depth,
        "FRACTION": model.fraction,
        "KEPT": model.kept,
        "HALF": int(model.accumulator == "float16"),
        "LEAST_A": least_a,
        "LEAST_B": least_b,
        "EMULATED": int(model.emulated),
        "CUT_FIRST": model.cut_first or 0,
        "FLOOR": _NONE if model.floor is None else model.floor,
        "ZERO_C": _NONE if zero_c is None else zero_c,
        "ZERO_PRODUCTS": int(model.zero_products),
        "NEGATIVE_ZERO": int(model.negative_zero),
    }
    return (
        option("A_FORMAT", a),
        option("B_FORMAT", b),
        *(f"-DMODEL_{name}={value}" for name, value in fields.items()),
    )


def product(
    a: Any,
    b: Any,
    out: Any,
    model: Aligned,
    *,
    continues: bool = False,
    exactly: bool = False,
) -> None:
    """Write a @ b to `out` as the model computes it.

    Shapes are (s, m, k), (s, k, n) and (s, m, n), or without s.

    Parameters
    ----------
    a, b : cupy.ndarray
        Arrays of the model's formats, with any strides. One matrix, or a stack of one,
        is multiplied by all matrices of the other operand.
    out : cupy.ndarray
        Array of the accumulators' dtype. It must not overlap the operands.
    model : Aligned
        A row of `tensor_core.MODELS` whose sums are aligned.
    continues : bool
        Whether the accumulators begin with the values of `out`, instead of +0.
    exactly : bool
        Whether to compute all sums by the integers of src/tensor_core/mma_model.h. By
        default only sums that need this exact fallback use it. The bits are the same.
    """
    if 0 in out.shape or (continues and a.shape[-1] == 0):
        return
    count = len(out) if out.ndim == 3 else 1
    wide = MOST * COLUMNS
    if count > MOST or out.shape[-1] > wide:
        how = {"continues": continues, "exactly": exactly}
        for first, left in itertools.product(
            range(0, count, MOST), range(0, out.shape[-1], wide)
        ):
            part = slice(first, first + MOST)
            x, y, z = (of_stack(x, count, part) for x in (a, b, out))
            y, z = (array[..., left : left + wide] for array in (y, z))
            product(x, y, z, model, **how)
        return
    told = _plan(
        matrices(a, count),
        matrices(b, count),
        matrices(out, count),
        (a.dtype, b.dtype),
        model,
        continues,
        exactly,
    )
    backend.current().launch(
        told.kernel, told.grid, (THREADS,), told.task, a, b, out, shared=told.shared
    )


class _Plan(NamedTuple):
    """A launch that computes a product, without the addresses of its operands."""

    kernel: Kernel
    grid: tuple[int, int, int]
    task: Constant
    shared: int


@lru_cache(maxsize=KEPT)
def _plan(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    dtypes: tuple[Any, Any],
    model: Aligned,
    continues: bool,
    exactly: bool,
) -> _Plan:
    count, m, n = c.shape
    return _Plan(
        Kernel("cuda/tensor_core/mma_model.cu", "model", options(model, *dtypes)),
        (pieces(m, ROWS), pieces(n, COLUMNS), count),
        task(a, b, c, continues=continues, exactly=exactly),
        shared_memory(),
    )
