"""Messages of dtypes, casts, functions and matrix multiplications."""

from collections.abc import Callable

import pytest

import tf32dtype as td

from .shape import faults, provoke

CASES: dict[str, Callable[[], object]] = {
    "quantize.rounding": lambda: td.quantize([1.0], "bf16", rounding="up"),
}


@pytest.mark.parametrize("name", CASES)
def test_messages_have_the_shape(name: str) -> None:
    message = provoke(CASES[name])
    assert not faults(message), message
