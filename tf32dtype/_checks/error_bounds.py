"""Bounds of the errors of products: of a unit in any order, and of a precision."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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
from ..tensor_core.look_up import find_model
from ..tensor_core.models import Aligned, Instruction
from .block_operands import block_operands, is_blocks
from .checking import Reader, reader
from .product import Product
from .request import Request, as_array, request
from .sizes import NONE, error_of_sum, floor_log2
from .unit_bounds import FLOAT32, Format
from .units import round_to

if TYPE_CHECKING:
    from ..tensor_core.products import Operand

Array = NDArray[Any]

_U = 2.0**-24


def error_bound(
    a: Operand,
    b: Operand,
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
    a, b : array_like, BlockArray or TileArray
        The operands, of shapes (..., m, k) and (..., k, n), as for
        `tf32dtype.tensor_core.matmul`. Those with blocks must be matrices or vectors.
    c : array_like, optional
        An array that is added; it broadcasts to the result's shape.
    unit : str, optional
        A device of `tf32dtype.tensor_core.devices`: the bound holds for any order in
        which its unit adds. "float32" and "float64" stand for a program that multiplies
        and adds in this format, in any order.
    precision : str, optional
        A precision of `tf32dtype.matmul`, such as "bf16x9": the bound holds for its
        result. With `unit`, the precision says what float32 operands are rounded to, or
        split into. Give one of `unit` and `precision`, or both.
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
    :doc:`/concepts/error_bounds` derives them. Bounds for any order
    are usually much larger than the errors of one order.

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
    blocks = None
    if is_blocks(a) or is_blocks(b):
        if unit is None or row is not None:
            raise ValueError(
                "arrays of blocks must be given with unit, and without precision; got"
                f" unit={brief(unit)}, precision={brief(precision)}"
            )
        blocks = block_operands(a, b, unit, instruction, accumulator)
    shape = _shape(a, b) if blocks is None else _shape(blocks.a, blocks.b)
    empty = np.broadcast_to(np.float32(0), shape)
    asked = request(empty, a, b, c, 1, 1, None, None, None, promote_every, blocks)
    if unit is None:
        assert row is not None
        for name, value in (("instruction", instruction), ("accumulator", accumulator)):
            if value is not None:
                raise ValueError(f"{name} must be given with unit; got {brief(value)}")
        return _shaped(_of_precision(asked, row, _result(dtype, FLOAT32)), asked)
    if row is not None and row.components > 1:
        found = find_model(unit, instruction, row.format, row.format, "float32")
        if not isinstance(found, Aligned):
            raise ValueError(
                f"{found.device} does not support precision {row.short!r}, which adds"
                " components as NVIDIA's libraries do"
            )
        bound = _of_precision(asked, row, _result(dtype, FLOAT32), found)
        return _shaped(bound, asked)
    read = reader(blocks, unit, instruction, accumulator, None)
    if row is not None:
        unrounded, narrow = read, partial(_narrow, row=row)
        read = lambda x, y: unrounded(narrow(x, name="a"), narrow(y, name="b"))  # noqa: E731
    return _shaped(_of_unit(asked, read, dtype), asked)


def _shape(a: Any, b: Any) -> tuple[int, ...]:
    """Return the shape of a product."""
    x, y = (as_array(z, name) for z, name in ((a, "a"), (b, "b")))
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
        return form.dtype
    found = find_dtype(dtype)
    if not (found.kind == "f" or format_of_dtype(found)):
        raise TypeError(f"dtype must be a floating-point dtype; got {found}")
    return found


# -- a unit ----------------------------------------------------------------------------


def _of_unit(asked: Request, read: Reader, dtype: DTypeLike | None) -> Array:
    found = np.empty(asked.d.shape)
    for i, matrix in enumerate(found):
        given = asked.matrices_of(i)
        unit, a, b = read(*given)
        product = Product(
            a,
            b,
            unit,
            _result(dtype, unit.form),
            c=None if asked.c is None else asked.c[i],
            alpha=asked.alpha,
            scale_a=asked.scale_a,
            scale_b=asked.scale_b,
            group=asked.group,
            exponents=asked.exponents,
        )
        finite = np.isfinite(a).all(1)[:, None] & np.isfinite(b).all(0)
        if asked.c is not None:
            finite &= np.isfinite(asked.c[i])
        for rows, columns in product.tiles():
            part = product.part(rows, columns)
            values = part.values()
            off = _of_operands(given[0][rows], given[1][:, columns], part.a, part.b)
            bound = np.where(values.overflows, np.inf, values.bound + off)
            largest = Format.of(product.dtype).largest
            bound[np.abs(values.exact) + bound > largest] = np.inf
            matrix[rows, columns] = bound
        matrix[~finite] = np.nan
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


def _narrow(x: Array, *, row: Precision, name: str) -> Array:
    """Return float32 operands rounded as a precision rounds them."""
    if x.dtype != np.float32:
        raise TypeError(f"{name} must be float32 with precision; got {x.dtype}")
    if row.short in _SCALED:
        raise ValueError(
            "precision must round operands without scales if unit is given; got"
            f" {brief(row.short)}"
        )
    return _rounded(x, row)


def _rounded(x: Array, row: Precision) -> Array:
    if row.format == "float32":
        return x
    return round_to(x, row.format, rounding_of(Settings(row.short), row))


# -- a precision -----------------------------------------------------------------------

#: Precisions whose operands are scaled.
_SCALED = ("fp8_e4m3", "fp8_e5m2")


def _of_precision(
    asked: Request, row: Precision, dtype: np.dtype[Any], model: Aligned | None = None
) -> Array:
    """Return the bound of the errors of `tf32dtype.matmul`, also on a device."""
    if asked.c is not None or asked.group is not None:
        raise ValueError("c and promote_every must be given with unit")
    for name, x in (("a", asked.a), ("b", asked.b)):
        if x.dtype != np.float32:
            raise TypeError(f"{name} must be float32 with precision; got {x.dtype}")
    found = np.empty(asked.d.shape)
    for i, matrix in enumerate(found):
        a, b = asked.matrices_of(i)
        with np.errstate(all="ignore"):
            matrix[...] = _of_matrices(a, b, row, dtype, model)
    return found


def _of_matrices(
    a: Array, b: Array, row: Precision, dtype: np.dtype[Any], model: Aligned | None
) -> Array:
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
    tiny = steps * k * 2.0**-149 * max(1.0, pieces.scale, others.scale)
    rounding = relative * sums
    if model is not None:
        rounding = _of_components(pieces, others, sums, model, k)
    bound = (rounding + dropped + lost) * (1 + 8 * error_of_sum(k)) + tiny
    reach = sums * (1 + relative) + tiny
    form = Format.of(dtype)
    if form.kept < FLOAT32.kept:
        bound = bound + form.quantum(reach) / 2
    overflows = ~(reach <= form.largest)
    overflows |= ~(_largest_step(pieces, others, reach, row) <= FLOAT32.largest)
    bound = np.where(overflows, np.inf, bound)
    bound[~np.isfinite(one).all(1)] = np.nan
    bound[:, ~np.isfinite(other).all(0)] = np.nan
    return bound


def _largest_step(
    pieces: _Pieces, others: _Pieces, reach: Array, row: Precision
) -> Array:
    """Return the largest magnitude of an intermediate result."""
    if row.short in _SCALED:  # the scales multiply the sum one after the other
        return reach / min(pieces.scale, others.scale, 1.0)
    if row.components == 1:
        return reach
    # Later components are stored as multiples of 2^8 or more, and are as large as the
    # first ones.
    largest = _largest_product(pieces, others)
    found: Array = np.maximum(reach, 32 * row.components**2 * 1.1 * largest)
    return found


def _largest_product(pieces: _Pieces, others: _Pieces) -> Array:
    """Return the largest product of first components in each row and column."""
    x, y = np.abs(pieces.parts[0]), np.abs(others.parts[0])
    found: Array = x.max(1, keepdims=True, initial=0) * y.max(
        0, keepdims=True, initial=0
    )
    return found


#: k whose components a unit multiplies before their sum is added in float32.
_STRETCH = 16


def _of_components(
    pieces: _Pieces, others: _Pieces, sums: Array, model: Aligned, k: int
) -> Array:
    """Return the bound of the errors of a unit that adds products of components.

    For each 16 k, the unit adds the products of one pair of components after another.
    Between orders of magnitude the sum is multiplied by 2^-8 or less, and with it the
    errors so far. Those of the last pair and 2^-6 times as much bound all errors.
    """
    few = _STRETCH * _largest_product(pieces, others) * (1 + 2.0**-5)
    form = FLOAT32._replace(kept=model.kept)
    floor = NONE if model.floor is None else model.floor
    unit = np.ldexp(1.0, np.maximum(floor_log2(few), floor) - model.fraction)
    groups = -(-_STRETCH // model.depth)
    each = groups * (form.quantum(few) + unit) + _STRETCH * unit
    stretches = -(-k // _STRETCH)
    reach = sums * (1 + stretches * 2.0**-22)
    found: Array = stretches * (
        each * (1 + 2.0**-6) + FLOAT32.quantum(reach) / 2 + 2.0**-147
    )
    return found


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
    #: the scale of the operand
    scale: float = 1.0


def _pieces(x: Array, row: Precision) -> _Pieces:
    exact = x.astype(np.float64)
    if row.short in _SCALED:
        form = formats[row.format]
        finite = np.abs(exact[np.isfinite(exact)])
        scale = max(finite.max(initial=0) / float(form.max), 2.0**-126)
        half_ulp = 2.0 ** -(form.mantissa_bits + 1) * np.abs(exact)
        least = scale * float(form.smallest_subnormal) / 2
        return _Pieces([exact], np.maximum(half_ulp, least) * (1 + 2.0**-18), scale)
    if row.components == 1:
        parts = [_rounded(x, row).astype(np.float64)]
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
