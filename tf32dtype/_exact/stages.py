"""Correctly rounded products of rows, in stages.

1. One float64 product with a bound of its errors: decides most results of float32.
2. Products of slices, which are exact: for float64, and where many are undecided.
3. Dot products in twice float64's precision: for a few undecided results.
4. Exact sums: for all others, among them ties that no bound decides.

Each stage rounds both ends of an interval that contains the exact value. The result is
decided if both give the same number. So the bits of results never depend on how the
stages compute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .rows import Rows, Slices, U, likely_bits, most_bits

Array = NDArray[Any]

#: Products of fewer multiply-adds are exact sums at once, which take less time.
_FEW = 1 << 13
#: Products with at most so many rows or columns are dot products, as slices take longer.
_NARROW = 4
#: Elements of a tile of the result in the first stage, and with slices.
_TILE, _SLICED_TILE = 1 << 19, 1 << 17
#: Rows of a tile, at least: fewer rows make slow products.
_LEAST_HEIGHT = 64
#: The share of undecided elements above which slices are faster than dot products, and
#: above which further slices are faster than exact sums.
_MANY, _SOME = 1 / 8, 1 / 50
#: Products of slices that are added at each step: those above this share of the product.
_STEPS = (2.0**-60, 2.0**-80, 2.0**-100, 2.0**-120, 2.0**-140)
_MOST_SLICES = 8
#: Pairs of rows at a time.
_PAIRS = 1 << 20


def multiply_rows(x: Array, y: Array, dtype: np.dtype[Any], rounding: int) -> Array:
    """Return the products of all rows of x and of y, each rounded once.

    Parameters
    ----------
    x, y : ndarray of float32 or float64, (m, k) and (n, k)
        The rows, of any strides.
    dtype : dtype
        float32 or float64.
    rounding : int
        A value of `enum tf_rounding`.
    """
    result = np.empty((len(x), len(y)), dtype)
    is_small = x.shape[1] * result.size <= _FEW or min(result.shape) <= _NARROW
    if is_small or not rounds_as_usual():
        every = np.stack(np.divmod(np.arange(result.size), len(y)), axis=1)
        return multiply_pairs(x, y, dtype, rounding, every).reshape(result.shape)
    with np.errstate(all="ignore"):
        _Product(Rows.of(x), Rows.of(y), result, rounding).compute()
    return result


def multiply_pairs(
    x: Array, y: Array, dtype: np.dtype[Any], rounding: int, pairs: Array
) -> Array:
    """Return the products of pairs of rows, (count, 2), each rounded once."""
    result = np.empty(len(pairs), dtype)
    if x.shape[1] * len(pairs) <= _FEW or not rounds_as_usual():
        one, other = (_core.exact_load(z)[0] for z in (x, y))
        _core.exact_dots(one, other, pairs, result, rounding)
        return result
    with np.errstate(all="ignore"):
        product = _Product(Rows.of(x), Rows.of(y), result, rounding)
        for start in range(0, len(pairs), _PAIRS):
            part = slice(start, start + _PAIRS)
            result[part] = product.elements(pairs[part])
    return result


def rounds_as_usual() -> bool:
    """Return whether no scope of `arithmetic` rounds float64 to fewer bits."""
    return bool((np.array([1.0]) + 2.0**-52)[0] > 1.0)


def float64_error(k: int) -> float:
    """Bound the error of a sum of k products in any order, relative to the norms.

    The bound covers the roundings of the test, too.
    """
    return (k + 8) * U / (1 - (k + 8) * U)


def compensated_error(k: int) -> float:
    """Bound the error of `_core.exact_compensate`, relative to the norms."""
    return 2.1 * ((k / 8 + 64) * U) ** 2


class _Product:
    """A product of rows, and its result."""

    def __init__(self, x: Rows, y: Rows, out: Array, rounding: int) -> None:
        self._x, self._y, self._out, self._rounding = x, y, out, rounding
        self._slices: tuple[Slices, Slices] | None = None

    def compute(self) -> None:
        x, y = self._x, self._y
        m, n = self._out.shape
        ratio = x.ratios.max() * y.ratios.max()
        if self._out.dtype == np.float32 or ratio <= 2.0**53:
            height = max(_TILE // n, _LEAST_HEIGHT)
            for top in range(0, m, height):
                self._first_stage(np.arange(top, min(top + height, m)))
        else:
            self._sliced(np.arange(m), None)
        self._add_special()

    # -- rounding ----------------------------------------------------------------------

    def _round(self, terms: Array, bounds: list[tuple[Array, Array]], ratios: Any,
               exponents: Any, out: Array) -> tuple[Array, int]:
        """Round sums; return where they are undecided, and how many are."""
        undecided = np.empty(out.shape, bool)
        count = _core.exact_round(
            terms,
            np.array([row for row, _ in bounds]),
            np.array([column for _, column in bounds]),
            *ratios,
            exponents,
            self._rounding,
            out,
            undecided.view(np.uint8),
        )
        return undecided, count

    def _exponents(self, rows: Any, columns: Any) -> tuple[Array, Array] | None:
        x, y = self._x, self._y
        if x.exponents is None and y.exponents is None:
            return None
        one = np.zeros(len(x.norms), np.int64) if x.exponents is None else x.exponents
        two = np.zeros(len(y.norms), np.int64) if y.exponents is None else y.exponents
        return one[rows], two[columns]

    def _lost(self, rows: Any, columns: Any) -> list[tuple[Array, Array]]:
        """Return the bounds of what the rows of the operands lack."""
        x, y = self._x, self._y
        found = []
        if x.lost is not None:
            found.append((x.lost[rows], y.norms[columns]))
        if y.lost is not None:
            found.append((x.norms[rows], y.lost[columns]))
        return found

    # -- stages ------------------------------------------------------------------------

    def _first_stage(self, rows: Array) -> None:
        x, y = self._x, self._y
        part = slice(rows[0], rows[-1] + 1)
        every = slice(None)
        sums = np.empty((1, len(rows), len(y.values)))
        _core.float64_matmul(x.values[part], y.values.T, sums[0])
        bounds = [(x.norms[part] * float64_error(x.k), y.norms)]
        undecided, count = self._round(
            sums,
            bounds + self._lost(part, every),
            (x.ratios[part], y.ratios),
            self._exponents(part, every),
            self._out[part],
        )
        if count > _MANY * undecided.size:
            self._sliced(rows, undecided)
        elif count:
            self._few(rows, np.flatnonzero(undecided))

    def _few(self, rows: Array, places: Array) -> None:
        """Compute elements of some rows."""
        for start in range(0, len(places), _PAIRS):
            part = places[start : start + _PAIRS]
            pairs = np.stack(np.divmod(part, self._out.shape[1]), axis=1)
            pairs[:, 0] += rows[0]
            self._out[pairs[:, 0], pairs[:, 1]] = self.elements(pairs)

    def elements(self, pairs: Array) -> Array:
        """Return products of pairs of rows: by dot products, then by exact sums."""
        x, y = self._x, self._y
        i, j = pairs[:, 0], pairs[:, 1]
        sums = _core.exact_compensate(x.values, y.values, pairs)
        error = x.norms[i] * y.norms[j] * compensated_error(x.k)
        for row, column in self._lost(i, j):
            error += row * column
        never = np.full(1, np.inf), np.full(len(pairs), np.inf)
        exponents = self._exponents(i, j)
        out = np.empty((1, len(pairs)), self._out.dtype)
        undecided, count = self._round(
            np.ascontiguousarray(sums.T)[:, None],
            [(np.ones(1), error * (1 + 2.0**-40))],
            never,
            None if exponents is None else (np.zeros(1, np.int64), sum(exponents)),
            out,
        )
        left = undecided[0]
        for special, own in ((x.special, i), (y.special, j)):
            if special is not None:
                left |= special[own]
        if left.any():
            results = np.empty(np.count_nonzero(left), out.dtype)
            _core.exact_dots(x.given, y.given, pairs[left], results, self._rounding)
            out[0, left] = results
        return out[0]

    # -- slices ------------------------------------------------------------------------

    def _sliced(self, rows: Array, undecided: Array | None) -> None:
        """Compute elements of some rows by products of slices."""
        columns = np.arange(self._out.shape[1])
        height = max(_SLICED_TILE // len(columns), _LEAST_HEIGHT)
        for top in range(0, len(rows), height):
            some = slice(top, top + height)
            wanted = None if undecided is None else undecided[some]
            self._sliced_tile(rows[some], columns, wanted)

    def _sliced_tile(self, rows: Array, columns: Array, wanted: Array | None) -> None:
        if wanted is None:
            wanted = np.ones((len(rows), len(columns)), bool)
        terms = np.empty((_MOST_SLICES**2, len(rows), len(columns)))
        known: dict[tuple[int, int], None] = {}
        results = np.empty(wanted.shape, self._out.dtype)
        never = np.full(len(rows), np.inf), np.full(len(columns), np.inf)
        exponents = self._exponents(rows, columns)
        for number, smallest in enumerate(_STEPS):
            before = len(known)
            self._multiply_slices(smallest, rows, columns, terms, known)
            if number and len(known) == before:
                continue
            bounds = self._rest_bounds(known, rows, columns)
            undecided, count = self._round(
                terms[: len(known)], bounds + self._lost(rows, columns), never,
                exponents, results,
            )
            decided = wanted & ~undecided
            block = self._out[rows[0] : rows[-1] + 1]
            np.copyto(block, results, where=decided)
            wanted = wanted & ~decided
            left = np.count_nonzero(wanted)
            if left == 0:
                return
            if left <= _MANY * wanted.size and number == 0 or left <= _SOME * wanted.size:
                break
        self._few(rows, np.flatnonzero(wanted))

    def _cut(self, smallest: float) -> tuple[Slices, Slices]:
        """Return slices, so many that their rests are below a share of the rows."""
        bits = likely_bits(self._x, self._y) if self._slices is None else 0
        while True:
            if self._slices is None:
                self._slices = Slices(self._x, bits), Slices(self._y, bits)
            one, other = self._slices
            for slices in (one, other):
                while slices.rest_share() > smallest and len(slices.parts) < _MOST_SLICES:
                    slices.cut()
            most = most_bits(self._x.k)
            counts = [
                max((s.count(i) for i in range(len(s.parts))), default=0)
                for s in (one, other)
            ]
            if one.bits <= most or counts[0] * counts[1] <= 2.0**53:
                return self._slices
            self._slices, bits = None, most

    def _multiply_slices(self, smallest, rows, columns, terms, known) -> None:
        before = self._slices
        one, other = self._cut(smallest)
        if before is not None and self._slices is not before:
            known.clear()  # slices were cut again
        found = sorted(
            (
                (one.share(s) * other.share(t), s, t)
                for s in range(len(one.parts))
                for t in range(len(other.parts))
            ),
            reverse=True,
        )
        for share, s, t in found:
            if share > smallest and (s, t) not in known:
                a = one.parts[s][rows[0] : rows[-1] + 1]
                _core.float64_matmul(a, other.parts[t].T, terms[len(known)])
                known[s, t] = None

    def _rest_bounds(self, known, rows, columns) -> list[tuple[Array, Array]]:
        """Return the bounds of products that are not among the known ones."""
        assert self._slices is not None
        one, other = self._slices
        bounds = []
        for s, norms in enumerate(one.norms):
            missing = [n for t, n in enumerate(other.norms) if (s, t) not in known]
            if missing:
                bounds.append((norms[rows], np.sum(missing, axis=0)[columns]))
        rest, other_rest = one.rests[-1], other.rests[-1]
        bounds.append((rest[rows], self._y.norms[columns]))
        bounds.append(((self._x.norms + rest)[rows], other_rest[columns]))
        used = [(a, b) for a, b in bounds if a.any() and b.any()]
        return used or bounds[-1:]

    # -- special values ----------------------------------------------------------------

    def _add_special(self) -> None:
        """Compute rows and columns with Inf or NaN, whose results are Inf or NaN."""
        x, y, out = self._x, self._y, self._out
        if x.special is not None:
            out[x.special] = _special(x.given[x.special], y.given)
        if y.special is not None:
            out[:, y.special] = _special(x.given, y.given[y.special])


def _special(x: Array, y: Array) -> Array:
    """Return the products of rows one of which has an Inf or a NaN.

    Only the signs of finite numbers count. einsum adds all terms, which not every BLAS
    does for zeros.
    """
    one, other = (np.where(np.isfinite(z), np.sign(z), z) for z in (x, y))
    found = np.einsum("ik,jk->ij", one, other)
    found[np.isnan(found)] = np.nan
    return found
