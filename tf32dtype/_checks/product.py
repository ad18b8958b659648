"""A matrix product as it should be: exact values, and how far results may be off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sizes import lines_of, sizes
from .unit_bounds import FLOAT32, Format
from .units import Unit

Array = NDArray[Any]

#: Elements of a tile times k, and elements of a tile.
_WORK, _TILE = 1 << 25, 1 << 18
_U32, _U64 = 2.0**-24, 2.0**-53
#: Roundings in an epilogue: of alpha * sum, beta * c, and two additions.
_ROUNDINGS = 4


class Values(NamedTuple):
    """Exact results in float64, and a bound of the error of computed ones."""

    exact: Array
    bound: Array

    def shares(self, d: Array) -> Array:
        """Return |d - exact| / bound; Inf for NaN or Inf where neither belongs."""
        with np.errstate(all="ignore"):
            error = np.abs(d.astype(np.float64) - self.exact)
            share = np.where(error == 0, 0.0, error / self.bound)
            same = np.isnan(self.exact) & np.isnan(d) | (self.exact == d)
        share[same] = 0.0
        share[np.isinf(self.bound) & ~np.isnan(d)] = 0.0
        share[np.isnan(share)] = np.inf
        return share


@dataclass(frozen=True)
class Product:
    """alpha * (a @ b) + beta * c + bias, of two matrices, in a unit.

    Numbers are float64, which holds all operands exactly.
    """

    a: Array
    b: Array
    unit: Unit
    #: dtype of the results
    dtype: np.dtype[Any]
    c: Array | None = None
    alpha: float = 1.0
    beta: float = 1.0
    bias: Array | None = None
    #: scales of rows of a, (m, groups), and of columns of b, (groups, n)
    scale_a: Array | None = None
    scale_b: Array | None = None
    #: k after which a sum is added to another accumulator in float32
    promote_every: int | None = None
    #: exponents by which the unit aligns a and b; None: those of the numbers
    exponents: tuple[Array, Array] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.a.shape[0], self.b.shape[1]

    @property
    def k(self) -> int:
        return int(self.a.shape[1])

    def part(self, rows: Any, columns: Any) -> Product:
        """Return the product of some rows and columns."""

        def of(x: Array | None) -> Array | None:
            if x is None:
                return None
            found: Array = np.broadcast_to(x, self.shape)[rows][:, columns]
            return found

        return replace(
            self,
            a=self.a[rows],
            b=self.b[:, columns],
            c=of(self.c),
            bias=of(self.bias),
            scale_a=None if self.scale_a is None else self.scale_a[rows],
            scale_b=None if self.scale_b is None else self.scale_b[:, columns],
            exponents=self.exponents
            and (self.exponents[0][rows], self.exponents[1][:, columns]),
        )

    def tiles(self) -> Iterator[tuple[slice, slice]]:
        """Yield rows and columns of tiles, whose work takes little memory."""
        m, n = self.shape
        side = max(1, min(int(_TILE**0.5), _WORK // max(self.k, 1) // 64))
        for i in range(0, m, side):
            for j in range(0, n, side):
                yield slice(i, i + side), slice(j, j + side)

    def shares(self, d: Array) -> Array:
        """Return the share of its bound that each result is off, in float32."""
        found = np.empty(self.shape, np.float32)
        for rows, columns in self.tiles():
            values = self.part(rows, columns).values()
            found[rows, columns] = values.shares(d[rows, columns])
        return found

    def values(self) -> Values:
        """Return exact results and bounds; for small matrices."""
        with np.errstate(all="ignore"):
            finite = [np.nan_to_num(x, nan=0, posinf=0, neginf=0) for x in self._arrays]
            a, b, c, bias = (x if x.size else None for x in finite)
            found = self._finite(a, b, c, bias)
            if all(np.isfinite(x).all() for x in self._arrays):
                return found
            special = self._special()
            exact = np.where(np.isfinite(special), found.exact, special)
            return Values(exact, np.where(np.isfinite(special), found.bound, 0))

    @property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        none = np.empty(0)
        c, bias = (none if x is None else x for x in (self.c, self.bias))
        return self.a, self.b, c, bias

    def _special(self) -> Array:
        """Return the results in float64, where they are Inf or NaN."""
        found = self.a @ self.b * self.alpha
        for scale in (self.scale_a, self.scale_b):
            found = found if scale is None else found * np.sign(scale).max()
        if self.c is not None:
            found = found + self.beta * self.c
        return found if self.bias is None else found + self.bias

    # -- sums --------------------------------------------------------------------------

    def _groups(self) -> list[slice]:
        """Return the ranges of k whose sums are scaled or promoted."""
        k = self.k
        scales = [x for x in (self.scale_a, self.scale_b) if x is not None]
        count = max(
            [1]
            + [x.shape[1] for x in (self.scale_a,) if x is not None]
            + [x.shape[0] for x in (self.scale_b,) if x is not None]
        )
        length = -(-k // count) if scales and count > 1 else self.promote_every or k
        return [slice(i, i + length) for i in range(0, max(k, 1), max(length, 1))]

    def _scale(self, group: int) -> Array | float:
        """Return the scales of all results in a range of k."""
        found: Array | float = 1.0
        if self.scale_a is not None:
            found = found * self.scale_a[:, min(group, self.scale_a.shape[1] - 1), None]
        if self.scale_b is not None:
            found = found * self.scale_b[min(group, self.scale_b.shape[0] - 1)]
        return found

    @property
    def _is_scaled(self) -> bool:
        return self.scale_a is not None or self.scale_b is not None

    @property
    def _c_in_sum(self) -> bool:
        """Whether c may be the initial value of accumulators."""
        plain = self.alpha == 1 and self.beta == 1 and not self._is_scaled
        return self.c is not None and plain

    def _finite(
        self, a: Array | None, b: Array | None, c: Array | None, bias: Array | None
    ) -> Values:
        if a is None or b is None:
            a, b = np.zeros_like(self.a), np.zeros_like(self.b)
        groups = self._groups()
        c_in_sum = self._c_in_sum
        exact, slack, error = (np.zeros(self.shape) for _ in range(3))
        total = np.zeros(self.shape)
        for i, ks in enumerate(groups):
            of_a, of_b = self.exponents or (None, None)
            x = lines_of(
                a[:, ks], self.unit.least[0], -1, None if of_a is None else of_a[:, ks]
            )
            y = lines_of(
                b[ks], self.unit.least[1], -2, None if of_b is None else of_b[ks]
            )
            s = sizes(x, y, c if c_in_sum and i == 0 else None)
            sums = self.unit.bound(s, x.values.shape[-1])
            scale = self._scale(i)
            magnitude = np.abs(scale)
            exact = exact + scale * s.exact
            slack = slack + magnitude * s.slack
            reach = np.minimum(np.abs(s.exact) + s.slack + sums.error, sums.reach)
            error = error + magnitude * sums.error
            if len(groups) > 1 or self._is_scaled:
                slack = slack + 4 * _U64 * magnitude * s.absolute
            if self._is_scaled:  # the product of scales, and the product with it
                error = error + 2.01 * _U32 * magnitude * reach + 2.0**-148
            total = total + magnitude * reach
        if len(groups) > 1:
            total = total * (1 + 2.01 * len(groups) * _U32)
            error = error + len(groups) * FLOAT32.quantum(total) / 2
        return self._rounded(exact, slack, error, None if c_in_sum else c, bias)

    # -- epilogue ----------------------------------------------------------------------

    def _rounded(
        self,
        exact: Array,
        slack: Array,
        error: Array,
        c: Array | None,
        bias: Array | None,
    ) -> Values:
        """Apply the epilogue, whose steps are rounded to float32 or to the results."""
        has_epilogue = self.alpha != 1 or c is not None or bias is not None
        form, sums = Format.of(self.dtype), self.unit.form
        u = 2.0 ** -(sums.kept + 1)
        if has_epilogue:
            exact, slack = exact * self.alpha, slack * abs(self.alpha)
            error = error * abs(self.alpha)
            steps = np.abs(exact) + slack + error
            if form.kept < sums.kept:  # the sum may be rounded to the result's dtype
                error = error + form.quantum(steps) / 2
            for x in (None if c is None else self.beta * c, bias):
                if x is not None:
                    exact, steps = exact + x, steps + np.abs(x)
            error = error + _ROUNDINGS * 1.01 * (u * steps + 2.0**-1074)
            if sums.least > -1000:
                error = error + _ROUNDINGS * 2.0**-149
            slack = slack + _ROUNDINGS * _U64 * steps
        reach = np.abs(exact) + slack + error
        if form.kept < sums.kept:
            error = error + form.quantum(reach) / 2
        bound = np.where(reach <= form.largest, error + slack, np.inf)
        return Values(exact, bound * (1 + 8 * _U64))
