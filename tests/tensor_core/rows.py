"""Make rows of the table of models the cases of a test, of which a sample has each
kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

from tests.tensor_core.cases import named

Test = TypeVar("Test", bound=Callable[..., None])


def arithmetic(model: Any) -> str:
    """Return the name of the loops that compute a model."""
    if found := getattr(model, "arithmetic", None):
        return f"{found} {model.lanes}"
    return f"emulated {model.emulated} {model.accumulator}"


def each_row(
    argument: str, rows: Iterable[Any], called: Callable[[Any], str] = named
) -> Callable[[Test], Test]:
    """Parametrize a test by models, or by lists of models that compute the same. The
    format of a and the arithmetic are parameters too, which a test does not take.
    `pytest.mark.sampled` keeps each value that several cases have."""
    firsts = ((row, row[0] if isinstance(row, list) else row) for row in rows)
    cases = [pytest.param(x, m.a, arithmetic(m), id=called(m)) for x, m in firsts]
    mark = pytest.mark.parametrize((argument, "format_of_a", "arithmetic"), cases)
    unused = pytest.mark.usefixtures("format_of_a", "arithmetic")
    return lambda test: unused(mark(test))
