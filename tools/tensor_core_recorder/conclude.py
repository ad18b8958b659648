"""Conclude which of the arithmetics that sources claim a GPU uses.

The probes of each contested point are computed under each alternative. A value holds if
it is the only one that agrees with every result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tf32dtype._core import mma_accumulate
from tf32dtype.tensor_core import models
from tf32dtype.tensor_core.models import Aligned

from .instructions import Bits, Unit
from .operand_builder import Probes

#: several values of a point agree with the results, or no value does
UNDECIDED, UNEXPLAINED = "undecided", "unexplained"


class Result(NamedTuple):
    """The results of a unit for probes: `d` has float32's bits, like `c`."""

    unit: Unit
    #: the model of the unit on its device; None if there is no model
    model: Aligned | None
    probes: Probes
    d: Bits


# -- ways to compute -------------------------------------------------------------------

#: Computes d from a, b and c.
Way = Callable[[Bits, Bits, Bits], Bits]


def changed(model: Aligned, **changes: Any) -> Way:
    """Return a way to compute by the model with these fields changed."""
    return partial(mma_accumulate, replace(model, **changes))


def seeing_low_bits(model: Aligned) -> Way:
    """Return a way in which the low bits of float32 decide whether tf32 is NaN.

    The model reads a NaN that has only bits below tf32's as Inf.
    """

    def seen(bits: Bits) -> Bits:
        nan = np.isnan(bits.view(np.float32))
        return np.where(nan, np.uint32(0x7FC00000), bits)

    return lambda a, b, c: mma_accumulate(model, seen(a), seen(b), c)


# -- the points ------------------------------------------------------------------------

#: The values of a point with their ways to compute; empty if a unit does not show it.
Ways = Iterable[tuple[object, Way]]


class Point(NamedTuple):
    """The groups of probes that show a contested point, and its ways to compute."""

    groups: tuple[str, ...]
    ways: Callable[[Unit, Aligned], Ways]


def _values(name: str) -> tuple[Any, ...]:
    return models.POINTS[name].value, *models.POINTS[name].alternatives


def _field(name: str) -> Callable[[Unit, Aligned], Ways]:
    """Return the ways of a point that is a field of `Aligned`."""

    def ways(unit: Unit, model: Aligned) -> Ways:
        return [(value, changed(model, **{name: value})) for value in _values(name)]

    return ways


def _floors(unit: Unit, model: Aligned) -> tuple[int | None, ...]:
    """Return None, the published floor, and the floors near it that results can show.

    -126 is left out: for float32 it has the same effect as that exponent of a zero c.
    """
    published = models.POINTS["floor"].value
    assert isinstance(published, dict)
    middle = published.get((model.accumulator, model.fraction))
    if middle is None:
        return (None,)
    least = sum(f.least_exponent - f.mantissa_bits for f in (unit.a, unit.b))
    shown = range(max(middle - 6, least + model.fraction + 1), middle + 7)
    return None, *(x for x in {middle, *shown} if x != -126)


def _least(name: str) -> Callable[[Unit, Aligned], Ways]:
    """Return the ways of the floor or a zero c's exponent; the same sums show both."""

    def ways(unit: Unit, model: Aligned) -> Ways:
        for floor in _floors(unit, model):
            for exponent in _values("zero_c_exponent"):
                changes = {"floor": floor, "zero_c_exponent": exponent}
                yield changes[name], changed(model, **changes)

    return ways


def _tf32_depth(unit: Unit, model: Aligned) -> Ways:
    if model.a == "tf32" and unit.k == 8 and model.fraction == 25:
        for depth in _values("depth of tf32 on Hopper and Blackwell"):
            yield depth, changed(model, depth=depth)


def _low_bits(unit: Unit, model: Aligned) -> Ways:
    if model.a == "tf32":
        yield False, changed(model)
        yield True, seeing_low_bits(model)


@dataclass(frozen=True)
class _Float4(Aligned):
    """A model with another exponent of float4's only subnormal number."""

    subnormals: int = 0

    @property
    def least_exponents(self) -> tuple[int, int]:
        a, b = super().least_exponents
        return (
            self.subnormals if self.a == "float4_e2m1fn" else a,
            self.subnormals if self.b == "float4_e2m1fn" else b,
        )


def _float4(unit: Unit, model: Aligned) -> Ways:
    if "float4_e2m1fn" in (model.a, model.b):
        for value in _values("float4_subnormals"):
            yield value, changed(_Float4(**vars(model), subnormals=value))


def _turing(unit: Unit, model: Aligned) -> Ways:
    if model.device == "T4" and unit.k == 8:
        for depth, fraction in _values("block of Turing"):
            yield (depth, fraction), changed(model, depth=depth, fraction=fraction)


def _half_sums(unit: Unit, model: Aligned) -> Ways:
    if model.instruction == "wgmma" and unit.half and unit.a.storage == 8:
        once, twice = _values("wgmma fp8 into float16")
        yield once, changed(model)
        yield twice, changed(model, cut_first=13)


def _fp8_of_16(unit: Unit, model: Aligned) -> Ways:
    """Yield the way of CUDA 13's assembler, and two others."""
    if model.emulated and unit.k == 16:
        yield "two blocks of 8 and an addition", changed(model)
        yield "one block of 16", changed(model, emulated=False, depth=16)
        yield "two blocks of 8 in order", changed(model, emulated=False, depth=8)


#: The points that units can show, by the names of `models.POINTS`, and a last one on
#: which no row of that table depends. The conclusion on the first point is used for all
#: later points. "scale_input_d" concerns tcgen05, and "zero_terms" concerns
#: block-scaled instructions: no unit shows them.
POINTS = {
    "negative_zero": Point(("negzero",), _field("negative_zero")),
    "zero_products": Point(("zexp",), _field("zero_products")),
    "zero_c_exponent": Point(("zeroc", "floor"), _least("zero_c_exponent")),
    "floor": Point(("zeroc", "floor"), _least("floor")),
    "depth of tf32 on Hopper and Blackwell": Point(("group", "order"), _tf32_depth),
    "low_bits_nan": Point(("lowbits",), _low_bits),
    "float4_subnormals": Point(("subexp",), _float4),
    "block of Turing": Point(("group", "order", "align", "final"), _turing),
    "wgmma fp8 into float16": Point(("twice", "final", "carry"), _half_sums),
    "m16n8k16 of fp8 on sm_90 and sm_100": Point(
        ("group", "order", "final"), _fp8_of_16
    ),
}


def conclude_unit(result: Result) -> dict[str, object]:
    """Return the conclusion from one unit's results on each point that they show.

    Parameters
    ----------
    result : Result

    Returns
    -------
    dict
        By the names of `POINTS`, the only value that agrees with all results, or
        `UNDECIDED`, or `UNEXPLAINED`. Empty without a model.
    """
    unit, model, probes, d = result
    said: dict[str, object] = {}
    if model is None:
        return said
    for name, point in POINTS.items():
        at = np.isin(probes.group, point.groups)
        ways = list(point.ways(unit, model))
        if not ways or not at.any():
            continue
        operands = probes.a[at], probes.b[at], probes.c[at]
        holding = [
            value for value, way in ways if np.array_equal(way(*operands), d[at])
        ]
        said[name] = _agreed(holding) if holding else UNEXPLAINED
        if name == "negative_zero" and said[name] is True:
            model = replace(model, negative_zero=True)
    return said


def conclude(
    said: Iterable[tuple[Aligned | None, Mapping[str, object]]],
) -> dict[str, object]:
    """Return the value of each contested point that holds for a device.

    Parameters
    ----------
    said : iterable of (Aligned or None, mapping)
        The models of the device's units, and what `conclude_unit` returned for them.

    Returns
    -------
    dict
        By the names of `POINTS` and `models.POINTS`, a value, or `UNDECIDED` if no unit
        shows the point, or if units disagree. Unexplained results do not count. For
        "floor" the value is a mapping like that of `models.POINTS`, of the accumulators
        and fraction bits that have a floor in the results.
    """
    values: dict[str, list[object]] = {name: [] for name in (*models.POINTS, *POINTS)}
    floors: dict[tuple[str, int], list[object]] = {}
    for model, points in said:
        for name, value in points.items():
            if value in (UNDECIDED, UNEXPLAINED):
                continue
            if name == "floor":
                assert model is not None
                floors.setdefault((model.accumulator, model.fraction), []).append(value)
            else:
                values[name].append(value)
    settled = {name: _agreed(found) for name, found in values.items()}
    each = {key: _agreed(found) for key, found in floors.items()}
    if each and UNDECIDED not in each.values():
        settled["floor"] = {
            key: value for key, value in each.items() if value is not None
        }
    return settled


def _agreed(values: list[object]) -> object:
    return values[0] if values and all(v == values[0] for v in values) else UNDECIDED
