"""Products of integer matrices, which are exact, and their rounding.

GEMMul8 multiplies residues of the integers, and reconstructs the product by the Chinese
remainder theorem. The product's magnitude is below half of the product of the moduli.
So the reconstruction gives the product itself. Here it is the sum of products of parts
of the integers, which are exact in float64. Fast mode does not ensure the bound. Then a
larger product is replaced by its remainder, as in the reconstruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._base.matrices import as_matrices, checked_out, given_back, matrices_of
from .._base.wording import cast_advice
from .._exact.flags import flags_of_product
from .._exact.stages import multiply_rows, rounds_as_usual
from .._formats.quantize import ROUNDINGS
from .schemes import Scheme

Array = NDArray[Any]
#: Sums of products by the exponent of the power of two that they count
Terms = dict[int, Array]

_NEAREST = ROUNDINGS.index("ties_to_even")
#: Columns and elements of a tile of the result.
_WIDTH, _TILE = 1024, 1 << 19
#: Parts of an integer, at most: the product of all moduli has 156 bits.
_MOST_PARTS = 8


def result_dtypes(
    scheme: Scheme, a: np.dtype[Any], b: np.dtype[Any], dtype: np.dtype[Any] | None
) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtype to which a product is rounded, and that of the result.

    Raises
    ------
    TypeError
        If the operands are neither float32 nor float64, or `dtype` is not a
        floating-point dtype.
    """
    for x in (a, b):
        if x not in (np.float32, np.float64):
            raise TypeError(
                f"operands must be float32 or float64 with precision={scheme.name!r};"
                f" got {x}{cast_advice(x, 'float64' if x.kind in 'iu' else 'float32')}"
            )
    common = np.result_type(a, b)
    chosen = common if dtype is None else dtype
    if chosen.kind not in "fc" and chosen.type not in _core.scalar_types:
        raise TypeError(f"dtype must be a floating-point dtype; got {chosen}")
    return (chosen if chosen in (np.float32, np.float64) else common), chosen


class IntegerProducts(NamedTuple):
    """Products in an emulated precision."""

    scheme: Scheme

    def matmul(
        self, a: Array, b: Array, dtype: np.dtype[Any] | None = None, out: Any = None
    ) -> Any:
        """Compute `tf32dtype.matmul` with this precision."""
        work, chosen = result_dtypes(self.scheme, a.dtype, b.dtype, dtype)
        left, right, stack, shape = as_matrices(a, b)
        written = checked_out(out, shape, chosen)
        result = np.empty((*stack, left.shape[-2], right.shape[-1]), work)
        _core.report(self._stacks(left, right, result), b"matmul")
        return given_back(result.reshape(shape).astype(chosen, copy=False), written)

    def __call__(self, a: Array, b: Array, out: Array) -> int:
        """Write products of stacks of matrices of one dtype; return the flags raised.

        NumPy's loops call this in a scope.
        """
        result = np.empty(out.shape, out.dtype)
        flags = self._stacks(a, b, result)
        out[...] = result
        return flags

    def _stacks(self, a: Array, b: Array, out: Array) -> int:
        if not rounds_as_usual():
            raise ValueError(
                f"precision {self.scheme.name!r} must not be used in a scope of"
                " td.arithmetic with float64=True, which rounds its integers"
            )
        flags = 0
        with np.errstate(all="ignore"):
            for place, x, y in matrices_of(a, b, out.shape[:-2]):
                flags |= _multiply(self.scheme, x, y, out[place])
        return flags


def _multiply(scheme: Scheme, a: Array, b: Array, out: Array) -> int:
    """Write the product of two matrices; return the flags raised."""
    rows = a, b.T
    finite = [np.isfinite(x).all(1) for x in rows]
    x, y = (
        np.where(kept[:, None], x, 0).astype(np.float64)
        for x, kept in zip(rows, finite, strict=True)
    )
    scales = scheme.scales(x, y, np.float64 in (a.dtype, b.dtype))
    x, y = (scheme.truncate(*pair) for pair in zip((x, y), scales, strict=True))
    height = max(_TILE // min(_WIDTH, max(len(y), 1)), 64)
    for left in range(0, len(y), _WIDTH):
        columns = slice(left, left + _WIDTH)
        for top in range(0, len(x), height):
            tile = slice(top, top + height)
            terms = integer_product(scheme, x[tile], y[columns])
            out[tile, columns] = _rounded(
                scheme, terms, scales[0][tile], scales[1][columns], out.dtype
            )
    # Each result of a row with Inf or NaN is Inf or NaN, in every precision.
    special = [~kept for kept in finite]
    for own, others, results in ((0, 1, out), (1, 0, out.T)):
        if special[own].any():
            results[special[own]] = multiply_rows(
                rows[own][special[own]], rows[others], out.dtype, _NEAREST
            )[0]
    return flags_of_product(out, a, b)


# -- integers --------------------------------------------------------------------------


def integer_product(scheme: Scheme, x: Array, y: Array) -> Terms:
    """Return products of rows of integers, as sums of exact terms."""
    terms: Terms = {}
    products = _of_parts(x, y) if scheme.kind == "crt" else _of_slices(scheme, x, y)
    for exponent, one, other in products:
        found = np.empty((len(x), len(y)))
        _core.float64_matmul(one, other.T, found)
        if exponent in terms:
            terms[exponent] += found
        else:
            terms[exponent] = found
    return terms


def _of_parts(x: Array, y: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield parts whose products add up to the products of integers.

    Parts have magnitudes of at most 2^(bits - 1). So sums of _MOST_PARTS k products are
    at most 2^53.
    """
    bits = (53 - (_MOST_PARTS * x.shape[1]).bit_length()) // 2 + 1
    others = _parts(y, bits)
    for i, part in enumerate(_parts(x, bits)):
        for j, other in enumerate(others):
            yield bits * (i + j), part, other


def _parts(x: Array, bits: int) -> list[Array]:
    """Return integers as parts, multiples of 2^0, 2^bits, 2^(2 bits) and so on."""
    found: list[Array] = []
    while not found or x.any():
        upper = np.rint(np.ldexp(x, -bits))
        found.append(x - np.ldexp(upper, bits))
        x = upper
    return found


def _of_slices(
    scheme: Scheme, x: Array, y: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Yield slices of x, and sums of slices of y that they are multiplied by.

    The first slice has a sign, the others have none. Slices i and j, counted from 1,
    are multiplied if i + j <= N + 1. Sums of N k products are at most 2^53.
    """
    count = scheme.number
    most = max((53 - 8 - (count * x.shape[1]).bit_length()) // 8, 1)
    first, second = (_slices(z, count) for z in (x, y))
    sums: dict[tuple[int, int], Array] = {}
    for i in range(count):
        used = count - i
        for start in range(0, used, most):
            end = min(start + most, used)
            if (start, end) not in sums:
                group = second[start]
                for piece in second[start + 1 : end]:
                    group = group * 256 + piece
                sums[start, end] = group
            yield 8 * (count - 1 - i + count - end), first[i], sums[start, end]


def _slices(x: Array, count: int) -> list[Array]:
    """Return integers as slices of 8 bits, the first one with the sign."""
    found = []
    for _ in range(count - 1):
        upper = np.floor(np.ldexp(x, -8))
        found.append(x - np.ldexp(upper, 8))
        x = upper
    return [x, *found[::-1]]


# -- rounding --------------------------------------------------------------------------


def _rounded(
    scheme: Scheme, terms: Terms, rows: Array, columns: Array, dtype: np.dtype[Any]
) -> Array:
    """Return sums of terms, divided by the scales of their row and column."""
    out = np.empty((len(rows), len(columns)), dtype)
    if out.size == 0:
        return out
    exponents = sorted(terms, reverse=True)
    stack = np.array([np.ldexp(terms[exponent], exponent) for exponent in exponents])
    exact, any_ratio = np.zeros((1, len(rows))), np.full(len(rows), np.inf)
    pairs = _core.exact_round(
        stack,
        exact,
        np.zeros((1, len(columns))),
        any_ratio,
        np.full(len(columns), np.inf),
        (-rows, -columns),
        _NEAREST,
        out,
        out.size,
    )
    assert pairs is not None
    if scheme.is_fast:
        half = scheme.product // 2
        error = 2.0**-48 * np.abs(stack).sum(0)
        undecided = np.abs(stack.sum(0)) + error >= half
        undecided[tuple(np.transpose(pairs))] = True
        pairs = np.argwhere(undecided)
    for i, j in pairs:
        total = sum(int(x) for x in stack[:, i, j])
        if scheme.is_fast:
            total = (total + half) % (2 * half) - half
        out[i, j] = _nearest(total, -int(rows[i] + columns[j]), dtype)
    return out


def _nearest(integer: int, exponent: int, dtype: np.dtype[Any]) -> Any:
    """Round integer * 2^exponent to float32 or float64, ties to even."""
    facts = np.finfo(dtype)
    lowest = int(facts.minexp - facts.nmant)
    sign, integer = -1.0 if integer < 0 else 1.0, abs(integer)
    unit = max(integer.bit_length() + exponent - facts.nmant - 1, lowest)
    cut = unit - exponent
    if cut > 0:
        half = 1 << (cut - 1)
        integer, rest = integer >> cut, integer & (2 * half - 1)
        integer += rest > half or (rest == half and integer & 1)
        exponent = unit
    # Now the product is exact, or it is above the range.
    while integer and integer % 2 == 0:
        integer, exponent = integer >> 1, exponent + 1
    return np.ldexp(sign * integer, exponent).astype(dtype)
