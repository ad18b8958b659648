"""Which of the arithmetics that sources claim is the one that a GPU showed.

For each contested point its probes are computed under each alternative, by an evaluator
that is passed in: `evaluate(model, a, b, c) -> d`, all float32's bits, as
`tf32dtype._core.tensor_blocks` has it. What alone agrees with every result holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..tensor_core.models import CONTESTED, Model
from .builder import Probes
from .units import FORMATS, Bits, Unit, decode, encode

Evaluator = Callable[[Model, Bits, Bits, Bits], Bits]

UNDECIDED = "undecided"
TF32_MASK = np.uint32(0xFFFFE000)
QUIET_NAN = np.uint32(0x7FC00000)


class Result(NamedTuple):
    """What a unit returned for probes: `d` is float32's bits, as `c` is."""

    unit: Unit
    #: the model of the device that it ran on; None where nothing is modelled
    model: Model | None
    probes: Probes
    d: Bits


class Way(NamedTuple):
    """One way to compute: a value of a contested point."""

    value: object
    evaluate: Evaluator


# -- how operands and results go through an evaluator ----------------------------------


def read_tf32(bits: Bits, low_bits_nan: bool = False) -> Bits:
    """What a unit sees of float32's bits: a NaN by low bits alone is Inf, or is one."""
    seen = bits & TF32_MASK
    if low_bits_nan:
        nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
        seen = np.where(nan, bits & np.uint32(0x80000000) | QUIET_NAN, seen)
    return seen


def prepared(evaluate: Evaluator, low_bits_nan: bool = False) -> Evaluator:
    """An evaluator that is given tf32 operands as units are: with low bits."""

    def run(model: Model, a: Bits, b: Bits, c: Bits) -> Bits:
        if model.a == "tf32":
            a, b = read_tf32(a, low_bits_nan), read_tf32(b, low_bits_nan)
        return evaluate(model, a, b, c)

    return run


def by_way_of_13_bits(evaluate: Evaluator) -> Evaluator:
    """Blocks whose sums are cut to 13 bits, and then rounded to float16."""

    def run(model: Model, a: Bits, b: Bits, c: Bits) -> Bits:
        wide = replace(model, accumulator="float32", kept=model.fraction)
        sums = prepared(evaluate)(wide, a, b, c).view(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            half = sums.astype(np.float16).view(np.uint16)
        half = np.where(np.isnan(sums), np.uint16(0x7FFF), half)
        if not model.negative_zero:
            half = np.where(half == 0x8000, np.uint16(0), half)
        return decode(FORMATS["float16"], half)

    return run


# -- the points ------------------------------------------------------------------------

Ways = Callable[[Unit, Model, Evaluator], Iterable[Way]]


class Point(NamedTuple):
    """Where a contested point shows, and the ways to compute what is asked there.

    There are no ways where a unit does not concern it.
    """

    groups: tuple[str, ...]
    ways: Ways


def _with(evaluate: Evaluator, **changes: object) -> Evaluator:
    def run(model: Model, a: Bits, b: Bits, c: Bits) -> Bits:
        return prepared(evaluate)(replace(model, **changes), a, b, c)  # type: ignore[arg-type]

    return run


def _field(name: str) -> Ways:
    """Ways of a point that is a field of `Model`."""

    def ways(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
        point = CONTESTED[name]
        for value in (point.value, *point.alternatives):
            yield Way(value, _with(evaluate, **{name: value}))

    return ways


def _floors(unit: Unit, model: Model) -> tuple[int | None, ...]:
    """None, the published one, and what else could be and would show.

    Not -126: for float32 it is the same as that exponent for a zero c.
    """
    published = CONTESTED["floor"].value
    assert isinstance(published, dict)
    middle = published.get((model.accumulator, model.fraction))
    if middle is None:
        return (None,)
    least = sum(f.least_exponent - f.mantissa_bits for f in (unit.a, unit.b))
    shown = range(max(middle - 6, least + model.fraction + 1), middle + 7)
    return None, *(x for x in {middle, *shown} if x != -126)


def _least(name: str) -> Ways:
    """Ways of the floor and of a zero c's exponent, which show in the same sums."""

    def ways(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
        for floor in _floors(unit, model):
            for exponent in (None, *CONTESTED["zero_c_exponent"].alternatives):
                changes = {"floor": floor, "zero_c_exponent": exponent}
                yield Way(changes[name], _with(evaluate, **changes))

    return ways


def _tf32_depth(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
    if model.a == "tf32" and unit.k == 8 and model.fraction == 25:
        for depth in (8, 4):
            yield Way(depth, _with(evaluate, depth=depth))


def _low_bits(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
    if model.a == "tf32":
        for value in (False, True):
            yield Way(value, prepared(evaluate, value))


def _turing(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
    if model.device == "T4" and unit.k == 8:
        point = CONTESTED["block of Turing"]
        for value in (point.value, *point.alternatives):
            assert isinstance(value, tuple)
            yield Way(value, _with(evaluate, depth=value[0], fraction=value[1]))


def _half_sums(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
    if model.instruction == "wgmma" and unit.half and unit.a.storage == 8:
        point = CONTESTED["wgmma fp8 into float16"]
        yield Way(point.value, prepared(evaluate))
        yield Way(point.alternatives[0], by_way_of_13_bits(evaluate))


def _fp8_of_16(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
    """As the assembler of CUDA 13 has it, or otherwise."""
    if model.emulated and unit.k == 16:
        yield Way("two blocks of 8 and an addition", prepared(evaluate))
        yield Way("one block of 16", _with(evaluate, emulated=False, depth=16))
        yield Way("two blocks of 8 in order", _with(evaluate, emulated=False, depth=8))


def _nowhere(unit: Unit, model: Model, evaluate: Evaluator) -> Iterable[Way]:
    """No unit shows it: tcgen05 alone does, or no model here has the alternative."""
    return ()


#: By the names of `CONTESTED`, all of them. What is found of the first holds below it.
POINTS = {
    "negative_zero": Point(("negzero",), _field("negative_zero")),
    "zero_products": Point(("zexp",), _field("zero_products")),
    "zero_c_exponent": Point(("zeroc", "floor"), _least("zero_c_exponent")),
    "floor": Point(("zeroc", "floor"), _least("floor")),
    "depth of tf32 on Hopper and Blackwell": Point(("group", "order"), _tf32_depth),
    "low_bits_nan": Point(("lowbits",), _low_bits),
    "block of Turing": Point(("group", "order", "align", "final"), _turing),
    "wgmma fp8 into float16": Point(("twice", "final", "carry"), _half_sums),
    "m16n8k16 of fp8 on sm_90 and sm_100": Point(
        ("group", "order", "final"), _fp8_of_16
    ),
    "scale_input_d": Point((), _nowhere),
    "float4_subnormals": Point((), _nowhere),
}


def settle_unit(result: Result, evaluate: Evaluator) -> dict[str, object]:
    """What one unit's results say of each point that they concern.

    A value, or `UNDECIDED` where several agree with all results, or none does.
    """
    unit, model, probes, d = result
    if model is None:
        return {}
    said: dict[str, object] = {}
    for name, point in POINTS.items():
        at = np.flatnonzero(np.isin(probes.group, point.groups))
        ways = list(point.ways(unit, model, evaluate))
        if not ways or not len(at):
            continue
        a, b, c, wanted = probes.a[at], probes.b[at], probes.c[at], d[at]
        holding = [
            way.value
            for way in ways
            if np.array_equal(way.evaluate(model, a, b, c), wanted)
        ]
        said[name] = _agreed(holding)
        if name == "negative_zero" and said[name] is True:
            model = replace(model, negative_zero=True)
    return said


def settle(results: Iterable[Result], evaluate: Evaluator) -> dict[str, object]:
    """Which alternative of each point holds, over all results.

    Parameters
    ----------
    results : iterable of Result
        Of units of one device.
    evaluate : callable
        `evaluate(model, a, b, c) -> d` on float32's bits.

    Returns
    -------
    dict
        By the names of `CONTESTED` a value, or `UNDECIDED`: where no unit shows it, or
        they say different things. For "floor" it is a mapping like that of `CONTESTED`,
        of the accumulators and fraction bits that were seen to have one.
    """
    said = [(result, settle_unit(result, evaluate)) for result in results]
    return merge((result.model, units) for result, units in said)


def merge(
    said: Iterable[tuple[Model | None, Mapping[str, object]]],
) -> dict[str, object]:
    """What units say, as one word for each point."""
    values: dict[str, list[object]] = {name: [] for name in POINTS}
    floors: dict[tuple[str, int], list[object]] = {}
    for model, points in said:
        for name, value in points.items():
            if value == UNDECIDED:
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


def recorded(unit: Unit, d: Bits) -> Bits:
    """Results as the unit leaves them, as float32's bits."""
    return decode(unit.accumulator, d) if unit.half else d


def raw(unit: Unit, d: Bits) -> Bits:
    """The reverse of `recorded`."""
    return encode(unit.accumulator, d).astype(np.uint32) if unit.half else d
