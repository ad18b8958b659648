"""`ufunc.at`: NumPy passes all indices of one axis at once, else one index per call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import raised

NAMES = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod")
NAMES += ("power", "hypot", "logaddexp", "maximum", "minimum", "fmax", "fmin")


def together(name: str, x: Any, indices: Any, y: Any) -> tuple[bytes, int]:
    result = x.copy()
    _, flags = raised(getattr(np, name).at, result, indices, y)
    return result.tobytes(), flags


def one_by_one(name: str, x: Any, indices: Any, y: Any) -> tuple[bytes, int]:
    return together(name, x[:, None], (indices, 0 * indices), y)


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_together(form: td.Format) -> None:
    for name in NAMES:
        check_together(name, form)


def check_together(name: str, form: td.Format) -> None:
    rng = np.random.default_rng(len(name))
    for size, count in ((1, 3), (3, 0), (70, 40), (90, 1500), (9000, 400)):
        items = rng.integers(0, 256, (size + count) * form.itemsize, dtype=np.uint8)
        x, y = np.split(items.view(form.dtype), [size])
        indices = rng.integers(-size, size, count)
        want = one_by_one(name, x, indices, y)
        assert together(name, x, indices, y) == want
        assert together(name, x, indices.repeat(2)[::2], y.repeat(2)[::2]) == want
        if count:
            want = one_by_one(name, x, indices, y[0])
            assert together(name, x, indices, y[0]) == want


def test_an_index_too_far_changes_nothing() -> None:
    x = np.ones(3, td.bfloat16)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        np.add.at(x, [0, 3], x[:2])
    assert x.tolist() == [1, 1, 1]
