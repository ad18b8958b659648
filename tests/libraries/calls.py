"""Calls of other libraries, as a user types them, with arrays of our formats.

A module of this folder has a list of calls. Each call is a line of Python. It is tried
with an array of a format, with the same array in ml_dtypes, and with the numbers in
float64 as the reference. docs/reference/libraries.md has a table of the results:

    python -m tests.libraries.page
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tf32dtype as td

#: Formats of the calls, and numbers that each of these formats has.
FORMATS = ("bfloat16", "float8_e4m3fn")
NUMBERS = np.array(
    [[1.5, -2, 0.25, 3], [0.5, 1, -0.75, 2.5], [6, -4, 1.25, 0.125], [-1, 7, 2, 0.375]]
)
#: Numbers at the end of float8_e4m3fn's range, whose sums and squares overflow.
LARGE = 64 * NUMBERS


@dataclass(frozen=True)
class Call:
    """A line of a user.

    `a` is a matrix of 4 x 4 numbers, `v` its 16 numbers in a row. The preparation of
    the module may define other names.
    """

    code: str
    #: the result: a dtype's name ("{format}": the array's, "{void}": bytes of its
    #: size), the type of a result without a dtype, or the type of an exception
    gives: str
    #: the line to write instead if `code` raises an error or loses the numbers; its
    #: result has the dtype of the array, or that of `instead_gives`
    instead: str = ""
    instead_gives: str = "{format}"
    #: the reason why there is no line to write instead
    why: str = ""
    #: largest error against float64 in eps of the format, None without numbers; numbers
    #: of the format's dtype must be float64's, rounded once
    within: float | None = 4.0
    #: the library rounds several steps: the numbers are near float64's, and LARGE is
    #: not used, as a step would overflow
    steps: bool = False
    #: formats of the call, if not all
    formats: tuple[str, ...] = FORMATS

    @property
    def works(self) -> bool:
        return not self.instead and not self.why

    @property
    def numbers(self) -> tuple[NDArray[np.float64], ...]:
        """Return the matrices that the call is tried with."""
        return (NUMBERS,) if self.steps else (NUMBERS, LARGE)


@dataclass(frozen=True)
class Outcome:
    """The result of a call."""

    gives: str
    numbers: NDArray[np.float64] | None = None


def dtype_of(format: str, owner: str) -> np.dtype[Any]:
    """Return the dtype of a format: ours, ml_dtypes', or float64 as the reference."""
    if owner == "float64":
        return np.dtype(np.float64)
    module = {"tf32dtype": td, "ml_dtypes": ml_dtypes}[owner]
    return np.dtype(getattr(module, format))


def run(
    line: str,
    preparation: str,
    format: str,
    owner: str,
    numbers: NDArray[np.float64] = NUMBERS,
) -> Outcome:
    """Return the result of a line with arrays of a package's dtype, or its exception.
    The files of the line are in a new folder."""
    dtype = dtype_of(format, owner)
    a = numbers.astype(dtype)
    names: dict[str, Any] = {"np": np, "td": td, "a": a, "v": a.reshape(-1)}
    exec(preparation, names)
    *statements, last = line.split("; ")
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                exec("; ".join(statements), names)
                result = eval(last, names)
            return Outcome(_named(result), _numbers(result))
    except Exception as error:
        return Outcome(type(error).__name__)


def _named(result: Any) -> str:
    dtype = getattr(result, "dtype", None)
    return (
        type(result).__name__ if dtype is None else str(getattr(dtype, "name", dtype))
    )


def _numbers(result: Any) -> NDArray[np.float64] | None:
    try:
        if np.asarray(result).dtype.type is np.void:
            return None  # bytes
        return np.asarray(result, np.float64)
    except (TypeError, ValueError):
        return None


def _rounded(truth: NDArray[np.float64], gives: str) -> NDArray[np.float64]:
    """Round float64's numbers once to the named dtype, if it is a float's."""
    try:
        dtype = np.dtype(getattr(td, gives, gives))
    except TypeError:
        return truth
    with np.errstate(all="ignore"):
        return truth.astype(dtype).astype(float) if dtype.kind == "f" else truth


def agrees(outcome: Outcome, truth: Outcome, within: float | None, eps: float) -> bool:
    """Return whether the numbers are near those of float64."""
    if within is None:
        return True
    if outcome.numbers is None or truth.numbers is None:
        return False
    if outcome.numbers.shape != truth.numbers.shape:
        return False
    wanted = _rounded(truth.numbers, outcome.gives)
    scale = float(np.max(np.abs(wanted), initial=1, where=np.isfinite(wanted)))
    return np.allclose(outcome.numbers, wanted, 0, within * eps * scale, equal_nan=True)


def is_right(call: Call, outcome: Outcome, truth: Outcome, format: str) -> bool:
    """Return whether the numbers are right: float64's, rounded once, in the format. In
    another dtype, or if the library rounds several steps, they must be near."""
    if outcome.gives != format or call.steps or call.within is None:
        return agrees(outcome, truth, call.within, td.formats[format].eps)
    if outcome.numbers is None or truth.numbers is None:
        return False
    wanted = _rounded(truth.numbers, format)
    return np.array_equal(outcome.numbers, wanted, equal_nan=True)


def check(call: Call, preparation: str, format: str) -> None:
    """Fail unless a call, or the line to write instead, has the result of its row."""
    for numbers in call.numbers:

        def gave(
            line: str, owner: str, numbers: NDArray[np.float64] = numbers
        ) -> Outcome:
            return run(line, preparation, format, owner, numbers)

        truth = gave(call.code, "float64")
        found = gave(call.code, "tf32dtype")
        good = is_right(call, found, truth, format)
        void = f"void{8 * td.formats[format].itemsize}"
        assert found.gives == call.gives.format(format=format, void=void)
        if call.works:
            assert good, (found, truth)
            continue
        raised = found.gives.endswith(("Error", "Exception"))
        assert raised or not good, "it works: the row needs no other line"
        if call.instead:
            mended = gave(call.instead, "tf32dtype")
            assert mended.gives == call.instead_gives.format(format=format)
            of_line = gave(call.instead, "float64")
            if of_line.numbers is not None:  # if None, the line takes only our formats
                truth = of_line
            assert is_right(call, mended, truth, format), (mended, truth)


def make_test(calls: Sequence[Call], preparation: str) -> Callable[..., None]:
    """Return the test of the calls of a module."""

    cases = [(call, format) for call in calls for format in call.formats]

    @pytest.mark.once
    @pytest.mark.parametrize(
        ("call", "format"), cases, ids=[f"{c.code}-{format}" for c, format in cases]
    )
    def test_call(call: Call, format: str) -> None:
        check(call, preparation, format)

    return test_call
