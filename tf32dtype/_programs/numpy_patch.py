"""Replace names and loops in NumPy.

These are its ufuncs' loops, the names dot, inner and vdot, and how `numpy.einsum`
computes with two operands.

Loops are replaced at the first use, permanently. Names are replaced while any thread
has a precision. Our functions and loops look up the precision of their caller. Without
one they call NumPy's own functions and loops. `numpy.dot`, `numpy.inner` and
`numpy.vdot` are not ufuncs: their names are replaced in all modules of NumPy. The name
of `bmm_einsum` is replaced too: it calls `numpy.matmul`, but multiplies element by
element where all axes that are summed have length 1.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
from numpy._core import einsumfunc, multiarray
from numpy.typing import NDArray

from .. import _core
from .._matmul.einsum import einsum

Array = NDArray[Any]


# -- the functions ---------------------------------------------------------------------
#
# These functions return NotImplemented if NumPy's own function must compute: for
# products without a precision, for a number times an array, for wrong arguments.


def dot(a: Any, b: Any, out: Any = None) -> Any:
    return _core.OwnCall(_core.dot, (_ask("dot", a, b), a, b, out), {}, None)


def inner(a: Any, b: Any, /) -> Any:
    return _core.OwnCall(_core.inner, (_ask("inner", a, b), a, b), {}, None)


def vdot(a: Any, b: Any, /) -> Any:
    return _core.OwnCall(_core.vdot, (_ask("vdot", a, b), a, b), {}, None)


def bmm_einsum(eq: str, a: Array, b: Array, out: Any = None, **kwargs: Any) -> Any:
    """Contract two operands for `numpy.einsum`; each letter of `eq` has one length."""
    terms, names = eq.split("->")
    first, second = terms.split(",")
    lengths = dict(zip(first, a.shape, strict=True))
    pairs = [
        (lengths[letter], length)
        for letter, length in zip(second, b.shape, strict=True)
        if letter in lengths and letter not in names
    ]
    # NumPy's function computes these by a matrix product only in part or not at all.
    repeated = any(x != y for x, y in pairs)
    if not (repeated or (pairs and all(x == 1 for x, _ in pairs))):
        return NotImplemented
    order = kwargs.get("order", "K").upper()
    operands = _core.dot_operands(_obeys, a, b, out)
    if operands is None or order not in "CFAK" or kwargs.get("dtype") is not None:
        return NotImplemented
    result = einsum(eq, *operands)
    if out is not None:
        np.copyto(out, result, casting=kwargs.get("casting", "safe"))
        return out
    if order == "A":
        order = "F" if a.flags.f_contiguous and b.flags.f_contiguous else "C"
    return result if order == "K" else np.asanyarray(result, order=order)


def _obeys(dtype: np.dtype[Any]) -> bool:
    """Return whether products of this dtype have the precision in force."""
    precision = _core.current_precision()
    return (
        precision is not None
        and (
            dtype == np.float32
            or (precision.float64 and dtype == np.float64)
            or (precision.complex64 and dtype == np.complex64)
            or (precision.float64 and precision.complex64 and dtype == np.complex128)
        )
        and precision.obeys_here()
    )


def _ask(name: str, a: Any, b: Any) -> Callable[[np.dtype[Any]], bool]:
    """`_obeys` for a function; counts dtypes that BLAS does not know."""

    def obeys(dtype: np.dtype[Any]) -> bool:
        if dtype.kind not in "biuO" and dtype.char != "e":
            return _obeys(dtype)
        if np.ndim(a) and np.ndim(b):  # else it is an array times a number
            _core.count_call(f"np.{name} of {dtype.name}: dtype")
        return False

    return obeys


class _Obeying(_core.Obeying):
    """A function that asks for a precision, and NumPy's own where there is none.

    To code that keeps functions in a dictionary, as implementations of
    ``__array_function__`` do, it is equal to NumPy's own.
    """

    def __init__(self, own: Callable[..., Any], product: Callable[..., Any]) -> None:
        super().__init__(own, product)
        functools.update_wrapper(self, own)
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._own

    def __hash__(self) -> int:
        return hash(self._own)

    def __repr__(self) -> str:
        return repr(self._own)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return _named, (self._own.__name__,)


def _named(name: str) -> Any:
    return getattr(np if hasattr(np, name) else einsumfunc, name)


_PRODUCTS: list[tuple[Any, Callable[..., Any]]] = [
    (multiarray.dot, dot),
    (multiarray.inner, inner),
    (multiarray.vdot, vdot),
]
if _einsum := getattr(einsumfunc, bmm_einsum.__name__, None):
    _PRODUCTS.append((_einsum, bmm_einsum))
_OWN: list[Any] = [own for own, _ in _PRODUCTS]
_OURS = [_Obeying(own, product) for own, product in _PRODUCTS]


# -- when they are in place ------------------------------------------------------------

_users: set[int] = set()
_in_place = False
_loops_are_ours = False
# Re-entrant: the garbage collector may remove a user while another one is added.
lock = _core.shared_lock()


def install_for(user: object) -> None:
    """Replace NumPy's functions until `uninstall_for` is called with this object."""
    with lock:
        _users.add(id(user))
        _install_or_uninstall()


def uninstall_for(user: object) -> None:
    """End an `install_for`; do nothing if there was none for the object."""
    if sys.is_finalizing():  # modules are being taken apart
        return
    with lock:
        _users.discard(id(user))
        _install_or_uninstall()


def _install_or_uninstall() -> None:
    global _in_place, _loops_are_ours
    if _users and not _in_place:
        _in_place = True
        if not _loops_are_ours:
            _core.replace_loops()
            _loops_are_ours = True
        _core.use_loops(True)
        _exchange(_OWN, _OURS)
    elif not _users and _in_place:
        _exchange(_OURS, _OWN)
        _core.use_loops(False)
        _in_place = False


def _exchange(found: list[Any], put: list[Any]) -> None:
    for module, name in _places():
        value = vars(module).get(name)
        for old, new in zip(found, put, strict=True):
            if value is old:
                setattr(module, name, new)


# The places are kept, since the search through all modules is slow.
_known_places: list[tuple[ModuleType, str]] = []
_modules_then: tuple[int, str] | None = None


def _modules() -> tuple[int, str]:
    """Return the number of modules and the last one, to detect that some were added."""
    while True:
        with suppress(RuntimeError):  # another thread imports one at this moment
            return len(sys.modules), next(reversed(sys.modules))


def _places() -> list[tuple[ModuleType, str]]:
    """Return the names in NumPy's modules that are, or stand for, its own functions."""
    global _known_places, _modules_then
    modules_now = _modules()
    if modules_now != _modules_then:
        functions = {id(function) for function in _OWN + _OURS}
        _known_places = [
            (module, name)
            for path, module in list(sys.modules.items())
            if path.partition(".")[0] == "numpy" and isinstance(module, ModuleType)
            for name, value in list(vars(module).items())
            if id(value) in functions
        ]
        _modules_then = modules_now
    return _known_places
