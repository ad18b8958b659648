"""Every wrong neighbor of a matrix unit shows in the cases that test the C.

A neighbor is a row with another parameter, or a unit that does one thing wrong. Where a
neighbor cannot show, `equal_because` gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

from tests.reference import rounded
from tests.reference.formats import FLOAT16, FLOAT32
from tests.reference.matrix_units import unit
from tests.reference.tensor_core import ZERO, Mutation
from tests.tensor_core.cases import (
    WITH_CASES,
    Bounds,
    Cases,
    by_parameters,
    lists,
    named,
    random_cases,
)
from tests.tensor_core.edge_cases import edges
from tf32dtype.tensor_core.rounded import Arithmetic, Flushed, Rounded

pytestmark = pytest.mark.once


class Neighbor(NamedTuple):
    name: str
    model: Any
    mutation: Mutation | rounded.Mutation | None = None


def of_parameters(m: Any) -> Iterator[Neighbor]:
    """Yield rows with another parameter."""
    for name, changes in {
        "fraction + 1": {"fraction": m.fraction + 1},
        "fraction - 1": {"fraction": m.fraction - 1},
        "kept - 1": {"kept": m.kept - 1},
        "zero products count": {"zero_products": not m.zero_products},
        "a zero c counts": {"zero_c_exponent": ZERO},
        "negative zero": {"negative_zero": not m.negative_zero},
        "cut first": {"cut_first": 12 if m.cut_first is None else None},
    }.items():
        yield Neighbor(name, replace(m, **changes))
    if m.accumulator == "float32" and m.kept < 23:
        yield Neighbor("kept + 1", replace(m, kept=m.kept + 1))
    if m.floor is not None:
        for floor in (None, m.floor - 1, m.floor + 1):
            yield Neighbor(f"floor {floor}", replace(m, floor=floor))
    if m.emulated:
        fused = {"emulated": False, "depth": 32}
        yield Neighbor("not emulated", replace(m, **fused))
        yield Neighbor("not emulated, two blocks", replace(m, emulated=False))
    else:
        yield Neighbor("half the depth", replace(m, depth=m.depth // 2))
        length = max(m.instruction_depth, 2 * m.depth)
        twice = {"depth": 2 * m.depth, "instruction_depth": length}
        yield Neighbor("twice the depth", replace(m, **twice))


def of_units(m: Any) -> Iterator[Neighbor]:
    """Yield units that do one thing wrong."""
    wrong = {
        "flushed operands": Mutation(flush_operands=True),
        "flushed c": Mutation(flush_c=True),
        "flushed results": Mutation(flush_results=True),
        "renormalized products": Mutation(renormalise_products=True),
        "normalized operands": Mutation(normalise_operands=True),
        "reversed blocks": Mutation(reversed_blocks=True),
    }
    for name in ("ties_to_even", "ties_to_away", "toward_negative", "sticky"):
        wrong[f"aligned {name}"] = Mutation(alignment=name)
    for name in ("toward_zero", "ties_to_even", "ties_to_away", "toward_negative"):
        if name != m.rounding:
            wrong[f"rounded {name}"] = Mutation(rounding=name)
    if m.accumulator == "float16":
        wrong["rounded twice"] = Mutation(rounding="twice")
    if m.emulated:
        wrong["c in the first block"] = Mutation(c_inside=True)
        wrong["added toward zero"] = Mutation(addition="toward_zero")
        for halves in ("swapped", "even", "low"):
            wrong[f"halves {halves}"] = Mutation(halves=halves)
    else:
        wrong["c outside of the sum"] = Mutation(c_outside=True)
    for name, mutation in wrong.items():
        yield Neighbor(name, m, mutation)


# -- units that round otherwise than aligned sums --------------------------------


def of_rounded_parameters(m: Rounded) -> Iterator[Neighbor]:
    """Yield rows with another parameter."""
    if m.depth > 1:
        yield Neighbor("half the depth", replace(m, depth=m.depth // 2))
    length = max(m.instruction_depth, 2 * m.depth)
    twice = replace(m, depth=2 * m.depth, instruction_depth=length)
    yield Neighbor("twice the depth", twice)
    if m.lanes:
        yield Neighbor("other lanes", replace(m, lanes=3 - m.lanes))
    if m.arithmetic == "fused":
        lanes = 0 if m.lanes else 1
        yield Neighbor("no chains, or one", replace(m, lanes=lanes))
        if m.lanes:
            other = 0.0 if str(m.start) == "-0.0" else -0.0
            yield Neighbor("other start", replace(m, start=other))
            length = 2 * m.instruction_depth
            yield Neighbor("long chains", replace(m, instruction_depth=length))
        elif m.depth == 1 and m.instruction_depth > 1:
            yield Neighbor("other order", replace(m, odd_first=not m.odd_first))
    if m.arithmetic != "two stages":
        odd = "to_odd" if m.rounding == "ties_to_even" else "ties_to_even"
        yield Neighbor("other rounding", replace(m, rounding=odd))
        changed = replace(m, flushes_results=not m.flushes_results)
        yield Neighbor("other results flushed", changed)
    for flushed in get_args(Flushed):
        if flushed != m.flushed:
            yield Neighbor(f"subnormals {flushed}", replace(m, flushed=flushed))
    for arithmetic in get_args(Arithmetic):
        if arithmetic != m.arithmetic:
            other = replace(m, arithmetic=arithmetic, lanes=max(m.lanes, 1))
            yield Neighbor(arithmetic, other)


def of_rounded_units(m: Rounded) -> Iterator[Neighbor]:
    """Yield units that do one thing wrong."""
    wrong: dict[str, dict[str, Any]] = {}
    if m.flushed != "kept":
        wrong["kept operands"] = {"keeps_operands": True}
        wrong["kept c"] = {"keeps_c": True}
    if m.flushes_results:
        wrong["flushes to +0"] = {"flushes_to_plus": True}
        if m.rounding == "ties_to_even":
            wrong["tiny before rounding"] = {"tiny_before": True}
    wrong["saturates"] = {"saturates": True}
    if m.arithmetic == "stepwise" or (m.lanes == 2 and m.arithmetic == "fused"):
        wrong["c first"] = {"c_first": True}
    if m.arithmetic == "stepwise" and m.depth > 2:
        wrong |= {f"sums {tree}": {"tree": tree} for tree in ("halves", "in turn")}
    if m.lanes == 2:
        wrong["halves"] = {"halves": True}
    if m.arithmetic == "two stages":
        for name, usual in (("fraction", 24), ("sum_fraction", 32), ("kept", 31)):
            for more in (1, -1):
                wrong[f"{name} {more:+}"] = {name: usual + more}
        wrong["products down"] = {"products": "down"}
        for name in ("sums", "c", "last", *["lane_sums"] * (m.lanes - 1)):
            wrong[f"{name} toward zero"] = {name: "toward zero"}
        reach = (24, 26, 1000) if m.lanes == 2 else (24, 25, 26)
        wrong |= {f"c reaches {down}": {"c_reach": down} for down in reach}
        wrong["renormalized products"] = {"renormalise_products": True}
        wrong["normalized operands"] = {"normalise_operands": True}
        wrong["large products"] = {"large_products": True}
    for name, changes in wrong.items():
        yield Neighbor(name, m, rounded.Mutation(**changes))


def rounded_equal_because(m: Rounded, neighbor: str) -> str | None:
    """Return the reason why a neighbor computes the same, or None if it does not."""
    bounds = Bounds.of(m)
    highest = bounds.top + 2  # all products are below 2**highest
    if neighbor == "large products" and highest <= FLOAT32.bias + 1:
        return "no product is beyond float32"
    if neighbor == "saturates" and highest < FLOAT32.bias - 30:
        return "no sum of products moves the largest number"
    results = "other results flushed", "flushes to +0", "tiny before rounding"
    if bounds.least >= FLOAT32.normal_exponent and m.flushed != "kept":
        if neighbor in results:
            return "no product is subnormal, no accumulator is, nor then a sum"
        if neighbor == "kept operands" and m.flushed == "zero of their sign":
            return "no operand is subnormal among float32 numbers"
    if m.arithmetic == "stepwise" and neighbor == "tiny before rounding":
        return "products and sums below 2^-126 are exact"
    if neighbor == "sum_fraction +1":
        return "where so many leading bits cancel, the products have none so low"
    return None


# -- all of them -----------------------------------------------------------------


def equal_because(m: Any, neighbor: str) -> str | None:
    """Return the reason why a neighbor computes the same, or None if it does not."""
    if isinstance(m, Rounded):
        return rounded_equal_because(m, neighbor)
    bounds = Bounds.of(m)
    # Products, and therefore sums of products, are multiples of 2**least. The
    # accumulator c is a multiple of its own smallest number.
    least = bounds.least
    lowest = least if m.emulated else min(least, bounds.result.least_exponent)
    formats = bounds.a, bounds.b
    tops = [int(np.frexp(float(f.max_value))[1]) - 1 for f in formats]
    if neighbor == "negative zero" and least >= bounds.result.least_exponent:
        return "a sum of products that is not zero is not below the least number"
    if neighbor == "a zero c counts" and least >= ZERO - m.fraction:
        return "no product has bits that it would cut"
    if neighbor.startswith("floor") and lowest >= m.floor + 1 - m.fraction:
        return "no term has bits that it would cut"
    if neighbor == "zero products count" and lowest >= ZERO + max(tops) - m.fraction:
        return "no term has bits that a zero times the largest number would cut"
    if neighbor == "normalized operands":
        # Emulated units read float16 numbers, of which few or none are subnormal.
        normal = [
            FLOAT16.normal_exponent if m.emulated else f.normal_exponent
            for f in formats
        ]
        reach = [
            normal[i] + tops[1 - i]
            for i in (0, 1)
            if formats[i].least_exponent < normal[i]
        ]
        if lowest >= max(reach, default=lowest) - m.fraction:
            return "no term has bits that a subnormal operand's exponent would cut"
    if neighbor == "rounded twice":
        bits = m.fraction + (4 * m.depth + 2).bit_length()
        if bits <= 1 + FLOAT32.mantissa_bits:
            return "float32 holds all sums of a block"
    return None


ROWS = [models[0] for models in by_parameters(WITH_CASES)]


class Truth:
    """Cases in random order, with the reference's results, computed when needed."""

    def __init__(self, model: Any, groups: list[Cases], most: int | None = None):
        self.dot = unit(model).dot
        cases = [case for x in groups for case in zip(*lists(x), strict=True)]
        order = np.random.default_rng(6).permutation(len(cases))[:most]
        self.cases = [cases[i] for i in order]
        self.results: list[int] = []

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        for number, case in enumerate(self.cases):
            if number == len(self.results):
                self.results.append(self.dot(*case))
            yield case, self.results[number]

    def differs(self, other: Neighbor) -> bool:
        wrong = unit(other.model, other.mutation).dot
        return any(wrong(*case) != right for case, right in self)


def neighbors(m: Any) -> list[Neighbor]:
    if isinstance(m, Rounded):
        return [*of_rounded_parameters(m), *of_rounded_units(m)]
    return [*of_parameters(m), *of_units(m)]


def check(model: Any) -> int:
    truth = Truth(model, edges(model))
    missed = [
        other.name
        for other in neighbors(model)
        if not equal_because(model, other.name) and not truth.differs(other)
    ]
    assert not missed, f"{model.name}: {', '.join(missed)}"
    return len(truth.results)


def each(models: list[Any]) -> Any:
    return pytest.mark.parametrize("model", models, ids=named)


@pytest.mark.sampled(60)
@each([model for model in ROWS if model.a == model.b])
def test_neighbors_show(model, compared):
    compared(check(model))


@pytest.mark.exhaustive
@each([model for model in ROWS if model.a != model.b])
def test_neighbors_of_mixed_formats_show(model, compared):
    compared(check(model))


@pytest.mark.exhaustive
@each(ROWS)
def test_equal_neighbors_are_equal(model, compared):
    """A neighbor with a reason gives equal results in all cases."""
    k = model.instruction_depth
    truth = Truth(model, [*edges(model), random_cases(model, 1000, k, 9)], 800)
    for other in neighbors(model):
        reason = equal_because(model, other.name)
        assert not (reason and truth.differs(other)), f"{other.name}, though {reason}"
    compared(len(truth.results))
