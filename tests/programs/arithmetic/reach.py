"""Find the functions of NumPy that round their results, by calls of all functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import tf32dtype as td
from tests.ufuncs import numpy_surface
from tests.ufuncs.numpy_surface_table import CHAINED, ROUNDED

FORMAT = "bfloat16"


def letters() -> dict[str, Any]:
    """Return the surface's operands as float32, with more digits than a format has."""
    found = numpy_surface.letters(np.float32)
    for name in ("a", "b", "m", "q", "c", "nan", "nan1", "z"):
        found[name] = (found[name] * np.float32(1.0373)).astype(np.float32)
    found["u"] = found["u"] * np.float32(0.9373)
    found["s"] = np.float32(1.5373)
    return found


def is_in_format(value: Any) -> list[bool]:
    """Return whether the numbers of each float array or scalar are in the format."""
    found = []
    for _, leaf in numpy_surface.leaves(value):
        x = np.asarray(leaf)
        parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
        if x.dtype.char in "fdFD":
            for part in parts:
                finite = part[np.isfinite(part)].astype(np.float64)
                low = np.asarray(td.quantize(finite, FORMAT)).astype(np.float64)
                found.append(bool((low == finite).all()))
    return found


def evaluate(expression: str, names: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(expression, names)


def expressions() -> Iterator[tuple[str, str, Any]]:
    """Yield (name, expression, f) of every function that computes with floats."""
    for table in (ROUNDED, CHAINED):
        for prefix, entries in table.items():
            for name, found in entries.items():
                if prefix.startswith(("np.random", "np.ma")):
                    continue
                f = getattr(numpy_surface.namespace(prefix), name, None)
                if f is None:  # f is in a newer NumPy
                    continue
                for one in (found,) if isinstance(found, str) else found:
                    yield prefix + name, one, f


def reached() -> dict[str, set[bool]]:
    """Return by name whether results are in the format. Results that are in the format
    without arithmetic are left out."""
    found: dict[str, set[bool]] = {}
    for name, expression, f in expressions():
        try:
            before = is_in_format(evaluate(expression, letters() | {"f": f}))
            names = letters() | {"f": f}  # made outside of arithmetic
            with td.arithmetic(FORMAT, float64=True):
                result = evaluate(expression, names)
        except (TypeError, ValueError):
            continue
        changes = [
            now
            for now, was in zip(is_in_format(result), before, strict=True)
            if not was
        ]
        if changes:
            found.setdefault(name, set()).update(changes)
    return found
