"""Arrays with one scale for each tile: a rectangle of rows and columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.caller import errors_at_caller
from .._base.wording import brief, one_of
from .._formats.codes import bits, from_bits
from .._formats.table import UnknownFormat, formats, own_array
from .._formats.table import find as find_format
from .._formats.typed import FormatLike
from .formats import Element
from .layout import integer
from .products import matmul
from .scaled import HostScaled

#: Rows and columns that share a scale; None: all of them.
Tile = tuple[int | None, int | None]

TileScaleFormat = Literal["float32", "bfloat16", "float16", "float8_e8m0fnu"]
TileInteger = Literal["int8", "uint8", "int4", "uint4"]
#: A format of one byte, or integers.
TileElement = FormatLike | TileInteger

#: Integers of 4 bits take a byte each, as all elements do.
INTEGERS = {name: Element(name, int(name[-1])) for name in get_args(TileInteger)}

SCALE_FORMATS = get_args(TileScaleFormat)
#: Numbers that are worked on at a time, so that they stay in a cache.
_BAND = 1 << 17
#: The most rows or columns of a tile, and of an array.
_LONGEST = int(np.iinfo(np.intp).max)


class TileArray(HostScaled):
    """An array whose last two axes are divided into tiles, each with its own scale.

    `tf32dtype.blocks.quantize_tiles` makes such arrays from numbers, and `from_codes`
    makes them from existing data. Examples are the 128 x 128 tiles of DeepSeek's
    weights and the 1 x 128 tiles of its activations. With ``tile=(1, None)`` each row
    has a scale, with ``tile=(None, None)`` each matrix has one.

    A value is its element times the scale of its tile. Integer elements may also have
    one zero point or bias per tile: (element - zero point) * scale, or
    element * scale + bias. Each element takes one byte, whatever its bits. The
    elements, scales and offsets are read-only.

    Only two NumPy functions accept these arrays: `np.asarray` (the values as float32)
    and `np.matmul`, which multiplies the values as float32 (see `matmul`).

    See Also
    --------
    quantize_tiles : Create an array from numbers.
    matmul : Multiply arrays of tiles.
    BlockArray : An array with scales for blocks along one axis.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> t = td.blocks.TileArray.from_codes(
    ...     "int8", np.int8([[10, -20]]), np.float32([[0.5]]), tile=(1, None)
    ... )
    >>> t
    TileArray('int8', shape=(1, 2), tile=(1, 2), scale_format='float32')
    >>> np.asarray(t)
    array([[  5., -10.]], dtype=float32)
    """

    __slots__ = ("_elements", "_format", "_offsets", "_scales", "_tile")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # like an ndarray

    _elements: NDArray[Any]
    _scales: NDArray[Any]
    _tile: tuple[int, int]
    _format: str
    #: zero points if integers, else biases
    _offsets: NDArray[Any] | None

    def __init__(self) -> None:
        raise TypeError(
            "cannot create a TileArray directly; use tf32dtype.blocks.quantize_tiles,"
            " or TileArray.from_codes for existing codes"
        )

    @classmethod
    def _of(
        cls,
        format: str,
        tile: tuple[int, int],
        codes: NDArray[Any],
        scales: NDArray[Any],
        offsets: NDArray[Any] | None = None,
    ) -> Self:
        self = object.__new__(cls)
        self._format, self._tile = format, tile
        self._elements, self._scales = codes.view(), scales.view()
        self._offsets = None if offsets is None else offsets.view()
        for part in self._parts:
            part.flags.writeable = False
        return self

    @classmethod
    def from_codes(
        cls,
        format: TileElement | Element,
        codes: ArrayLike,
        scales: ArrayLike,
        tile: Tile = (128, 128),
        *,
        zero_points: ArrayLike | None = None,
        biases: ArrayLike | None = None,
    ) -> TileArray:
        """Create an array from existing codes and scales, as checkpoints hold them.

        Parameters
        ----------
        format : str, dtype or type
            Format of the elements: int8, uint8, int4 or uint4, or a format of one byte
            or less that has a sign.
        codes : array_like, shape (..., m, n)
            Elements of that dtype; for integers of 4 bits, int8 or uint8. A list may
            have integers for these elements. Or, for other formats, integers: codes as
            `tf32dtype.bits` returns them.
        scales : array_like, shape (..., ceil(m / rows), ceil(n / columns))
            Scales of dtype float32, bfloat16, float16 or float8_e8m0fnu.
        tile : tuple of two int or None
            The rows and columns that share a scale. None means all of them.
        zero_points : array_like, optional
            Only for integers: numbers that are subtracted from the elements of a tile,
            with the scales' shape and the elements' dtype.
        biases : array_like, optional
            Only for integers: numbers that are added to the elements times the scale,
            with the scales' shape and dtype.

        Returns
        -------
        TileArray
            An array that uses the memory of the given arrays: a mapped file stays
            mapped.

        Raises
        ------
        TypeError
            For other dtypes.
        ValueError
            For other shapes, tiles and formats, and for integers out of range.
        """
        element = checked_element(format)
        items, factors = _integers(codes, element, "codes"), own_array(scales)
        if items.dtype.kind in "iu" and not element.is_integer:
            items = from_bits(items, element.dtype)
        if items.dtype != element.dtype:
            raise TypeError(
                f"codes must be an array of {element.name}; got {items.dtype}"
            )
        if factors.dtype.newbyteorder("=") not in map(scale_dtype, SCALE_FORMATS):
            raise TypeError(
                one_of("dtype of scales", factors.dtype.name, SCALE_FORMATS)
            )
        _check_range(items, element, "codes")
        sizes = checked_tile(tile, items.shape, "codes")
        wanted = grid(items.shape, sizes)
        if factors.shape != wanted:
            raise ValueError(
                f"scales must have shape {wanted} for codes of shape {items.shape} in"
                f" tiles of {sizes[0]} x {sizes[1]}; got {factors.shape}"
            )
        offsets = _offsets(element, factors, zero_points, biases)
        return cls._of(element.name, sizes, items, factors, offsets)

    # -- facts -------------------------------------------------------------------

    @property
    def format(self) -> str:
        """Name of the elements' format."""
        return self._format

    @property
    def scale_format(self) -> str:
        """Name of the scales' dtype."""
        return self._scales.dtype.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._elements.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._elements.ndim

    @property
    def size(self) -> int:
        """Number of values."""
        return self._elements.size

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns that share a scale."""
        return self._tile

    @property
    def nbytes(self) -> int:
        """Bytes of elements, scales, and zero points or biases."""
        return sum(part.nbytes for part in self._parts)

    # -- parts -------------------------------------------------------------------

    @property
    def elements(self) -> NDArray[Any]:
        """The elements, of the format's dtype and this array's shape; read-only."""
        return self._elements

    @property
    def scales(self) -> NDArray[Any]:
        """The scales, of shape (..., ceil(m / rows), ceil(n / columns)); read-only."""
        return self._scales

    @property
    def zero_points(self) -> NDArray[np.integer[Any]] | None:
        """Numbers that are subtracted from the elements of each tile, or None."""
        return self._offsets if self._has_zero_points else None

    @property
    def biases(self) -> NDArray[Any] | None:
        """Numbers that are added to the values of each tile, or None."""
        return None if self._has_zero_points else self._offsets

    @property
    def _has_zero_points(self) -> bool:
        return self._offsets is not None and self._offsets.dtype.kind in "iu"

    @property
    def block_scales(self) -> NDArray[np.float32]:
        """The scales as float32."""
        return self._scales.astype(np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if self.ndim == 2:
            raise TypeError(
                "an array of tiles cannot be iterated along an axis of tiles; use"
                " dequantize()"
            )
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        """Index whole matrices of a stack, and slices of whole tiles.

        Raises
        ------
        IndexError
            For any other index, and for a slice that divides a tile.
        """
        of_elements, of_scales = self._indices(key)
        parts = (part[of_scales] for part in self._parts[1:])
        return self._of(self.format, self.tile, self._elements[of_elements], *parts)

    def _indices(self, key: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        entries = list(key) if isinstance(key, tuple) else [key]
        if not all(_is_basic(entry) for entry in entries):
            raise IndexError(
                f"an index must be of integers, slices and ...; got {brief(key)}"
            )
        if Ellipsis not in entries:
            entries.append(Ellipsis)
        missing = self.ndim - (len(entries) - 1)
        if missing < 0 or entries.count(Ellipsis) > 1:
            raise IndexError(
                f"an index must have at most {self.ndim} entries and one ...; got"
                f" {brief(key)}"
            )
        at = entries.index(Ellipsis)
        entries[at : at + 1] = [slice(None)] * missing
        stack, tiled = entries[:-2], entries[-2:]
        pairs = [
            _whole_tiles(entry, length, size)
            for entry, length, size in zip(
                tiled, self.shape[-2:], self.tile, strict=True
            )
        ]
        return (*stack, *(a for a, _ in pairs)), (*stack, *(b for _, b in pairs))

    @property
    def T(self) -> Self:
        """The matrix with its axes exchanged."""
        if self.ndim != 2:
            raise ValueError(
                f"T needs an array of two axes; got {self.ndim}. Use .mT for a stack of"
                " matrices"
            )
        return self.mT

    @property
    def mT(self) -> Self:
        """The array with its last two axes exchanged."""
        parts = (part.swapaxes(-1, -2) for part in self._parts)
        return self._of(self.format, (self.tile[1], self.tile[0]), *parts)

    # -- values ------------------------------------------------------------------

    def _values(self, wanted: np.dtype[Any], out: NDArray[Any] | None) -> NDArray[Any]:
        if out is None:
            out = np.empty(self.shape, wanted)
        # Products of 8 and 24 bits are exact in float64, and rounded once in float32.
        single = wanted == np.float32 and self.biases is None
        exact = np.dtype(np.float32 if single else np.float64)
        with errors_at_caller("cast"):
            for matrix, rows in bands(self.shape):
                values = self._elements[matrix][rows].astype(exact)
                for operation, factors in self._steps(wanted):
                    with np.errstate(all="ignore"):  # what is beyond float32 is Inf
                        scaled(operation, values, factors[matrix], rows, self.tile)
                out[matrix][rows] = values
        return out

    def _steps(self, wanted: np.dtype[Any]) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the operations on the elements, with the numbers of each tile."""
        if self.zero_points is not None:
            yield np.subtract, self.zero_points
        yield np.multiply, self._scales
        if self.biases is not None:
            yield np.add if wanted == np.float64 else _add_to_odd, self.biases

    @staticmethod
    def _product(a: Any, b: Any, **options: Any) -> Any:
        return matmul(a, b, **options)

    # -- as an object ------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether both are the same: formats, shapes, tiles and all bits. One bool."""
        if not isinstance(other, TileArray):
            return NotImplemented
        facts = [(x.format, x.tile, len(x._parts)) for x in (self, other)]
        return facts[0] == facts[1] and all(
            mine.dtype == its.dtype and np.array_equal(_raw(mine), _raw(its))
            for mine, its in zip(self._parts, other._parts, strict=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.format, self.tile, *self._parts)

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        parts = (self._elements, self._scales)
        return parts if self._offsets is None else (*parts, self._offsets)

    def __repr__(self) -> str:
        also = ""
        if self._offsets is not None:
            also = f", {'zero points' if self._has_zero_points else 'biases'}"
        return (
            f"TileArray({self.format!r}, shape={self.shape}, tile={self.tile}, "
            f"scale_format={self.scale_format!r}{also})"
        )


def _restored(
    format: str,
    tile: tuple[int, int],
    codes: NDArray[Any],
    scales: NDArray[Any],
    offsets: NDArray[Any] | None = None,
) -> TileArray:
    """Make an array of its pickled parts."""
    is_integer = offsets is not None and offsets.dtype.kind in "iu"
    return TileArray.from_codes(
        checked_element(format),
        codes,
        scales,
        tile,
        zero_points=offsets if is_integer else None,
        biases=None if is_integer else offsets,
    )


def _add_to_odd(
    x: NDArray[np.float64], y: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """x + y rounded to odd, which another rounding to fewer bits leaves right."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    is_even = total.view(np.int64) & 1 == 0
    toward = np.copysign(np.inf, error)
    moved = (error != 0) & is_even & np.isfinite(total)
    out[...] = np.where(moved, np.nextafter(total, toward), total)


# -- tiles -----------------------------------------------------------------------


def grid(shape: tuple[int, ...], tile: tuple[int, int]) -> tuple[int, ...]:
    """Return the shape of the scales."""
    *stack, rows, columns = shape
    return (*stack, -(-rows // tile[0]), -(-columns // tile[1]))


def bands(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], slice]]:
    """Yield rows of one matrix after the other, as many as a cache holds."""
    *stack, rows, columns = shape
    step = max(1, _BAND // max(columns, 1))
    for matrix in np.ndindex(*stack):
        for start in range(0, rows, step):
            yield matrix, slice(start, min(start + step, rows))


def scaled(
    operation: np.ufunc,
    values: NDArray[Any],
    scales: NDArray[Any],
    rows: slice,
    tile: tuple[int, int],
) -> None:
    """Multiply or divide values, some rows of a matrix, by their tiles' scales."""
    of_rows = scales[np.arange(rows.start, rows.stop) // tile[0]].astype(values.dtype)
    whole, rest = tile_columns(values, tile[1])
    operation(whole, of_rows[:, : whole.shape[1], None], out=whole)
    operation(rest, of_rows[:, whole.shape[1] :], out=rest)


def tile_columns(x: NDArray[Any], width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Views of a matrix: rows of whole tiles, (rows, tiles, width); and the rest."""
    full = x.shape[1] - x.shape[1] % width
    return x[:, :full].reshape(len(x), full // width, width), x[:, full:]


# -- arguments -------------------------------------------------------------------


def checked_element(which: object) -> Element:
    """Return the elements that a name stands for: of a format, or integers."""
    if isinstance(which, Element):
        return which
    if isinstance(which, str) and which in INTEGERS:
        return INTEGERS[which]
    if isinstance(which, type | np.dtype) and which in (np.int8, np.uint8):
        return INTEGERS[np.dtype(which).name]
    row = find_format(which)
    if row.itemsize > 1 or not row.signed:
        known = [r.name for r in formats.values() if r.itemsize == 1 and r.signed]
        raise UnknownFormat(one_of("format of tiles", row.name, (*known, *INTEGERS)))
    return Element(row.name, row.bits)


def _check_range(items: NDArray[Any], element: Element, name: str) -> None:
    """Check integers of fewer bits than their dtype has."""
    if not element.is_integer or items.dtype.itemsize * 8 == element.width:
        return
    most = int(element.max)
    least = -most - 1 if element.has_sign else 0
    outside = (items < least) | (items > most)
    if outside.any():
        value = int(items[outside].flat[0])
        raise ValueError(
            f"{name} must be {element.name} values from {least} to {most}; got {value}"
        )


def _integers(given: ArrayLike, element: Element, name: str) -> NDArray[Any]:
    """Return an array; integers in lists, which have no dtype, as elements."""
    items = own_array(given)
    if element.is_integer and items.dtype.kind in "iu" and not hasattr(given, "dtype"):
        _check_range(items, element, name)
        return items.astype(element.dtype)
    return items


def _offsets(
    element: Element,
    scales: NDArray[Any],
    zero_points: ArrayLike | None,
    biases: ArrayLike | None,
) -> NDArray[Any] | None:
    if zero_points is None and biases is None:
        return None
    if not element.is_integer or (zero_points is not None and biases is not None):
        raise ValueError(
            "zero_points or biases, not both, must only be given for integer elements;"
            f" got {element.name}"
        )
    name = "biases" if zero_points is None else "zero_points"
    wanted = scales.dtype if zero_points is None else element.dtype
    if zero_points is None:
        found = own_array(biases)
    else:
        found = _integers(zero_points, element, name)
    if found.dtype.newbyteorder("=") != wanted.newbyteorder("="):
        raise TypeError(f"{name} must be an array of {wanted}; got {found.dtype}")
    if found.shape != scales.shape:
        raise ValueError(
            f"{name} must have the shape of scales, {scales.shape}; got {found.shape}"
        )
    if zero_points is not None:
        _check_range(found, element, name)
    return found


def checked_tile(
    tile: object, shape: tuple[int, ...], array: str = "x"
) -> tuple[int, int]:
    """Return rows and columns of a tile of an array of this shape.

    The error for a shape without rows and columns names the argument `array`.
    """
    if len(shape) < 2:
        raise ValueError(
            f"{array} must have at least two axes for tiles; got shape {shape}"
        )
    try:
        rows, columns = (
            max(length, 1) if size is None else integer(size)
            for size, length in zip(tile, shape[-2:], strict=True)  # type: ignore[call-overload]
        )
    except (TypeError, ValueError):
        raise TypeError(
            f"tile must be two integers or None (rows and columns); got {brief(tile)}"
        ) from None
    if not 1 <= min(rows, columns) <= max(rows, columns) <= _LONGEST:
        raise ValueError(
            f"tile must have rows and columns from 1 to {_LONGEST}, or None; got"
            f" {brief(tile)}"
        )
    return rows, columns


def scale_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of one of `SCALE_FORMATS`."""
    return formats[name].dtype if name in formats else np.dtype(name)


# -- indices ---------------------------------------------------------------------


def _is_basic(entry: object) -> bool:
    is_integer = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
    return is_integer or isinstance(entry, slice) or entry is Ellipsis


def _whole_tiles(entry: Any, length: int, size: int) -> tuple[slice, slice]:
    """Return a slice of elements, and of their scales."""
    if isinstance(entry, slice):
        start, stop, step = entry.indices(length)
        stop = max(stop, start)
        one = length <= size
        ends = start % size == 0 and (stop % size == 0 or stop == length)
        if step == 1 and (one or ends or start == stop):
            last = -(-(stop - start) // size)
            first = 0 if one else start // size
            return slice(start, stop), slice(first, first + last)
    raise IndexError(
        f"an index must take whole tiles of {size}; got {brief(entry)}. To index"
        " elements, use dequantize() first"
    )


def _raw(x: NDArray[Any]) -> NDArray[Any]:
    native = x.astype(x.dtype.newbyteorder("="), copy=False)
    if native.dtype in formats:
        return bits(native)
    return native.view(f"u{native.dtype.itemsize}")
