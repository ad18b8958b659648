"""NumPy's float32 arithmetic in another format: every ufunc rounds, in all threads."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Self, cast

from .. import _core
from .._base.arguments import checked_path
from .._base.scopes import Scope
from .._base.wording import brief
from .._formats.aliases import FormatName, NumPyName
from .._formats.quantize import target_dtype
from .._formats.table import formats
from .._formats.typed import TargetLike
from .plans import NONE, FoundCallSite, find_call_sites, read_here


class _Settings(NamedTuple):
    format: str | None
    float64: bool
    watch: bool
    plan: _core.ArithmeticPlan | None
    #: path of the plan
    path: str | None

    def __str__(self) -> str:
        first = f"plan={self.path!r}" if self.plan else repr(self.format)
        options = {"float64": self.float64, "watch": self.watch}
        others = [f"{name}=True" for name, chosen in options.items() if chosen]
        return ", ".join([first, *others])


_lock = _core.shared_lock()
_open: list[_Settings] = []


def format_name(which: object, argument: str = "format") -> FormatName | NumPyName:
    """Return the full name of a format that NumPy's arithmetic can be rounded to.

    These are the package's formats that have zero and signs, float16 and float32.

    Raises
    ------
    ValueError, TypeError
        For an unknown format, or a format without zero and signs.
    """
    name = str(target_dtype(which, argument).name)
    if name in formats and not formats[name].has_zero:
        raise ValueError(
            f"{argument} must have zero and negative numbers; got {name}, a format for"
            " scales"
        )
    return cast(FormatName | NumPyName, name)


def _resolve_plan(path: str, watch: bool) -> tuple[_core.ArithmeticPlan, bool]:
    """Find the call sites of a plan that round; return also whether float64 rounds."""
    plan = read_here(path)
    sites = tuple(x for x in plan.call_sites if x.arithmetic is not None)
    try:
        for name in (plan.arithmetic, *(x.arithmetic for x in sites)):
            _format(name)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    found = find_call_sites(replace(plan, call_sites=sites), path)
    return _planned(tuple(found), plan.arithmetic, watch), plan.float64


@cache  # what it returns has memory that is never given back
def _planned(
    sites: tuple[FoundCallSite, ...], otherwise: str | None, watch: bool
) -> _core.ArithmeticPlan:
    formats = [(x.user, x.library, _format(x.arithmetic), None) for x in sites]
    return _core.ArithmeticPlan(formats, _format(otherwise), watch)


def _format(name: str | None) -> str | None:
    return None if name in (None, NONE) else format_name(name)


class arithmetic(Scope):
    """Round NumPy's float32 arithmetic to a format, in a scope or a decorated function.

    Inside, every NumPy ufunc rounds its float32 inputs and its float32 results to the
    format: once, to nearest, ties to even. The arrays stay float32. Operations that
    NumPy computes by ufuncs round, too: ``+``, ``sum``, ``mean``, ``var``, ``cumsum``,
    ... See :doc:`/reference/arithmetic` for functions that do not round.

    The scope applies to all threads of the process, since ufuncs have only one set of
    loops.

    Parameters
    ----------
    format : str, dtype or type
        A format, float16, or (for float64 numbers) float32. Required without a plan.
    float64 : bool
        Whether float64 numbers are rounded too.
    watch : bool
        Whether measurements are gathered per call site: see `call_sites`.
    plan : path, optional
        A plan file instead of a format. Only the call sites that have a format in the
        plan round, to that format. The plan also says whether float64 numbers round.

    Raises
    ------
    ValueError, TypeError
        For an unknown format. For a format or float64 together with a plan. For a plan
        that cannot be read or cannot be used on this system. If a generator function is
        decorated: its body would run outside the scope.
    RuntimeError
        If a scope with other arguments is open in any thread, or if the scope to be
        left is not open. On systems other than Linux, where loops cannot be replaced.

    See Also
    --------
    matmul_precision : Set the precision of matrix products, which this does not change.
    quantize : Round one array once.

    Notes
    -----
    A reduction is one operation: the sum of a row is computed in float32 and rounded at
    its end. If NumPy adds row to row (``sum(axis=0)`` of an array in C order) or
    accumulates (`numpy.cumsum`), each partial sum is rounded.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x = np.array([1, 1.1, 256], dtype=np.float32)
    >>> with td.arithmetic("bf16"):
    ...     print(x + 1)
    [  2.        2.09375 256.     ]
    """

    def __init__(
        self,
        format: TargetLike | None = None,
        *,
        float64: bool = False,
        watch: bool = False,
        plan: str | os.PathLike[str] | None = None,
    ) -> None:
        name = planned = path = None
        if plan is None:
            name = format_name(format)
        elif format is not None or float64:
            raise ValueError(
                "format and float64 must not be given with a plan, which sets them; got"
                f" format={brief(format)}, float64={float64}"
            )
        else:
            path = checked_path(plan, "plan")
            planned, float64 = _resolve_plan(path, bool(watch))
        self._settings = _Settings(name, bool(float64), bool(watch), planned, path)

    def __repr__(self) -> str:
        return f"arithmetic({self._settings})"

    def __enter__(self) -> Self:
        with _lock:
            if _open and _open[-1] != self._settings:
                raise RuntimeError(
                    f"{self!r} cannot begin inside of arithmetic({_open[-1]}): all"
                    " threads share one arithmetic"
                )
            if not _open:
                if self._settings.watch:
                    from .source_folders import set_folders

                    set_folders()
                _core.begin_arithmetic(*self._settings[:4])
            _open.append(self._settings)
        return self

    def __exit__(self, *exc_info: object) -> None:
        with _lock:
            if not _open or _open[-1] != self._settings:
                raise RuntimeError(
                    f"{self!r} must be open; got a scope that was not entered"
                )
            _open.pop()
            if not _open:
                _core.end_arithmetic()

    @staticmethod
    def call_sites() -> list[dict[str, Any]]:
        """Return the measurements of the last scope with `watch`, by call site.

        The entries of the dictionaries are explained on :doc:`/reference/arithmetic`.

        Returns
        -------
        list of dict
            One dictionary per call site. The list is empty if no scope had `watch`.
        """
        return _core.arithmetic_call_sites()

    @staticmethod
    def functions() -> tuple[str, ...]:
        """Return the names of the ufuncs that round.

        Returns
        -------
        tuple of str
            The names in alphabetic order: "absolute", "add" and so on.
        """
        with _lock:
            return tuple(sorted(_core.arithmetic_functions()))
