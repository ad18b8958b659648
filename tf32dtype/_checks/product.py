"""A matrix product as it should be: exact values, and how far results may be off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sizes import Lines, lines_of, sizes
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
    #: bound of the error of results for which nothing overflows
    bound: Array
    #: whether a sum or an intermediate result may overflow
    overflows: Array
    #: dtype of the results
    dtype: np.dtype[Any]

    def shares(self, d: Array) -> Array:
        """Return |d - exact| / bound, and Inf for results that are surely wrong."""
        top, has_inf = _range(self.dtype)
        with np.errstate(all="ignore"):
            x = d.astype(np.float64)
            error = np.abs(x - self.exact)
            share = np.where(error == 0, 0.0, error / self.bound)
            may = self.overflows | (np.abs(self.exact) + self.bound > top)
            must = np.abs(self.exact) - self.bound > top
            allowed = np.isinf(x) | (np.isnan(x) & (self.overflows | (not has_inf)))
            allowed |= np.abs(x) == top
            allowed &= (
                self.overflows | np.isnan(x) | (np.sign(x) == np.sign(self.exact))
            )
            same = np.isnan(self.exact) & np.isnan(x) | (self.exact == x)
        share[must] = np.inf
        share[may & allowed & np.isfinite(self.exact)] = 0.0
        share[same] = 0.0
        share[np.isnan(share)] = np.inf
        return share


@lru_cache(maxsize=32)
def _range(dtype: np.dtype[Any]) -> tuple[float, bool]:
    """Return the largest number of a dtype, and whether it has Inf."""
    with np.errstate(all="ignore"):
        has_inf = bool(np.isinf(np.array(np.inf).astype(dtype)))
    return Format.of(dtype).largest, has_inf


@dataclass(frozen=True)
class Product:
    """alpha * (a @ b) + beta * c + bias, of two matrices, in a unit.

    The operands may have any format that float64 holds exactly. Those of a `part` are
    float64.
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
    #: k of a group, whose sum is scaled and added to another accumulator in float32;
    #: None: there is one group
    group: int | None = None
    #: exponents by which the unit aligns a and b; None: those of the numbers
    exponents: tuple[Array, Array] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.a.shape[0], self.b.shape[1]

    @property
    def k(self) -> int:
        return int(self.a.shape[1])

    def scaled(self) -> tuple[Array, Array]:
        """Return operands whose product is alpha * (a @ b), with all scales."""
        a, b = self.a * self.alpha, self.b
        length = max(self.group or self.k, 1)
        if self.scale_a is not None:
            a = a * np.repeat(self.scale_a, length, axis=1)[:, : self.k]
        if self.scale_b is not None:
            b = b * np.repeat(self.scale_b, length, axis=0)[: self.k]
        return a, b

    def part(self, rows: Any, columns: Any) -> Product:
        """Return the product of some rows and columns."""

        def of(x: Array | None) -> Array | None:
            if x is None:
                return None
            found: Array = np.broadcast_to(x, self.shape)[rows][:, columns]
            return found

        return replace(
            self,
            a=self.a[rows].astype(np.float64, copy=False),
            b=self.b[:, columns].astype(np.float64, copy=False),
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
        side = max(1, min(int(_TILE**0.5), _WORK // max(self.k, 1) // 128))
        for i in range(0, m, side):
            for j in range(0, n, side):
                yield slice(i, i + side), slice(j, j + side)

    def shares(self, d: Array) -> tuple[Array, int]:
        """Return the share of its bound that each result is off, in float32.

        Also return for how many results a zero would be within the bound, too.
        """
        found = np.empty(self.shape, np.float32)
        zeros = 0
        for rows, columns in self.tiles():
            values = self.part(rows, columns).values()
            found[rows, columns] = values.shares(d[rows, columns])
            is_small = np.abs(values.exact) <= values.bound
            zeros += int(np.count_nonzero(is_small & (values.exact != 0)))
        return found, zeros

    def values(self) -> Values:
        """Return exact results and bounds; for small matrices."""
        with np.errstate(all="ignore"):
            arrays = (self.a, self.b, self.c, self.bias)
            a, b, c, bias = (
                None if x is None else np.nan_to_num(x, nan=0, posinf=0, neginf=0)
                for x in arrays
            )
            assert a is not None
            assert b is not None
            found = self._finite(a, b, c, bias)
            if all(x is None or np.isfinite(x).all() for x in arrays):
                return found
            special = self._special()
            exact = np.where(np.isfinite(special), found.exact, special)
            return found._replace(exact=exact)

    def _special(self) -> Array:
        """Return the results in float64, where they are Inf or NaN."""
        found: Array = np.zeros(self.shape)
        for i, ks in enumerate(self._groups()):
            found = found + self.a[:, ks] @ self.b[ks] * self._scale(i)
        found = found * self.alpha
        if self.c is not None:
            found = found + self.beta * self.c
        return found if self.bias is None else found + self.bias

    # -- sums --------------------------------------------------------------------------

    def _groups(self) -> list[slice]:
        """Return the ranges of k whose sums are scaled or promoted."""
        length = max(self.group or self.k, 1)
        return [slice(i, i + length) for i in range(0, max(self.k, 1), length)]

    def _scale(self, group: int) -> Array | float:
        """Return the scales of all results in a range of k."""
        found: Array | float = 1.0
        if self.scale_a is not None:
            found = found * self.scale_a[:, group, None]
        if self.scale_b is not None:
            found = found * self.scale_b[group]
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
        self, a: Array, b: Array, c: Array | None, bias: Array | None
    ) -> Values:
        groups = self._groups()
        added = c if self._c_in_sum else None
        exact, slack, error, total = (np.zeros(self.shape) for _ in range(4))
        overflows = np.zeros(self.shape, bool)
        for i, ks in enumerate(groups):
            x, y = self._lines(a, b, ks)
            s = sizes(x, y, None)
            first = s if added is None or i else sizes(x, y, added)
            sums = self.unit.bound(first, x.values.shape[-1])
            scale = self._scale(i)
            magnitude: Any = np.abs(scale)
            exact = exact + scale * s.exact
            slack = slack + magnitude * first.slack
            reach = np.abs(s.exact) + first.slack + sums.error
            error = error + magnitude * sums.error
            if len(groups) > 1 or self._is_scaled:
                slack = slack + 4 * _U64 * magnitude * s.absolute
            if self._is_scaled:  # the scales, their product, and the product with it
                error = error + 4.01 * _U32 * magnitude * reach + 2.0**-148
            total = total + magnitude * reach
            overflows |= ~(sums.reach <= self.unit.form.largest)
        if len(groups) == 1:
            raw = reach, magnitude * abs(self.alpha)
        else:
            if added is not None:
                total = total + np.abs(added)
            total = total * (1 + 2.01 * (len(groups) + 1) * _U32)
            error = error + (len(groups) + 1) * FLOAT32.quantum(total) / 2
            overflows |= ~(total <= FLOAT32.largest)
            raw = total, abs(self.alpha)
        if added is not None:
            exact = exact + added
        found = self._rounded(exact, slack, error, raw, None if added is c else c, bias)
        return found._replace(overflows=found.overflows | overflows)

    def _lines(self, a: Array, b: Array, ks: slice) -> tuple[Lines, Lines]:
        of_a = of_b = None
        if self.exponents is not None:
            of_a, of_b = self.exponents[0][:, ks], self.exponents[1][ks]
        least_a, least_b = self.unit.least
        return lines_of(a[:, ks], least_a, -1, of_a), lines_of(b[ks], least_b, -2, of_b)

    # -- epilogue ----------------------------------------------------------------------

    def _rounded(
        self,
        exact: Array,
        slack: Array,
        error: Array,
        raw: tuple[Array, Array | float],
        c: Array | None,
        bias: Array | None,
    ) -> Values:
        """Apply the epilogue, whose steps are rounded to float32 or to the results.

        `raw` has the largest magnitude of the sum, and of the factor it is multiplied
        by. c is None if it is in the sum.
        """
        form, sums = Format.of(self.dtype), self.unit.form
        narrows = form.kept < sums.kept
        u = 2.0 ** -(sums.kept + 1)
        overflows = np.zeros(self.shape, bool)
        has_epilogue = self.alpha != 1 or c is not None or bias is not None
        if has_epilogue or self._is_scaled or self._c_in_sum:
            exact, slack = exact * self.alpha, slack * abs(self.alpha)
            error = error * abs(self.alpha)
            if narrows:  # the sum may be rounded to the dtype of the results
                error = error + raw[1] * form.quantum(raw[0]) / 2
                overflows |= ~(raw[0] <= form.largest)
            steps = np.abs(exact) + slack + error
            for x in (None if c is None else self.beta * c, bias):
                if x is not None:
                    if narrows:  # also what is added to x
                        error = error + form.quantum(steps) / 2
                    exact, steps = exact + x, steps + np.abs(x)
            overflows |= ~(steps <= sums.largest)
            if has_epilogue:
                error = error + _ROUNDINGS * 1.01 * (u * steps + 2.0**-1074)
                if sums.least > -1000:
                    error = error + _ROUNDINGS * 2.0**-149
                slack = slack + _ROUNDINGS * _U64 * steps
        reach = np.abs(exact) + slack + error
        if narrows:
            error = error + form.quantum(reach) / 2
        bound = (error + slack) * (1 + 8 * _U64)
        return Values(exact, bound, overflows | ~np.isfinite(bound), self.dtype)
