"""Bounds of the errors of products: of a unit in any order, and of a precision."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._base.matrices import as_matrices
from .._base.wording import brief
from .._formats.quantize import quantize
from .._formats.table import find_dtype, format_of_dtype, formats
from .._matmul.precisions import (
    Precision,
    PrecisionName,
    Settings,
    find_precision,
    rounding_of,
)
from ..tensor_core.cpu_units import SumType
from ..tensor_core.device import DeviceName
from ..tensor_core.models import Instruction
from ..tensor_core.products import plain_array
from .product import Product
from .request import Request, request
from .sizes import error_of_sum
from .unit_bounds import FLOAT32, Format
from .units import find_unit

Array = NDArray[Any]

_U = 2.0**-24


def error_bound(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    unit: DeviceName | SumType | None = None,
    precision: PrecisionName | None = None,
    instruction: Instruction | None = None,
    accumulator: DTypeLike | None = None,
    promote_every: int | None = None,
    dtype: DTypeLike | None = None,
) -> NDArray[np.float64]:
    """Bound the error of each element of a matrix product.

    Parameters
    ----------
    a, b : array_like
        The operands, of shapes (..., m, k) and (..., k, n), as for `tf32dtype.matmul`.
    c : array_like, optional
        An array that is added; it broadcasts to the result's shape.
    unit : str, optional
        A device of `tf32dtype.tensor_core.devices`: the bound holds for any order in
        which its unit adds. "float32" and "float64" stand for a program that multiplies
        and adds in this format, in any order.
    precision : str, optional
        A precision of `tf32dtype.matmul`, such as "bf16x9": the bound holds for its
        result. With `unit`, the precision says what float32 operands are rounded to.
        Give one of `unit` and `precision`, or both.
    instruction, accumulator : str, optional
        As for `tf32dtype.tensor_core.matmul`.
    promote_every : int, optional
        The k after which sums are added to other float32 accumulators.
    dtype : dtype, optional
        The dtype that results are rounded to, to nearest. By default, results have the
        dtype of the accumulators.

    Returns
    -------
    ndarray of float64, shape (..., m, n)
        The largest distance between a computed result and the exact value of a @ b + c,
        including the rounding of operands. Inf means that a sum may overflow, NaN that
        an operand is Inf or NaN.

    Raises
    ------
    TypeError, ValueError
        For operands that the unit or precision does not multiply, shapes that do not
        fit, and unknown names.

    See Also
    --------
    tf32dtype.testing.check_matmul : Compare results with the bound.
    tf32dtype.ulp_distance : Measure a difference in units in the last place.

    Notes
    -----
    The bounds are rigorous: they are computed in float64, and rounded up.
    :doc:`/concepts/error_bounds` derives them. A bound for any order is usually 20 to
    500 times the real error of an order that is in use.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 256, 256)).astype(td.bfloat16)
    >>> d = td.tensor_core.matmul(a, b, device="H100")
    >>> exact = a.astype(np.float64) @ b.astype(np.float64)
    >>> bool((abs(d - exact) <= td.error_bound(a, b, unit="H100")).all())
    True
    """
    if unit is None and precision is None:
        raise TypeError("error_bound must be given unit= or precision=; got neither")
    row = None if precision is None else find_precision(precision)
    empty = np.broadcast_to(np.float32(0), _shape(a, b))
    asked = request(empty, a, b, c, 1, 1, None, None, None, promote_every)
    if unit is None:
        assert row is not None
        for name, value in (("instruction", instruction), ("accumulator", accumulator)):
            if value is not None:
                raise ValueError(f"{name} must be given with unit; got {brief(value)}")
        return _shaped(_of_precision(asked, row, _result(dtype, FLOAT32)), asked)
    return _shaped(_of_unit(asked, unit, row, instruction, accumulator, dtype), asked)


def _shape(a: Any, b: Any) -> tuple[int, ...]:
    """Return the shape of a product."""
    x, y = (plain_array(z, name) for z, name in ((a, "a"), (b, "b")))
    shape: tuple[int, ...] = as_matrices(x, y)[3]
    return shape


def _shaped(bound: Array, asked: Request) -> Array:
    """Return bounds of the shape of the product that was given."""
    rows, columns = (
        (length,) * is_matrix
        for length, is_matrix in zip(asked.d.shape[1:], asked.axes, strict=True)
    )
    return bound.reshape((*asked.stack, *rows, *columns))


def _result(dtype: DTypeLike | None, form: Format) -> np.dtype[Any]:
    """Return the dtype of results; by default that of the sums."""
    if dtype is None:
        return np.dtype({10: np.float16, 23: np.float32, 52: np.float64}[form.kept])
    found = find_dtype(dtype)
    if not (found.kind == "f" or format_of_dtype(found)):
        raise TypeError(f"dtype must be a floating-point dtype; got {found}")
    return found


# -- a unit ----------------------------------------------------------------------------


def _of_unit(
    asked: Request,
    name: str,
    row: Precision | None,
    instruction: str | None,
    accumulator: DTypeLike | None,
    dtype: DTypeLike | None,
) -> Array:
    a, b = asked.a, asked.b
    if row is not None:
        if row.components > 1 or row.short in _SCALED:
            raise ValueError(
                "precision must be one that rounds operands without scales if unit is"
                f" given; got {brief(row.short)}"
            )
        a, b = (_narrow(x, row, of) for x, of in ((a, "a"), (b, "b")))
    unit, x, y = find_unit(name, instruction, a, b, accumulator)
    found = np.empty(asked.d.shape)
    for i, matrix in enumerate(found):
        product = Product(
            x[i],
            y[i],
            unit,
            _result(dtype, unit.form),
            c=None if asked.c is None else asked.c[i],
            promote_every=asked.promote_every,
        )
        for rows, columns in product.tiles():
            part = product.part(rows, columns)
            values = part.values()
            off = _of_operands(asked.a[i][rows], asked.b[i][:, columns], part.a, part.b)
            matrix[rows, columns] = np.where(
                np.isfinite(values.exact), values.bound + off, np.nan
            )
    return found


def _of_operands(a: Array, b: Array, x: Array, y: Array) -> Array | float:
    """Return the bound of the error of rounding operands a and b to x and y."""
    with np.errstate(all="ignore"):
        one, other = a.astype(np.float64), b.astype(np.float64)
        lost_a, lost_b = np.abs(one - x), np.abs(other - y)
        if not (lost_a.any() or lost_b.any()):
            return 0.0
        off: Array = lost_a @ np.abs(other) + np.abs(x) @ lost_b
    return off * (1 + 4 * error_of_sum(a.shape[-1])) + 2.0**-1060


def _narrow(x: Array, row: Precision, name: str) -> Array:
    """Return float32 operands rounded as a precision rounds them."""
    if x.dtype != np.float32:
        raise TypeError(f"{name} must be float32 with precision; got {x.dtype}")
    if row.format == "float32":
        return x
    with np.errstate(all="ignore"):
        if row.format == "float16":
            return x.astype(np.float16)
        how = rounding_of(Settings(row.short), row)
        rounded: Array = quantize(x, formats[row.format].dtype, rounding=how)
        return rounded


# -- a precision -----------------------------------------------------------------------

#: Precisions whose operands are scaled.
_SCALED = ("fp8_e4m3", "fp8_e5m2")


def _of_precision(asked: Request, row: Precision, dtype: np.dtype[Any]) -> Array:
    """Return the bound of the errors of `tf32dtype.matmul`."""
    if asked.c is not None or asked.promote_every is not None:
        raise ValueError("c and promote_every must be given with unit")
    for name, x in (("a", asked.a), ("b", asked.b)):
        if x.dtype != np.float32:
            raise TypeError(f"{name} must be float32 with precision; got {x.dtype}")
    found = np.empty(asked.d.shape)
    for i, matrix in enumerate(found):
        with np.errstate(all="ignore"):
            matrix[...] = _of_matrices(asked.a[i], asked.b[i], row, dtype)
    return found


def _of_matrices(a: Array, b: Array, row: Precision, dtype: np.dtype[Any]) -> Array:
    k = a.shape[1]
    pieces, others = _pieces(a, row), _pieces(b, row)
    sums, dropped = (np.zeros((a.shape[0], b.shape[1])) for _ in range(2))
    for i, x in enumerate(pieces.parts):
        for j, y in enumerate(others.parts):
            magnitude = np.abs(x) @ np.abs(y)
            if i + j < row.split_orders:
                sums += magnitude
            else:
                dropped += magnitude
    one, other = np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64))
    lost = pieces.lost @ (other + others.lost) + one @ others.lost
    steps = _roundings(k, row) + (3 if row.short in _SCALED else 0)
    relative = steps * _U / (1 - steps * _U)
    tiny = steps * k * 2.0**-149
    bound = (relative * sums + dropped + lost) * (1 + 8 * error_of_sum(k)) + tiny
    reach = sums * (1 + relative) + tiny
    form = Format.of(dtype)
    if form.kept < FLOAT32.kept:
        bound = bound + form.quantum(reach) / 2
    bound = np.where(reach <= form.largest, bound, np.inf)
    bound[~np.isfinite(one).all(1)] = np.nan
    bound[:, ~np.isfinite(other).all(0)] = np.nan
    return bound


def _roundings(k: int, row: Precision) -> int:
    """Return the most roundings that a product takes part in."""
    if row.components == 1:
        return min(k, 256) + -(-k // 256)
    pairs = sum(
        i + j < row.split_orders
        for i in range(row.components)
        for j in range(row.components)
    )
    return min(k, 32) * pairs + 8 + 16 + -(-k // 4096)


class _Pieces(NamedTuple):
    """The components of an operand, in float64, and what they lack."""

    parts: list[Array]
    lost: Array


def _pieces(x: Array, row: Precision) -> _Pieces:
    exact = x.astype(np.float64)
    if row.short in _SCALED:
        form = formats[row.format]
        finite = np.abs(exact[np.isfinite(exact)])
        scale = max(finite.max(initial=0) / float(form.max), 2.0**-126)
        half_ulp = 2.0 ** -(form.mantissa_bits + 1) * np.abs(exact)
        least = scale * float(form.smallest_subnormal) / 2
        return _Pieces([exact], np.maximum(half_ulp, least) * (1 + 2.0**-18))
    if row.components == 1:
        parts = [_narrow(x, row, "operand").astype(np.float64)]
        lost = np.abs(exact - parts[0])
        return _Pieces(parts, np.where(np.isfinite(lost), lost, np.inf))
    form = formats[row.format]
    parts, rest = [], exact
    for i in range(row.components):
        single = rest.astype(np.float32)
        part = quantize(single, form.dtype, overflow="saturate").astype(np.float64)
        parts.append(np.ldexp(part, -i * (form.mantissa_bits + 1)))
        rest = np.ldexp(rest - part, form.mantissa_bits + 1)
    lost = np.ldexp(np.abs(rest), -row.components * (form.mantissa_bits + 1))
    return _Pieces(parts, lost)
