"""The units whose results can be checked: matrix units, and float32 or float64 code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.wording import brief, one_of
from .._formats.quantize import Rounding, Tf32Rounding, quantize
from .._formats.table import formats
from ..tensor_core.block_scaled import BlockScaled
from ..tensor_core.look_up import devices
from ..tensor_core.models import LEAST_EXPONENTS, Model
from ..tensor_core.products import as_operand, resolve
from .sizes import Sizes
from .unit_bounds import (
    FLOAT32,
    FLOAT64,
    OF_ACCUMULATOR,
    Bound,
    Format,
    bound_of_chain,
    bound_of_unit,
)

Array = NDArray[Any]

#: Names that others have for sums in float32.
_PLAIN_ALIASES = ("fp32", "f32", "single", "cpu", "cuda", "float")
#: Names of sums in a format, in any order, and their formats.
PLAIN = {"float32": FLOAT32, "float64": FLOAT64}


@dataclass(frozen=True)
class Unit:
    """How sums are computed: by the model of an instruction, or in a format."""

    #: the unit in words
    name: str
    #: format of the sums
    form: Format
    #: exponents of the smallest normal numbers of both operands
    least: tuple[int, int]
    #: the model; None for sums in a format
    model: Model | BlockScaled | None = None
    #: whether products are exact in the format of the sums
    exact: bool = False

    def bound(self, s: Sizes, k: int) -> Bound:
        """Return the bound of sums of k products."""
        if self.model is None:
            return bound_of_chain(s, k, self.form, exact=self.exact)
        return bound_of_unit(self.model, s, k)


def find_unit(
    name: object,
    instruction: str | None,
    a: Any,
    b: Any,
    accumulator: Any = None,
    rounding: Tf32Rounding | None = None,
) -> tuple[Unit, Array, Array]:
    """Return a unit, and operands as the unit reads them.

    Raises
    ------
    TypeError, ValueError
        For an unknown unit, or one that does not multiply these formats.
    """
    if isinstance(name, str) and name in PLAIN:
        if instruction is not None:
            raise ValueError(
                f"instruction must be None with unit={name!r}; got {brief(instruction)}"
            )
        return plain_unit(name, as_operand(a, "a"), as_operand(b, "b"))
    if not (isinstance(name, str) and name in devices):
        known = (*devices, *PLAIN)
        if isinstance(name, str) and name.lower() in _PLAIN_ALIASES:
            raise ValueError(
                f"unit must be 'float32' for sums in float32; got {brief(name)}"
            )
        raise ValueError(one_of("unit", name, known, "td.tensor_core.devices"))
    device: Any = name
    try:
        model, x, y, _ = resolve(a, b, device, instruction, accumulator, rounding, None)
    except ValueError as error:
        if "cannot multiply" not in str(error):
            raise
        raise ValueError(
            f"{error}. For a unit without a model, use unit='float32' and a factor"
        ) from None
    return unit_of(model), x, y


def round_to(x: Array, name: str, rounding: Rounding) -> Array:
    """Return numbers rounded to a format; float16 is rounded to nearest."""
    with np.errstate(all="ignore"):
        if name == "float16":
            return x.astype(np.float16)
        found: Array = quantize(x, formats[name].dtype, rounding=rounding)
        return found


def unit_of(model: Model) -> Unit:
    """Return the unit of a model."""
    a, b = model.least_exponents  # type: ignore[attr-defined]
    return Unit(model.name, OF_ACCUMULATOR[model.accumulator], (a, b), model)


def plain_unit(name: str, a: Array, b: Array) -> tuple[Unit, Array, Array]:
    """Return the unit of sums in float32 or float64."""
    form = PLAIN[name]
    kept = [int(np.finfo(x.dtype).nmant) for x in (a, b)]
    least = [LEAST_EXPONENTS[x.dtype.name] for x in (a, b)]
    if max(kept) > form.kept:
        raise TypeError(
            f"a and b must be exact in float32 with unit='float32'; got {a.dtype} x"
            f" {b.dtype}. Use unit='float64'"
        )
    is_exact = sum(kept) + 2 <= form.kept + 1
    unit = Unit(name, form, (least[0], least[1]), None, is_exact)
    return unit, a, b
