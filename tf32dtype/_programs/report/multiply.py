"""The product of a sample in one way, and what its operands lose there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._measures.error_measures import overflows
from ..._measures.format_facts import facts
from ..._measures.ways import Way
from .exponents import real_parts

Array = NDArray[Any]

_FLOAT32 = float(np.finfo(np.float32).max)
_LEAST_SCALE = np.float32(2.0**-126)


class Lost(NamedTuple):
    """The errors of finite numbers of an operand that left the range of a format."""

    #: how many became Inf or NaN, and how many are below the range and not exact
    overflows: int
    underflows: int
    #: the errors of the latter, zeros elsewhere; None: there are none
    errors: Array | None


def multiply(way: Way, a: Array, b: Array) -> tuple[Array, Lost, Lost]:
    """Multiply in a way.

    Parameters
    ----------
    way : Way
        The way. Operands of 64 bits are rounded to float32 first, but for block
        formats, and of complex numbers four real products are made, as
        :doc:`/reference/precision` says.
    a, b : numpy.ndarray
        (r, k) and (k, c), of float32, float64, complex64 or complex128.

    Returns
    -------
    product : numpy.ndarray
        float32, or complex64.
    lost_a, lost_b : Lost
        The losses of the operands. Real and imaginary parts count separately.
    """
    left = [_Operand(way, x, 1) for x in real_parts(a)]
    right = [_Operand(way, x, 0) for x in real_parts(b)]

    def product(x: _Operand, y: _Operand) -> Array:
        return way.product(x.prepared, y.prepared)

    if len(left) == len(right) == 1:
        whole = product(left[0], right[0])
    else:
        (ar, ai), (br, bi) = left, right
        whole = np.empty((a.shape[0], b.shape[1]), np.complex64)
        whole.real = product(ar, br) - product(ai, bi)
        whole.imag = product(ar, bi) + product(ai, br)
    return whole, _together(left), _together(right)


def _together(parts: Sequence[_Operand]) -> Lost:
    """Add the losses of a real operand, or of the real and imaginary parts."""
    lost = [part.lost() for part in parts]
    errors = [one.errors for one in lost if one.errors is not None]
    return Lost(
        sum(one.overflows for one in lost),
        sum(one.underflows for one in lost),
        np.sum(errors, axis=0) if errors else None,
    )


class _Operand:
    """A real operand, as a way multiplies it."""

    def __init__(self, way: Way, x: Array, axis: int) -> None:
        self.way = way
        self.exact = x.astype(np.float64)
        if way.precision is None:
            x = _for_blocks(self.exact, axis)
        self.prepared = way.prepare(x, axis)

    def lost(self) -> Lost:
        """Return the loss of the operand's finite numbers."""
        exact = np.where(np.isfinite(self.exact), self.exact, 0)
        precision = self.way.precision
        if precision is None:
            kept = np.asarray(self.prepared)
            beyond = int(np.count_nonzero(np.abs(exact) > _FLOAT32))
            return _lost(beyond, exact, kept, (exact != 0) & (kept == 0))
        # Components hold all finite values of float32.
        form = facts(precision.format if precision.components == 1 else "float32")
        x = self.prepared
        scale = _scale(x, form.max) if form.bits == 8 else np.float32(1)
        if form.bits == 8:
            x = x / scale
            exact = np.where(np.isfinite(x), x, exact).astype(np.float64)
        rounded = x.astype(form.dtype)
        kept = rounded.astype(np.float64)
        tiny = (np.abs(exact) < form.smallest_normal) & (kept != exact)
        return _lost(overflows(form, exact, rounded), exact, kept, tiny, float(scale))


def _lost(
    beyond: int, exact: Array, kept: Array, tiny: Array, scale: float = 1.0
) -> Lost:
    count = int(np.count_nonzero(tiny))
    errors = np.where(tiny, np.abs(exact - kept), 0) * scale if count else None
    return Lost(beyond, count, errors)


def _for_blocks(x: Array, axis: int) -> Array:
    """Replace the values that blocks cannot hold.

    Lines with Inf and NaN, which are not measured, become zeros. Values outside the
    range of float32, for which blocks have no codes either, become its largest number.
    """
    finite = np.isfinite(x).all(axis=axis, keepdims=True)
    return np.where(finite, np.clip(x, -_FLOAT32, _FLOAT32), 0)


def _scale(x: Array, greatest: float) -> Any:
    """Return what an operand is divided by before it is rounded to fp8."""
    magnitudes = np.abs(x[np.isfinite(x)])
    amax = np.max(magnitudes, initial=np.float32(0))
    if amax == 0:
        return np.float32(1)
    return max(np.float32(amax / np.float32(greatest)), _LEAST_SCALE)
