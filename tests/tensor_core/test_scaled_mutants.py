"""Every wrong neighbor of a block-scaled instruction shows in the cases of the tests.

A neighbor is a row with another parameter, or a unit that does one thing wrong. Where a
neighbor cannot show, `equal_because` gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.reference.tensor_core_scaled import Mutation, ScaledUnit
from tests.tensor_core.scaled_cases import (
    DISTINCT,
    E5M2,
    KINDS,
    MXF4,
    NVF4,
    POWERS,
    cases,
    found,
)
from tf32dtype.tensor_core.block_scaled import ZERO_TERMS

pytestmark = pytest.mark.once

Neighbor = tuple[str, Any, Mutation]
RIGHT = Mutation()


def neighbors(m: Any) -> Iterator[Neighbor]:
    parameters = {
        "fraction + 1": {"fraction": m.fraction + 1},
        "fraction - 1": {"fraction": m.fraction - 1},
        "no floor": {"floor": None},
        "floor + 1": {"floor": m.floor + 1},
        "floor - 1": {"floor": m.floor - 1},
        "a zero c counts": {"zero_c_exponent": -126},
        "negative zero": {"negative_zero": True},
        "half the depth": {"depth": m.depth // 2},
        "twice the depth": {"depth": 2 * m.depth},
        **{
            f"zero terms {x}": {"zero_terms": x}
            for x in ZERO_TERMS
            if x != m.zero_terms
        },
    }
    if m.group > 1:
        parameters["half the group"] = {"group": m.group // 2}
        parameters["each product a term"] = {"group": 1}
    if m.block_size > m.group > 1:
        parameters["twice the group"] = {"group": 2 * m.group}
    for name, changes in parameters.items():
        yield name, replace(m, **changes), RIGHT
    units = {
        "rounded to even": Mutation(rounding="ties_to_even"),
        "rounded down": Mutation(rounding="toward_negative"),
        "cut down": Mutation(alignment="toward_negative"),
        "cut to even": Mutation(alignment="ties_to_even"),
        "normalized terms": Mutation(normalise_terms=True),
        "normalized elements": Mutation(normalise_elements=True),
        "first scale": Mutation(first_scale=True),
        "normalized scales": Mutation(normalise_scales=True),
        "signed scales": Mutation(signed_scales=True),
    }
    for name, mutation in units.items():
        yield name, m, mutation


def equal_because(m: Any, neighbor: str) -> str | None:
    """Return the reason why a neighbor computes the same, or None if it does not."""
    powers = m.scale == POWERS
    if neighbor in ("normalized scales", "signed scales") and powers:
        return "powers of two are normal and have no sign"
    if not powers and ("floor" in neighbor or "zero c" in neighbor):
        return "no term of such scales has bits that it would cut"
    if neighbor == "negative zero" and not powers:
        return "a sum of such terms that is not zero is not below the least number"
    if neighbor == "first scale" and m.block_size == m.depth:
        return "an instruction has one scale"
    if neighbor == "normalized elements" and m.group > 1:
        return "elements have no exponents"
    if neighbor == "zero terms never" and m.group == 1:
        return "a product does not cancel"
    return None


class Truth:
    """Cases of all kinds, with the reference's results, computed when needed."""

    def __init__(self, model: Any, n: int = 60, seeds: int = 4) -> None:
        self.dot = ScaledUnit(model).dot
        self.cases = (
            line
            for seed in range(seeds)
            for kind in KINDS
            for line in zip(
                *(x.tolist() for x in cases(model, kind, n, 2 * model.depth, seed)),
                strict=True,
            )
        )
        self.known: list[tuple[Any, int]] = []

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        yield from self.known
        for case in self.cases:
            self.known.append((case, self.dot(*case)))
            yield self.known[-1]

    def differs(self, other: Neighbor) -> bool:
        _, model, mutation = other
        wrong = ScaledUnit(model, mutation).dot
        return any(wrong(*case) != right for case, right in self)


def check(model: Any) -> int:
    truth = Truth(model)
    missed = [
        other[0]
        for other in neighbors(model)
        if not equal_because(model, other[0]) and not truth.differs(other)
    ]
    assert not missed, f"{model.name}: {', '.join(missed)}"
    return len(truth.known)


#: One model of each kind. Other models have its formats, too.
SOME = [
    found("B200", "tcgen05.mxf8f6f4", E5M2, "float6_e2m3fn", POWERS, 32), MXF4, NVF4,
]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", SOME, ids=lambda m: m.name)
def test_neighbors_show(model, compared):
    compared(check(model))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "model", [m for m in DISTINCT if m not in SOME], ids=lambda m: m.name
)
def test_neighbors_of_other_rows_show(model, compared):
    compared(check(model))


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", DISTINCT, ids=lambda m: m.name)
def test_equal_neighbors_are_equal(model, compared):
    """A neighbor with a reason gives equal results in all cases."""
    truth = Truth(model, n=20, seeds=1)
    for other in neighbors(model):
        reason = equal_because(model, other[0])
        assert not (reason and truth.differs(other)), f"{other[0]}, though {reason}"
    compared(len(truth.known))
