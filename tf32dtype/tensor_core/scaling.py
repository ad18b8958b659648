"""Factors, scales and a bias that multiply or follow a product: their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.wording import brief
from .bundles import SCALED
from .epilogues import Terms, is_exact
from .products import plain_array

Array = NDArray[Any]


class Scaling(NamedTuple):
    """The arguments of `identify` that follow the operands, as they are given."""

    alpha: Any = 1
    beta: Any = 1
    bias: Any = None
    scale_a: Any = None
    scale_b: Any = None

    def number(self, name: str) -> float:
        """Return alpha or beta.

        Raises
        ------
        TypeError, ValueError
            If it is not a finite number.
        """
        value = getattr(self, name)
        try:
            found = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a number; got {brief(value)}") from None
        if not math.isfinite(found):
            raise ValueError(f"{name} must be finite; got {brief(value)}")
        return found

    def of(
        self, shape: tuple[int, ...], stack: tuple[int, ...], m: int, k: int, n: int
    ) -> Scales:
        """Return the terms of a product of this shape, as stacks of matrices.

        Raises
        ------
        TypeError, ValueError
            For other dtypes, and shapes that do not fit.
        """
        full = (*stack, m, n)
        bias = None
        if self.bias is not None:
            bias = _real(self.bias, "bias")
            try:
                bias = np.broadcast_to(bias, shape).reshape(full)
            except ValueError:
                raise ValueError(
                    f"bias must broadcast to shape {shape}; got shape {bias.shape}"
                ) from None
        count = -(-k // SCALED)
        given: dict[str, Array] = {}
        for name, value, longest in (
            ("scale_a", self.scale_a, (m, count)),
            ("scale_b", self.scale_b, (count, n)),
        ):
            if value is not None:
                given[name] = _spread(_real(value, name), name, stack, *longest)
        along = [x.shape[-1 if name == "scale_a" else -2] for name, x in given.items()]
        return Scales(self.number("alpha"), bias, given, max(along, default=1), full)


def _real(value: Any, name: str) -> Array:
    array: Array = plain_array(value, name)
    if array.dtype.kind in "cOSUTMm":
        raise TypeError(f"{name} must be real numbers; got {array.dtype}")
    with np.errstate(all="ignore"):
        return array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32)


def _spread(
    scale: Array, name: str, stack: tuple[int, ...], rows: int, columns: int
) -> Array:
    """Return a scale for each row and column of blocks, or 1 row or column for all."""
    if not scale.ndim:
        scale = scale.reshape(1, 1)
    if scale.ndim < 2:
        raise ValueError(
            f"{name} must be a number or have two axes; got shape {scale.shape}"
        )
    along_k = -1 if name == "scale_a" else -2
    for axis, length in ((-2, rows), (-1, columns)):
        there = scale.shape[axis]
        if there in (1, length):
            continue
        if axis == along_k or there != -(-length // SCALED):
            raise ValueError(
                f"{name} must be a number, or have shape ({rows}, {columns}) with a"
                f" scale per block of {SCALED} k, or 1 in place of a length; got shape"
                f" {scale.shape}"
            )
        scale = np.repeat(scale, SCALED, axis=axis).take(range(length), axis=axis)
    try:
        return np.broadcast_to(scale, (*stack, *scale.shape[-2:]))
    except ValueError:
        raise ValueError(
            f"{name} must broadcast to a stack of shape {stack}; got {scale.shape}"
        ) from None


class Scales:
    """A factor, a bias and scales of a product."""

    def __init__(
        self,
        alpha: float,
        bias: Array | None,
        given: dict[str, Array],
        count: int,
        full: tuple[int, ...],
    ) -> None:
        self._alpha, self._bias, self._given = alpha, bias, given
        self._count, self._full = count, full

    @property
    def blocks(self) -> bool:
        """Whether blocks of k have scales of their own."""
        return self._count > 1

    @property
    def exact(self) -> bool:
        """Whether all factors of a sum are powers of two."""
        given = () if self.blocks else self._given.values()
        return is_exact(self._alpha) and all(is_exact(x) for x in given)

    @property
    def block_names(self) -> tuple[str, ...]:
        """The names of the factors of blocks."""
        return tuple(self._given) if self.blocks else ()

    def names(self) -> Terms:
        """Return the names of the terms of an epilogue."""
        factors = () if self.blocks else tuple(self._given)
        if self._alpha != 1:
            factors = (*factors, "alpha")
        return Terms(factors, bias=None if self._bias is None else "bias")

    def at(
        self, at: Any, terms: Terms, wide: np.dtype[Any]
    ) -> tuple[Terms, tuple[tuple[Any, ...], ...]]:
        """Return the terms of some elements, flat, and the factors of parts."""
        by_block = [
            tuple(self._flat(name, block, at, wide) for name in self._given)
            for block in range(self._count)
        ]
        factors = () if self.blocks else by_block[0]
        if self._alpha != 1:
            factors = (*factors, wide.type(self._alpha))
        bias = None if self._bias is None else self._bias[at].astype(wide).ravel()
        parts: Sequence[tuple[Any, ...]] = by_block if self.blocks else [factors]
        return terms._replace(factors=factors, bias=bias), tuple(parts)

    def _flat(self, name: str, block: int, at: Any, wide: np.dtype[Any]) -> Array:
        scale = self._given[name]
        axis = -1 if name == "scale_a" else -2
        of_block = scale.take([min(block, scale.shape[axis] - 1)], axis=axis)
        flat: Array = np.broadcast_to(of_block, self._full)[at].astype(wide).ravel()
        return flat
