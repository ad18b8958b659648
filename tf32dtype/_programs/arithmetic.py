"""NumPy's float32 arithmetic in another format: every ufunc rounds, in all threads."""

from __future__ import annotations

from typing import Any, NamedTuple, Self, cast

from .. import _core
from .._base.scopes import Scope
from .._formats.aliases import FormatName, NumPyName
from .._formats.quantize import target_dtype
from .._formats.table import formats
from .._formats.typed import TargetLike


class _Settings(NamedTuple):
    format: str
    float64: bool
    watch: bool

    def __str__(self) -> str:
        options = {"float64": self.float64, "watch": self.watch}
        others = [f"{name}=True" for name, chosen in options.items() if chosen]
        return ", ".join([repr(self.format), *others])


_lock = _core.shared_lock()
_open: list[_Settings] = []


def format_name(which: object) -> FormatName | NumPyName:
    """The full name of what NumPy can compute in: a format, float16 or float32.

    Raises
    ------
    ValueError, TypeError
        If it is none of them, or a format without zero and signs.
    """
    name = str(target_dtype(which).name)
    if name in formats and not formats[name].has_zero:
        raise ValueError(
            "format must have zero and negative numbers; got"
            f" {name}, a format for scales"
        )
    return cast(FormatName | NumPyName, name)


class arithmetic(Scope):
    """NumPy's float32 arithmetic in a format: a scope, or a decorator.

    Inside, every ufunc of NumPy rounds the float32 numbers it reads to the format, and
    those it makes, once, to nearest, ties to even. They stay arrays of float32. So does
    what NumPy computes by ufuncs: ``+``, ``sum``, ``mean``, ``var``, ``cumsum``, ...
    See :doc:`/how_to/arithmetic` for what is not reached.

    The scope is the process's: ufuncs have one set of loops, so the scope affects all
    threads.

    Parameters
    ----------
    format : str, dtype or type
        A format, float16, or (for float64 numbers) float32.
    float64 : bool
        Whether float64 numbers are rounded too.
    watch : bool
        Whether figures are gathered by line of source: see `call_sites`.

    Raises
    ------
    ValueError, TypeError
        For an unknown format; if a generator function is decorated, whose body would
        run outside.
    RuntimeError
        If a scope with other arguments is open, in any thread, or the one that is left
        is not; where loops cannot be replaced (other systems than Linux).

    See Also
    --------
    matmul_precision : For matrix products, which this leaves alone.
    quantize : One array, once.

    Notes
    -----
    A reduction is one operation: the sum of a row is computed in float32 and rounded at
    its end. Where NumPy adds row to row (``sum(axis=0)`` of an array in C order) or
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
        self, format: TargetLike, *, float64: bool = False, watch: bool = False
    ) -> None:
        self._settings = _Settings(format_name(format), bool(float64), bool(watch))

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
                _core.begin_arithmetic(*self._settings)
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

        Each is a dictionary, whose entries :doc:`/how_to/arithmetic` explains.
        """
        return _core.arithmetic_call_sites()

    @staticmethod
    def functions() -> tuple[str, ...]:
        """Return the names of the ufuncs that round."""
        with _lock:
            return tuple(sorted(_core.arithmetic_functions()))
