"""Call functions with operands that are not numbers: objects, times, strings, records.

    python -m tests.support.object_calls ufuncs|functions DTYPE...

The program prints each call before it makes the call, since a faulty call may end the
process: "> DTYPE LABEL", then "= OUTCOME" (an exception's name or "ok"). It prints "!
N" if the second operand's dtype has lost N references, which later ends the process.
"""

from __future__ import annotations

import gc
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
from numpy._core import umath

import tf32dtype as td

Calls = Iterator[tuple[str, Callable[[], Any], np.dtype[Any] | None]]

OTHERS = [
    *("O", "M8[s]", ">M8[s]", "m8[s]", "S2", "U2", "V2", "?", "i8", ">f4", "F"),
    [("a", "i4")],
    np.dtypes.StringDType(),
]


def ufuncs() -> dict[str, np.ufunc]:
    """Return NumPy's public ufuncs, without the string ufuncs for internal use."""
    found = vars(umath).items()
    return {n: u for n, u in found if isinstance(u, np.ufunc) and hasattr(np, n)}


class Reflected:
    """Define all operators for use as the right operand."""

    def __radd__(self, other: object) -> int:
        return 7

    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rmul__ = __radd__


def ufunc_calls(dtype: np.dtype[Any]) -> Calls:
    """Yield calls of every ufunc with objects as operands, as out= and as dtype=."""
    one = np.ones(2, dtype)
    scalar = one[0]
    lasts = [
        *(one, np.array([scalar, scalar], object), np.array([1, 2], object)),
        *(np.array([Decimal(1)] * 2, object), np.array([Reflected()] * 2, object)),
        *(np.array([None, "a"], object), None, "a", 1, Decimal(1)),
        *(np.ones(2, other) for other in OTHERS),
    ]
    for name, ufunc in ufuncs().items():
        if name in ("gcd", "lcm") and dtype.name == "float8_e8m0fnu":
            continue  # with objects, Euclid's algorithm ends at 0, which e8m0 lacks
        targets = tuple(np.empty(2, object) for _ in range(ufunc.nout))
        keywords: list[dict[str, Any]] = [{}, {"out": targets}, {"dtype": object}]
        for place, last in enumerate(lasts):
            for first in (one, scalar, one[:0], lasts[1]) if place < 2 else (one,):
                operands = [first] * (ufunc.nin - 1) + [last]
                if ufunc.nin == 1 and place < 2:
                    operands = [first]
                for given in [*keywords, {}] if place < 4 else keywords[:2]:
                    yield (
                        f"{name} {place} {list(given)}",
                        lambda u=ufunc, a=operands, k=given: u(*a, **k),
                        None,
                    )
        if ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None:
            yield f"{name}.reduce", lambda u=ufunc: u.reduce(one, dtype=object), None
            for method, *arguments in (
                ("accumulate", one, 0, None, np.ones(2, object)),
                ("at", one.copy(), [0], np.ones(2, object)),
                ("at", np.ones(2, object), [0], one),
            ):
                bound = getattr(ufunc, method)
                yield f"{name}.{method}", lambda f=bound, a=arguments: f(*a), None


NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
NAMED = """vdot dot inner outer correlate convolve tensordot kron matmul vecdot append
searchsorted isin copyto result_type isclose array_equal polyval interp""".split()

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(np, name) for name in NAMED},
    "promote_types": lambda a, b: np.promote_types(a.dtype, b.dtype),
    "where": lambda a, b: np.where([True, False], a, b),
    "select": lambda a, b: np.select([[True, False], [False, True]], [a, b]),
    "clip": lambda a, b: np.clip(a, b, b),
    "putmask": lambda a, b: np.putmask(a, [True, False], b),
    "place": lambda a, b: np.place(a, [True, False], b),
    "full": lambda a, b: np.full(2, b[0], a.dtype),
    "lexsort": lambda a, b: np.lexsort([a, b]),
    "einsum": lambda a, b: np.einsum("i,i", a, b),
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "array": lambda a, b: np.array([a[0], b[0]]),
    "assign": lambda a, b: a.__setitem__(slice(None), b),
    "astype": lambda a, b: a.astype(b.dtype),
    "take": lambda a, b: np.take(a, [0, 1], out=b),
    "dot out": lambda a, b: np.dot(a, a, out=b[:1].reshape(())),
    "sum out": lambda a, b: np.sum(a, out=b[:1].reshape(())),
    "cumsum": lambda a, b: np.cumsum(a, dtype=b.dtype),
    "at": lambda a, b: np.add.at(a, [0], b[:1]),
    "fields": lambda a, b: np.rec.fromarrays([a, b]) == np.rec.fromarrays([b, a]),
}


def function_calls(dtype: np.dtype[Any]) -> Calls:
    """Yield calls of functions of two arrays, in both orders."""
    for other in OTHERS:
        b = np.zeros(2, other)
        for name, function in FUNCTIONS.items():
            # NumPy 2.4 crashes in this call, with float16 too.
            if name == "place" and b.dtype.char == "T" and NUMPY < (2, 5):
                continue
            for swapped in (False, True):
                a, c = np.zeros(2, dtype), b.copy()
                pair = (c, a) if swapped else (a, c)
                yield (
                    f"{name} {b.dtype} {swapped}",
                    lambda f=function, pair=pair: f(*pair),
                    c.dtype,
                )


def outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "ok"


def main(kind: str, names: list[str]) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.alarm(60)  # a call may not end
    made = {"ufuncs": ufunc_calls, "functions": function_calls}[kind]
    for name in names:
        for label, call, watched in made(np.dtype(getattr(td, name, name))):
            print(f"> {name} {label}", flush=True)
            before = sys.getrefcount(watched)
            found = outcome(call)
            lost = before - sys.getrefcount(watched)
            if watched is not None and lost > 0:
                print(f"! {lost}")
            print("=", found, flush=True)
    gc.collect()
    print("end")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
