"""Helpers of the bit tests: arrays from codes, flags, and readable failures."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tf32dtype as td
from tests.reference import formats
from tests.reference.codec_arrays import Items, item_type, values
from tests.reference.formats import Format

ALL = list(formats.FORMATS.values())
WIDE = [f for f in ALL if f.count > 256]
BYTES = [f for f in ALL if f.count <= 256]


def name(f: Format) -> str:
    """Return a format's name, for pytest's ids."""
    return f.name


def dtype(f: Format) -> np.dtype[Any]:
    return np.dtype(getattr(td, f.name))


def array(f: Format, items: Items) -> np.ndarray[Any, Any]:
    """Return an array with these bit patterns as elements, without any conversion."""
    return np.ascontiguousarray(items).view(dtype(f))


def items_of(f: Format, result: Any) -> Items:
    """Return the bit patterns of an array, and fail if its dtype is not that of f."""
    result = np.asarray(result)
    assert result.dtype == dtype(f), f"{result.dtype}, not {f.name}"
    return result.copy(order="C").view(item_type(f))


def raised(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """Return the function's result, and the floating-point flags NumPy saw (FPE_*)."""
    seen = [0]

    def record(_: str, flags: int) -> None:
        seen[0] |= flags

    with np.errstate(all="call", call=record), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = function(*arguments)
    return result, seen[0]


def assert_items(
    f: Format, got: Items, want: Items, what: str, *inputs: np.ndarray[Any, Any]
) -> None:
    """Fail unless all bits are equal, and show the first differences with inputs."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    wrong = np.flatnonzero(got != want)
    if wrong.size == 0:
        return
    lines = [f"{what}, {f.name}: {wrong.size} of {want.size} differ"]
    for i in wrong[:5]:
        source = ", ".join(_shown(f, x, i) for x in inputs)
        lines.append(
            f"  [{i}] {source}: got {got[i]:#x} = {values(f, got[i : i + 1])[0]}, "
            f"want {want[i]:#x} = {values(f, want[i : i + 1])[0]}"
        )
    raise AssertionError("\n".join(lines))


def _shown(f: Format, x: np.ndarray[Any, Any], i: int) -> str:
    if x.dtype == item_type(f):
        return f"{x[i]:#x} = {values(f, x[i : i + 1])[0]}"
    return repr(x[i])


def assert_equal(got: Any, want: Any, what: str) -> None:
    """Fail unless two boolean or integer arrays have equal values and dtypes."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"{what}: {got.dtype}, not {want.dtype}"
    wrong = np.flatnonzero(got.ravel() != want.ravel())
    first = [(i, got.ravel()[i], want.ravel()[i]) for i in wrong[:5]]
    assert wrong.size == 0, f"{what}: {wrong.size} differ, (index, got, want) {first}"
