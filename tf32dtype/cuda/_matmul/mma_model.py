"""Multiply matrices with the bits of a modeled tensor core, on any GPU.

The kernel is src/cuda/tensor_core/mma_model.cu.
"""

from __future__ import annotations

import itertools
from typing import Any

from ...tensor_core.models import Aligned
from .._runtime.backend import Kernel
from .tile_options import (
    MOST,
    A,
    B,
    C,
    Launch,
    Launches,
    Matrices,
    option,
    pieces,
    task,
)

FILE = "cuda/tensor_core/mma_model.cu"
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


def plan(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    model: Aligned,
    *,
    continues: bool = False,
    exactly: bool = False,
) -> Launches:
    """Plan a @ b as the model computes it.

    Parameters
    ----------
    a, b : Matrices
        Operands (s, m, k) and (s, k, n) of the model's formats, with any strides.
    c : Matrices
        Result (s, m, n) of the accumulators' dtype. It must not overlap the operands.
    model : Aligned
        A row of `tensor_core.MODELS` whose sums are aligned.
    continues : bool
        Whether the accumulators begin with the values of `c`, instead of +0.
    exactly : bool
        Whether to compute all sums by the integers of src/tensor_core/mma_model.h. By
        default only sums that need this exact fallback use it. The bits are the same.
    """
    if 0 in c.shape or (continues and a.shape[2] == 0):
        return Launches()
    kernel = Kernel(FILE, "model", options(model, a.dtype, b.dtype))
    count, _, n = c.shape
    wide = MOST * COLUMNS
    launches = []
    for first, left in itertools.product(range(0, count, MOST), range(0, n, wide)):
        x, y, z = (i.part(0, first, MOST) for i in (a, b, c))
        y, z = (i.part(2, left, wide) for i in (y, z))
        stacks, rows, columns = z.shape
        launches.append(
            Launch(
                kernel,
                (pieces(rows, ROWS), pieces(columns, COLUMNS), stacks),
                (THREADS,),
                task(x, y, z, continues=continues, exactly=exactly),
                ((A, x.start), (B, y.start), (C, z.start)),
                shared_memory(),
            )
        )
    return Launches(tuple(launches))
