"""Change the element format exactly: elements and scales by a power of two."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .._base.wording import brief
from .._formats import bit_packing
from .._formats.codes import bits
from .array import BlockArray
from .formats import POWERS, BlockFormatLike, Element, elements, find
from .from_codes import block_scales, buffer_of, items_of
from .layout import make
from .tiles import TileArray, TileElement, checked_element

#: Exponents of the powers of two that may map one 8-bit format to another.
_EXPONENTS = sorted(range(-64, 65), key=abs)
_NAN_SCALE = 0xFF  # of float8_e8m0fnu


@overload
def recode(a: TileArray, format: TileElement) -> TileArray: ...
@overload
def recode(a: BlockArray, format: BlockFormatLike) -> BlockArray: ...
def recode(
    a: BlockArray | TileArray, format: BlockFormatLike | TileElement
) -> BlockArray | TileArray:
    """Change elements to another format of at most 8 bits, without a change of values.

    The elements are multiplied by a power of two that gives each of them a code of the
    other format, and the scales are divided by it. For example float8_e4m3fn becomes
    float8_e4m3fnuz, which AMD's MI300 has: the elements are halved, which leaves their
    codes as they are, and the scales are doubled.

    Parameters
    ----------
    a : BlockArray or TileArray
        An array with elements of at most 8 bits, and without residuals.
    format : str, dtype or type
        The new format. For a `TileArray`, the format of the elements, as for
        `quantize_tiles`. For a `BlockArray`, a name of `tf32dtype.blocks.formats`.

    Returns
    -------
    BlockArray or TileArray
        With the same shape, blocks or tiles, scale format and values. Negative zeros
        become zeros if the format has none. The power of two does not depend on the
        values if the format has a code for each finite number of the other one: it is
        then the one nearest to 1.

    Raises
    ------
    ValueError
        If a value has no code: the error names the first such element. NaN and Inf must
        have codes too. If the format is unknown, or has more than 8 bits or residuals;
        if a scale times the power of two is out of the range of its format. For
        integers without a sign, and tiles with zero points or biases.
    TypeError
        If `a` is not an array of blocks or tiles.

    See Also
    --------
    quantize : Round numbers to a block format.
    quantize_tiles : Round numbers to tiles.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> t = td.blocks.TileArray.from_codes(
    ...     "float8_e4m3fn", [[0x7E, 0x80]], np.float32([[0.5]])
    ... )
    >>> f = td.blocks.recode(t, "float8_e4m3fnuz")
    >>> f.elements.astype(float).tolist(), f.scales.tolist(), f.dequantize().tolist()
    ([[224.0, 0.0]], [[1.0]], [[224.0, 0.0]])
    """
    if isinstance(a, TileArray):
        return _tiles(a, checked_element(format))
    if isinstance(a, BlockArray):
        return _blocks(a, format)
    raise TypeError(f"a must be a BlockArray or a TileArray; got {brief(a)}")


def _tiles(a: TileArray, element: Element) -> TileArray:
    own = checked_element(a.elements.dtype)
    if not (own.has_sign and element.has_sign) or len(a._parts) > 2:
        raise ValueError(
            "a must have elements with a sign, and neither zero points nor biases, and"
            f" format elements with a sign; got {a!r} and {element.name}"
        )
    codes = _codes(a.elements)
    # float64 holds all products that can be exact, for any dtype of scales.
    scales = a.scales.astype(np.float64)
    for exponent, table in _ways(own, element, codes):
        with np.errstate(all="ignore"):
            wide = np.ldexp(scales, -exponent)
            found = wide.astype(a.scales.dtype)
        if np.array_equal(found.astype(np.float64), wide, equal_nan=True):
            items = items_of(table[codes], element)
            return TileArray.from_codes(element, items, found, a.tile)
    raise ValueError(_no_scales(a.scale_format, element.name))


def _blocks(a: BlockArray, format: Any) -> BlockArray:
    old = a._layout
    row = find(format)
    for each in (old.row, row):
        if each.levels > 1 or elements[each.element].width > 8:
            raise ValueError(
                "a and format must have elements of at most 8 bits, without residuals;"
                f" got {each.name}"
            )
    is_power = old.scale_format == POWERS
    # If the scale of a block is NaN, its codes mean nothing.
    unused = (a.scales == _NAN_SCALE) & is_power
    codes = bit_packing.unpack(a.codes, old.element.width).copy()
    codes[unused] = 0
    for exponent, table in _ways(old.element, elements[row.element], codes):
        scales, tensor = a.scales, old.tensor_scale
        if is_power:
            wide = scales.astype(np.int64) - exponent
            if ((wide < 0) | (wide >= _NAN_SCALE))[~unused].any():
                continue
            scales = np.where(unused, _NAN_SCALE, wide).astype(np.uint8)
        else:
            tensor = math.ldexp(tensor, -exponent)
            if tensor != np.float32(tensor) or not 0 < tensor < math.inf:
                continue
        plan = make(row, old.shape, old.axis, old.block_size, old.scale_format, tensor)
        with np.errstate(all="ignore"):
            before = np.ldexp(block_scales(old).astype(np.float64), -exponent)
            after = block_scales(plan).astype(np.float64)
        if not np.array_equal(before[a.scales], after[scales], equal_nan=True):
            continue
        packed = bit_packing.pack(table[codes], plan.element.width)
        return BlockArray._of(plan, buffer_of(plan, packed, scales, None))
    raise ValueError(_no_scales(old.scale_format, row.name))


def _ways(
    own: Element, other: Element, codes: NDArray[np.uint8]
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Exponents and tables of codes, the best first; a table has an item for each code.

    Raises
    ------
    ValueError
        If there is none.
    """
    used = np.zeros(1 << own.width, bool)
    used[codes] = True
    finite = np.isfinite(_values(own))
    tables = [(exponent, *_table(own, other, exponent)) for exponent in _EXPONENTS]
    ways = [way for way in tables if way[2][used].all()]
    if not ways:
        *_, has_code = max(tables, key=lambda way: int(way[2][used].sum()))
        value = _values(own)[codes[~has_code[codes]].flat[0]]
        raise ValueError(
            f"each element times one power of two must have a code in {other.name};"
            f" got {value:g} of {own.name}, which has none"
        )
    # Powers for all finite numbers come first; the sort is stable.
    ways.sort(key=lambda way: not way[2][finite].all())
    for exponent, table, _ in ways:
        yield exponent, table


@cache
def _table(
    own: Element, other: Element, exponent: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Find the code of each code's value times 2^exponent, and whether it has one."""
    known: dict[tuple[float, bool] | str, int] = {}
    for code, value in enumerate(_values(other).tolist()):
        known.setdefault(_key(value), code)
    table = np.zeros(1 << own.width, np.uint8)
    has_code = np.zeros(1 << own.width, bool)
    for code, value in enumerate(_values(own).tolist()):
        key = _key(math.ldexp(value, exponent))
        found = known.get(key, known.get((0.0, False)) if value == 0 else None)
        if found is not None:
            table[code], has_code[code] = found, True
    return table, has_code


def _key(value: float) -> tuple[float, bool] | str:
    """Equal for equal values; zeros have signs, and NaN has none."""
    return "NaN" if math.isnan(value) else (value, math.copysign(1, value) < 0)


@cache
def _values(element: Element) -> NDArray[np.float64]:
    """Return the value of each code."""
    codes = np.arange(1 << element.width).astype(np.uint8)
    values = items_of(codes, element).astype(np.float64)
    return values / (1 << element.fraction_bits)


def _codes(items: NDArray[Any]) -> NDArray[np.uint8]:
    return items.view(np.uint8) if items.dtype == np.int8 else bits(items)


def _no_scales(scale_format: str, name: str) -> str:
    return (
        f"scales must have {scale_format} codes after the change to {name}; got one"
        " whose product with the power of two is out of range"
    )
