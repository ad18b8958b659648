"""Changed products: the faults of a whole product that are tried one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .product import Product

Array = NDArray[Any]


def changed(p: Product, name: str, value: Array | None) -> Product:
    change: dict[str, Any] = {name: value}
    return replace(p, **change)


def _transposed(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        if x is None:
            return None
        if name in ("c", "bias"):
            x = np.broadcast_to(x, p.shape)
        return changed(p, name, x.T) if x.shape[0] == x.shape[1] else None

    return change


def _result_transposed(p: Product) -> Product | None:
    m, n = p.shape
    plain = p.c is None and p.bias is None and p.scale_a is None and p.scale_b is None
    return replace(p, a=p.b.T, b=p.a.T) if m == n and plain else None


def _swapped(p: Product) -> Product | None:
    same = p.a.shape == p.b.shape and p.a.shape[0] == p.a.shape[1]
    return replace(p, a=p.b, b=p.a) if same else None


def _without(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        return None if getattr(p, name) is None else changed(p, name, None)

    return change


def _twice(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        if x is None:
            return None
        power = name.startswith("scale")
        return changed(p, name, x * x if power else 2 * x)

    return change


def _inverse(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        return None if x is None or not x.all() else changed(p, name, 1 / x)

    return change


def _both_scales(p: Product) -> Product | None:
    if p.scale_a is None or p.scale_b is None:
        return None
    return replace(p, scale_a=None, scale_b=None)


def _of_alpha(p: Product) -> Product | None:
    return None if p.alpha == 1 else replace(p, alpha=1.0)


def _of_beta(p: Product) -> Product | None:
    return None if p.c is None or p.beta == 1 else replace(p, beta=1.0)


def _exchanged_scales(p: Product) -> Product | None:
    if p.scale_a is None or p.scale_b is None or p.scale_a.shape != p.scale_b.T.shape:
        return None
    return replace(p, scale_a=p.scale_b.T, scale_b=p.scale_a.T)


def _next_scale(name: str, by: int) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x, axis = getattr(p, name), 1 if name == "scale_a" else 0
        if x is None or x.shape[axis] < 2:
            return None
        return changed(p, name, np.roll(x, -by, axis))

    return change


def _first_scale(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x, axis = getattr(p, name), 1 if name == "scale_a" else 0
        if x is None or x.shape[axis] < 2:
            return None
        return changed(p, name, np.repeat(x.take([0], axis), x.shape[axis], axis))

    return change


def _in_other_order(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        return changed(p, name, np.ravel(x).reshape(x.shape[::-1]).T)

    return change


def _reversed(p: Product) -> Product:
    return replace(p, a=p.a[:, ::-1])


def _negated(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        return None if x is None else changed(p, name, -x)

    return change


#: Faults of the whole product, in words.
CHANGES: tuple[tuple[str, Callable[[Product], Product | None]], ...] = (
    ("c is missing", _without("c")),
    ("c is added twice", _twice("c")),
    ("beta is not applied: c is added as it is", _of_beta),
    ("alpha is not applied", _of_alpha),
    ("the bias is missing", _without("bias")),
    ("the bias is added twice", _twice("bias")),
    (
        "the bias is added along the wrong axis: to rows, not to columns",
        _transposed("bias"),
    ),
    ("scale_a and scale_b are not applied", _both_scales),
    ("scale_a is not applied", _without("scale_a")),
    ("scale_b is not applied", _without("scale_b")),
    ("scale_a is applied twice", _twice("scale_a")),
    ("scale_b is applied twice", _twice("scale_b")),
    ("the results are divided by scale_a", _inverse("scale_a")),
    ("the results are divided by scale_b", _inverse("scale_b")),
    ("a is transposed: the results are those of a.T @ b", _transposed("a")),
    ("b is transposed: the results are those of a @ b.T", _transposed("b")),
    ("d is transposed", _result_transposed),
    ("scale_a and scale_b are exchanged", _exchanged_scales),
    ("scale_a is that of the next range of k", _next_scale("scale_a", 1)),
    ("scale_b is that of the next range of k", _next_scale("scale_b", 1)),
    ("scale_a is that of the range of k before", _next_scale("scale_a", -1)),
    ("scale_b is that of the range of k before", _next_scale("scale_b", -1)),
    ("scale_a is always that of the first range of k", _first_scale("scale_a")),
    ("scale_b is always that of the first range of k", _first_scale("scale_b")),
    ("a is read in column order", _in_other_order("a")),
    ("b is read in column order", _in_other_order("b")),
    ("k of a is reversed", _reversed),
    ("c is subtracted", _negated("c")),
    ("the bias is subtracted", _negated("bias")),
    ("c is transposed", _transposed("c")),
    ("the operands are exchanged: the results are those of b @ a", _swapped),
)
