"""Find out how results were computed, if all of their bits are those of a known way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tensor_core.epilogues import as_results
from ..tensor_core.identification import identify
from ..tensor_core.products import matmul
from .request import Request
from .units import Unit

Array = NDArray[Any]

#: Hypotheses whose results are compared with all of d.
_TRIED = 3


def origin(asked: Request, read: Any, search: bool) -> str | None:
    """Return the known way that gives all bits, in words; None if there is none."""
    unit = read(*asked.matrices_of(0))[0]
    if asked.blocks is not None:
        return _of_blocks(asked, unit)
    model = unit.model
    pairs = [read(*asked.matrices_of(i))[1:] for i in range(len(asked.d))]
    a, b = (np.stack([pair[j] for pair in pairs]) for j in (0, 1))
    given = (a, b, None if asked.c is None else asked.c.astype(unit.form.dtype))
    options: dict[str, Any] = {
        "alpha": asked.alpha,
        "beta": asked.beta,
        "bias": asked.bias,
        "scale_a": asked.scale_a,
        "scale_b": asked.scale_b,
    }
    device: Any = unit.name if model is None else model.device
    instruction = None if model is None else model.instruction
    try:
        found = identify(
            *given,
            asked.d,
            unit=device,
            instruction=instruction,
            one_chain=not search,
            **options,
        )
    except (TypeError, ValueError):  # a product that the search does not know
        return None
    for hypothesis in found[:_TRIED]:
        is_whole = hypothesis.compared == asked.d.size
        if is_whole or _equal(hypothesis.matmul(*given, **options), asked.d):
            others = len(found) - 1
            more = f", as {others:,} other ways do" if others > 0 else ""
            return f"{hypothesis.name}{more}"
    return None


def _of_blocks(asked: Request, unit: Unit) -> str | None:
    """Compare with the product of arrays of blocks, as one chain."""
    assert asked.blocks is not None
    assert unit.model is not None
    is_plain = asked.bias is None and asked.c is None and asked.own_alpha == 1
    if not is_plain or asked.d.size < asked.size:
        return None
    device: Any = unit.model.device
    instruction: Any = unit.model.instruction
    sums = np.asarray(matmul(*asked.blocks, device=device, instruction=instruction))
    for saturates in (False, True):
        found = as_results(sums.reshape(asked.d.shape), asked.d.dtype, saturates)
        if _equal(found, asked.d):
            return f"{unit.name}, one chain"
    return None


def _equal(x: Array, y: Array) -> bool:
    """Return whether all bits are equal; any two NaN count as equal."""
    bits = f"u{x.dtype.itemsize}"
    same = (x.view(bits) == y.view(bits)) | (np.isnan(x) & np.isnan(y))
    return bool(same.all())
