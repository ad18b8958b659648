"""Each rule of the shape flags a bad message and passes a good one."""

import pytest

from .shape import faults

GOOD = "rounding must be one of 'ties_to_even', 'stochastic'; got 'up'"

BAD = [
    ("k must be\npositive", "has several lines"),
    ("k must be positive; got 0.", "ends with a period"),
    ("The value must be positive", "begins with a capital letter"),
    ("it must be positive", "begins with a pronoun"),
    ("300 is no code", "has none of must, got, not, cannot, use"),
    ("k must be positive; got " + "9" * 400, "is longer than 400 characters"),
]


@pytest.mark.parametrize(("message", "fault"), BAD)
def test_bad_messages_are_flagged(message: str, fault: str) -> None:
    assert faults(message) == [fault]


@pytest.mark.parametrize("message", [GOOD, "H100 does not support 'f32'; use 'tf32'"])
def test_good_messages_pass(message: str) -> None:
    assert not faults(message)
