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

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._base.text import progress
from .rows import Rows, Slices, U, likely_bits, most_bits

Array = NDArray[Any]
#: A number for each row and for each column. Their products bound the elements.
Bound = tuple[Array, Array]
Bounds = list[Bound]
#: A slice of the first operand and one of the second.
Pair = tuple[int, int]

#: Products of fewer multiply-adds are exact sums at once, which take less time.
_FEW = 1 << 13
#: Dot products of at most so many terms are exact sums at once, too.
_SHORT = 16
#: Products with at most so many rows or columns are dot products: slices take longer.
_NARROW = 4
#: Elements of a tile of the result with slices, times two, and of a block of k.
_TILE = 1 << 19
#: Elements of a tile of the result without slices: places of many need memory.
_PLACES = 1 << 22
#: Products of exact sums between two steps of a progress bar: half a second.
_PRODUCTS = 1 << 27
#: Seconds after which a progress bar is drawn.
_PATIENCE = 2.0
#: Rows of a tile, at least: fewer rows make slow products.
_LEAST_HEIGHT = 64
#: The share of undecided elements above which slices are faster than dot products, and
#: above which further slices are faster than exact sums.
_MANY, _SOME = 1 / 4, 1 / 50
#: Products of slices that are added at each step: those above this share of the norms.
_STEPS = (2.0**-60, 2.0**-80, 2.0**-100, 2.0**-120, 2.0**-140)
_MOST_SLICES = 8


def multiply_rows(
    x: Array,
    y: Array,
    dtype: np.dtype[Any],
    rounding: int,
    shows_progress: bool = False,
) -> tuple[Array, bool]:
    """Compute the products of all rows of x and of y, each rounded once.

    Parameters
    ----------
    x, y : ndarray of float32 or float64, (m, k) and (n, k)
        The rows, of any strides.
    dtype : dtype
        float32 or float64.
    rounding : int
        A value of `enum tf_rounding`.
    shows_progress : bool
        Whether a progress bar may appear on a terminal.

    Returns
    -------
    results : ndarray, (m, n)
        The products.
    are_finite : bool
        Whether all of them are finite for certain.
    """
    result = np.empty((len(x), len(y)), dtype)
    is_small = x.shape[1] * result.size <= _FEW or min(result.shape) <= _NARROW
    if is_small or not rounds_as_usual():
        every = np.stack(np.divmod(np.arange(result.size), len(y)), axis=1)
        found, are_finite = multiply_pairs(x, y, dtype, rounding, every)
        return found.reshape(result.shape), are_finite
    bar = progress(shows_progress, "multiplying exactly", 100, sys.stderr, _PATIENCE)
    with np.errstate(all="ignore"), bar as advance:
        product = _Product(x, y, result, rounding, advance)
        product.compute()
    return result, product.is_finite()


def multiply_pairs(
    x: Array, y: Array, dtype: np.dtype[Any], rounding: int, pairs: Array
) -> tuple[Array, bool]:
    """Compute products of pairs of rows, (count, 2), as `multiply_rows`."""
    result = np.empty(len(pairs), dtype)
    k = x.shape[1]
    if k <= _SHORT or k * len(pairs) <= _FEW or not rounds_as_usual():
        one, other = (_core.exact_load(z) for z in (x, y))
        _core.exact_dots(one, other, pairs, result, rounding)
        return result, False
    with np.errstate(all="ignore"):
        product = _Product(x, y, result, rounding)
        product.elements(pairs)
    return result, product.is_finite()


def rounds_as_usual() -> bool:
    """Return whether no scope of `arithmetic` rounds float64 to fewer bits."""
    return bool((np.array([1.0]) + 2.0**-52)[0] > 1.0)


def float64_error(depth: int) -> float:
    """Bound the error of a sum of products, relative to the norms.

    Each product is rounded at most `depth` times until it has been added, which is the
    number of products for sums in any order. The bound covers the roundings of the
    test, too.
    """
    return (depth + 8) * U / (1 - (depth + 8) * U)


def compensated_error(k: int) -> float:
    """Bound the error of compensated dot products, relative to the norms."""
    return 2.1 * ((k / 8 + 64) * U) ** 2


class _Product:
    """A product of rows, and its result."""

    def __init__(
        self,
        x: Array,
        y: Array,
        out: Array,
        rounding: int,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self._x, self._y = Rows.of(x), Rows.of(y)
        self._out, self._rounding = out, rounding
        self._advance, self._done = advance, 0
        self._slices: tuple[Slices, Slices] | None = None
        self._buffer = np.empty(0)

    def compute(self) -> None:
        """Compute all elements."""
        m, n = self._out.shape
        if self._out.dtype == np.float32 or self._is_exact():
            height = max(_PLACES // n, _LEAST_HEIGHT)
            for top in range(0, m, height):
                self._first_stage(slice(top, min(top + height, m)))
        else:
            self._sliced(slice(0, m))
        self._add_special()

    def _is_exact(self) -> bool:
        """Return whether float64 products have no rounding."""
        return bool(self._x.ratios.max() * self._y.ratios.max() <= 2.0**53)

    def is_finite(self) -> bool:
        """Return whether bounds prove that all results are finite."""
        x, y = self._x, self._y
        are_usual = x.special is y.special is x.exponents is y.exponents is None
        return are_usual and x.most * y.most < np.finfo(self._out.dtype).max / 2

    # -- bounds ------------------------------------------------------------------------

    def _round(
        self,
        terms: Array | tuple[Array, Array],
        bounds: Bounds,
        ratios: Bound,
        rows: slice,
        share: float,
    ) -> Array | None:
        """Round sums of some rows; return the places of undecided ones.

        None means that their share is larger than `share`.
        """
        out = self._out[rows]
        row_bounds, column_bounds = (
            np.array(side) for side in zip(*bounds, *self._lost(rows), strict=True)
        )
        return _core.exact_round(
            terms,
            row_bounds,
            column_bounds,
            ratios[0],
            ratios[1],
            self._exponents(rows),
            self._rounding,
            out,
            int(share * out.size),
        )

    def _exponents(self, rows: slice) -> tuple[Array, Array] | None:
        """Return the powers of two that sums are multiplied by."""
        x, y = self._x, self._y
        if x.exponents is None and y.exponents is None:
            return None
        one = np.zeros(len(x.norms), np.int64) if x.exponents is None else x.exponents
        two = np.zeros(len(y.norms), np.int64) if y.exponents is None else y.exponents
        return one[rows], two

    def _lost(self, rows: slice) -> Bounds:
        """Return bounds for the lost parts of the operands' rows."""
        x, y = self._x, self._y
        found = []
        if x.lost is not None:
            found.append((x.lost[rows], y.norms))
        if y.lost is not None:
            found.append((x.norms[rows], y.lost))
        return found

    # -- float64 products --------------------------------------------------------------

    def _first_stage(self, rows: slice) -> None:
        x, y = self._x, self._y
        error = float64_error(_core.float64_depth(x.k))
        undecided = self._round(
            (x.operand[rows], y.operand.T),
            [(x.norms[rows] * error, y.norms)],
            (x.ratios[rows], y.ratios),
            rows,
            _MANY,
        )
        if undecided is None:
            self._sliced(rows)
        else:
            self._count((rows.stop - rows.start) * len(y.norms) - len(undecided))
            self.elements(undecided, rows.start)

    # -- elements ----------------------------------------------------------------------

    def elements(self, pairs: Array, top: int = 0) -> None:
        """Compute products of pairs of rows: by dot products, then by exact sums.

        Rows of x are counted from `top` on.
        """
        if top:
            pairs[:, 0] += top
        x, y = (rows.ready_for(len(pairs)) for rows in (self._x, self._y))
        error = compensated_error(x.k)
        together = max(_PRODUCTS // max(x.k, 1), 1)
        for first in range(0, len(pairs), together):
            part = slice(first, first + together)
            out = self._out if self._out.ndim > 1 else self._out[part]
            _core.exact_elements(x, y, error, pairs[part], out, self._rounding)
            self._count(len(pairs[part]))

    def _count(self, elements: int) -> None:
        """Show how many elements of the result are finished, in percent."""
        before = self._done * 100 // self._out.size
        self._done += elements
        for _ in range(before, self._done * 100 // self._out.size):
            self._advance()

    # -- slices ------------------------------------------------------------------------

    def _sliced(self, rows: slice) -> None:
        """Compute some rows by products of slices."""
        blocks = self._cut(_STEPS[0])[0].blocks
        height = max(2 * _TILE // blocks // self._out.shape[1], _LEAST_HEIGHT)
        for top in range(rows.start, rows.stop, height):
            self._sliced_tile(slice(top, min(top + height, rows.stop)))

    def _sliced_tile(self, rows: slice) -> None:
        known: list[Pair] = []
        for number, smallest in enumerate(_STEPS):
            before = len(known)
            terms = self._multiply_slices(smallest, rows, known)
            if number and len(known) == before:
                continue
            undecided = self._round_slices(
                terms, known, rows, _SOME if number else _MANY
            )
            if undecided is not None:
                break
        else:
            undecided = self._round_slices(terms, known, rows, 1)
            assert undecided is not None
        self._count((rows.stop - rows.start) * self._out.shape[1] - len(undecided))
        self.elements(undecided, rows.start)

    def _round_slices(
        self, terms: Array, known: list[Pair], rows: slice, share: float
    ) -> Array | None:
        bounds = self._rest_bounds(known, rows)
        m, n = terms.shape[1:]
        ratios = np.full(m, np.inf), np.full(n, np.inf)
        return self._round(terms, bounds, ratios, rows, share)

    def _multiply_slices(
        self, smallest: float, rows: slice, known: list[Pair]
    ) -> Array:
        """Return the products of slices above a share of the norms' product.

        Those of the pairs in `known` are the first ones of the buffer already; the
        other pairs are added.
        """
        before = self._slices
        one, other = self._cut(smallest)
        if self._slices is not before:  # other slices than those of the known pairs
            known.clear()
        places = [
            (s, t) for s in range(len(one.parts)) for t in range(len(other.parts))
        ]
        shares = {(s, t): one.share(s) * other.share(t) for s, t in places}
        new = [pair for pair in places if shares[pair] > smallest and pair not in known]
        new = sorted(new, key=lambda pair: -shares[pair]) or (
            places[:1] if not known else []
        )
        blocks, depth = one.blocks, one.depth
        shape = rows.stop - rows.start, self._out.shape[1]
        first = len(known) * blocks
        terms = self._room((len(known) + len(new)) * blocks, shape, first)
        for number, (s, t) in enumerate(new):
            x, y = one.parts[s][rows], other.parts[t]
            for block in range(blocks):
                part = slice(block * depth, (block + 1) * depth)
                out = terms[first + number * blocks + block]
                _core.float64_matmul(x[:, part], y[:, part].T, out)
        known += new
        return terms

    def _room(self, count: int, shape: tuple[int, int], kept: int) -> Array:
        """Return a buffer of matrices, which keeps the first ones of the last call."""
        size = math.prod(shape)
        if count * size > self._buffer.size:
            buffer = np.empty(count * size)
            buffer[: kept * size] = self._buffer[: kept * size]
            self._buffer = buffer
        return self._buffer[: count * size].reshape(count, *shape)

    def _cut(self, smallest: float) -> tuple[Slices, Slices]:
        """Return slices, so many that their rests are below a share of the rows.

        They have fewer bits if the likely number of bits does not make all products
        exact.
        """
        if self._slices is None:
            found = Slices(self._x), Slices(self._y)
            found[0].bits = found[1].bits = likely_bits(*found)
            self._slices = found
        for slices in self._slices:
            slices.cut_until(smallest, _MOST_SLICES)
        if not self._slices[0].products_are_exact(self._slices[1]):
            bits = most_bits(self._slices[0].depth)
            self._slices = Slices(self._x, bits), Slices(self._y, bits)
            for slices in self._slices:
                slices.cut_until(smallest, _MOST_SLICES)
        return self._slices

    def _rest_bounds(self, known: list[Pair], rows: slice) -> Bounds:
        """Return the bounds of products that are not among the known terms."""
        assert self._slices is not None
        one, other = self._slices
        bounds = []
        for s, norms in enumerate(one.norms):
            missing = [n for t, n in enumerate(other.norms) if (s, t) not in known]
            if missing:
                bounds.append((norms[rows], np.sum(missing, axis=0)))
        bounds.append((one.rests[rows], self._y.norms))
        bounds.append(((self._x.norms + one.rests)[rows], other.rests))
        return [(a, b) for a, b in bounds if a.any() and b.any()] or bounds[-1:]

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

    Only the signs of finite numbers count. einsum adds all terms; some BLAS libraries
    leave out zeros.
    """
    one, other = (np.where(np.isfinite(z), np.sign(z), z) for z in (x, y))
    found: Array = np.einsum("ik,jk->ij", one, other)
    found[np.isnan(found)] = np.nan
    return found
