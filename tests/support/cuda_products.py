"""Compute products of arrays by the plans of tf32dtype.cuda._matmul."""

from __future__ import annotations

from typing import Any

import cupy

from tf32dtype.cuda._matmul.tile_options import Matrices


def by_plan(plan: Any, a: Any, b: Any, out: Any, *how: Any, **named: Any) -> None:
    """Plan a @ b with further arguments of `plan`, and write it to `out`.

    The arrays are matrices, or stacks with as many matrices as `out` or one.
    """
    layouts = []
    for x in (a, b, out):
        count = len(out) if out.ndim == 3 else 1
        stack = cupy.broadcast_to(x, (count, *x.shape[-2:]))
        layouts.append(Matrices.of(stack))
    views = (
        layout.view(x.data) for layout, x in zip(layouts, (a, b, out), strict=True)
    )
    plan(*layouts, *how, **named)(*views)
