"""Find out how results were computed, if all of their bits are those of a known way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._formats.quantize import Tf32Rounding, quantize
from .._formats.table import formats
from ..tensor_core.epilogues import as_results
from ..tensor_core.identification import identify
from ..tensor_core.models import Model
from ..tensor_core.products import matmul
from .request import Request
from .units import Unit

Array = NDArray[Any]

#: Hypotheses whose results are compared with all of d.
_TRIED = 3


def origin(asked: Request, unit: Unit, rounding: Tf32Rounding | None) -> str | None:
    """Return the known way that gives all bits, in words; None if there is none."""
    if asked.blocks is not None:
        return _of_blocks(asked, unit)
    model = unit.model
    assert model is None or isinstance(model, Model)
    form = {10: np.float16, 23: np.float32, 52: np.float64}[unit.form.kept]
    names = ("", "") if model is None else (model.a, model.b)
    a, b = (
        _as_read(x, name, rounding)
        for x, name in zip((asked.a, asked.b), names, strict=True)
    )
    given = (a, b, None if asked.c is None else asked.c.astype(form))
    options: dict[str, Any] = {
        "alpha": asked.alpha,
        "beta": asked.beta,
        "bias": asked.bias,
        "scale_a": asked.scale_a,
        "scale_b": asked.scale_b,
    }
    name: Any = unit.name if model is None else model.device
    instruction = None if model is None else model.instruction
    try:
        found = identify(*given, asked.d, unit=name, instruction=instruction, **options)
    except (TypeError, ValueError):  # a product that the search does not know
        return None
    for hypothesis in found[:_TRIED]:
        is_whole = hypothesis.compared == asked.d.size
        if is_whole or _equal(hypothesis.matmul(*given, **options), asked.d):
            return hypothesis.name
    return None


def _as_read(x: Array, name: str, rounding: Tf32Rounding | None) -> Array:
    """Return an operand as a unit reads it."""
    if name == "tf32" and x.dtype == np.float32:
        dtype = formats["tf32"].dtype
        return quantize(x, dtype, rounding=rounding or "toward_zero")
    return x


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
