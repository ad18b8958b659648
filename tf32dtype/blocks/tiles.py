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
from .formats import Element, elements
from .layout import integer
from .products import matmul
from .scaled import HostScaled

#: Rows and columns that share a scale; None: all of them.
Tile = tuple[int | None, int | None]

TileScaleFormat = Literal["float32", "bfloat16", "float16", "float8_e8m0fnu"]
#: A format of one byte, or int8.
TileElement = FormatLike | Literal["int8"]

SCALE_FORMATS = get_args(TileScaleFormat)
#: What is worked on at a time, so that it stays in a cache.
_BAND = 1 << 17
#: Rows or columns of a tile; an array has no more.
_LONGEST = int(np.iinfo(np.intp).max)


class TileArray(HostScaled):
    """An array whose last two axes are cut in tiles that share a scale each.

    `tf32dtype.blocks.quantize_tiles` makes them, and `from_codes` of data that exist:
    the 128 x 128 tiles of DeepSeek's weights and the 1 x 128 of its activations; with
    ``tile=(1, None)`` each row has a scale, with ``tile=(None, None)`` each matrix. A
    value is its element times the scale of its tile. Elements lie one a byte, whatever
    their bits; both parts are read-only.

    NumPy functions do not take these arrays, but for `np.asarray` (the values as
    float32) and `np.matmul`, which multiplies the values as float32 (see `matmul`).

    See Also
    --------
    quantize_tiles, BlockArray
    """

    __slots__ = ("_elements", "_scales", "_tile")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # like an ndarray

    _elements: NDArray[Any]
    _scales: NDArray[Any]
    _tile: tuple[int, int]

    def __init__(self) -> None:
        raise TypeError(
            "cannot create a TileArray directly; use tf32dtype.blocks.quantize_tiles,"
            " or TileArray.from_codes for existing codes"
        )

    @classmethod
    def _of(
        cls, codes: NDArray[Any], scales: NDArray[Any], tile: tuple[int, int]
    ) -> Self:
        self = object.__new__(cls)
        self._elements, self._scales = codes.view(), scales.view()
        self._elements.flags.writeable = self._scales.flags.writeable = False
        self._tile = tile
        return self

    @classmethod
    def from_codes(
        cls,
        format: TileElement,
        codes: ArrayLike,
        scales: ArrayLike,
        tile: Tile = (128, 128),
    ) -> TileArray:
        """An array of codes and scales that exist, as checkpoints hold them.

        Parameters
        ----------
        format : str, dtype or type
            Of the elements: int8, or a format of one byte or less that has a sign.
        codes : array_like, shape (..., m, n)
            Of that dtype; or integers, codes as `tf32dtype.bits` has them.
        scales : array_like, shape (..., ceil(m / rows), ceil(n / columns))
            float32, bfloat16, float16 or float8_e8m0fnu.
        tile : tuple of two int or None
            Rows and columns that share a scale; None stands for all.

        Returns
        -------
        TileArray
            Of the same memory, where these are arrays: a mapped file stays mapped.

        Raises
        ------
        TypeError
            For other dtypes.
        ValueError
            For other shapes, tiles and formats.
        """
        element = checked_element(format)
        items, factors = own_array(codes), own_array(scales)
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
        sizes = checked_tile(tile, items.shape)
        wanted = grid(items.shape, sizes)
        if factors.shape != wanted:
            raise ValueError(
                f"scales must have shape {wanted} for codes of shape {items.shape} in"
                f" tiles of {sizes[0]} x {sizes[1]}; got {factors.shape}"
            )
        return cls._of(items, factors, sizes)

    # -- facts -------------------------------------------------------------------

    @property
    def format(self) -> str:
        """Name of the elements' format."""
        return self._elements.dtype.name

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
        """Bytes of elements and scales."""
        return self._elements.nbytes + self._scales.nbytes

    # -- parts -------------------------------------------------------------------

    @property
    def elements(self) -> NDArray[Any]:
        """The elements, of the format's dtype and this array's shape; read-only."""
        return self._elements

    @property
    def scales(self) -> NDArray[Any]:
        """(..., ceil(m / rows), ceil(n / columns)); read-only."""
        return self._scales

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
        """Whole matrices of a stack by integers and slices, and slices of whole tiles.

        Raises
        ------
        IndexError
            For another index, and one that takes a tile apart.
        """
        of_elements, of_scales = self._indices(key)
        return self._of(self._elements[of_elements], self._scales[of_scales], self.tile)

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
        codes, scales = (part.swapaxes(-1, -2) for part in self._parts)
        return self._of(codes, scales, (self.tile[1], self.tile[0]))

    # -- values ------------------------------------------------------------------

    def _values(self, wanted: np.dtype[Any], out: NDArray[Any] | None) -> NDArray[Any]:
        if out is None:
            out = np.empty(self.shape, wanted)
        # Products of 8 and 24 bits are exact in float64, in float32 rounded once.
        exact = np.dtype(np.float32 if wanted == np.float32 else np.float64)
        with errors_at_caller("cast"):
            for matrix, rows in bands(self.shape):
                values = self._elements[matrix][rows].astype(exact)
                with np.errstate(all="ignore"):  # what is beyond float32 is Inf
                    scaled(np.multiply, values, self._scales[matrix], rows, self.tile)
                out[matrix][rows] = values
        return out

    @staticmethod
    def _product(a: Any, b: Any, **options: Any) -> Any:
        return matmul(a, b, **options)

    # -- as an object ------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether both are the same: formats, shapes, tiles and all bits. One bool."""
        if not isinstance(other, TileArray):
            return NotImplemented
        return self.tile == other.tile and all(
            mine.dtype == its.dtype and np.array_equal(_raw(mine), _raw(its))
            for mine, its in zip(self._parts, other._parts, strict=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return TileArray.from_codes, (self.format, *self._parts, self.tile)

    @property
    def _parts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._elements, self._scales

    def __repr__(self) -> str:
        return (
            f"TileArray({self.format!r}, shape={self.shape}, tile={self.tile}, "
            f"scale_format={self.scale_format!r})"
        )


# -- tiles -----------------------------------------------------------------------


def grid(shape: tuple[int, ...], tile: tuple[int, int]) -> tuple[int, ...]:
    """The shape of the scales."""
    *stack, rows, columns = shape
    return (*stack, -(-rows // tile[0]), -(-columns // tile[1]))


def bands(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], slice]]:
    """Rows of one matrix after the other, as many as a cache holds."""
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
    """What elements may be: numbers of a format, or integers."""
    if which in ("int8", np.int8):
        return elements["int8"]
    row = find_format(which)
    if row.itemsize > 1 or not row.signed:
        known = [r.name for r in formats.values() if r.itemsize == 1 and r.signed]
        raise UnknownFormat(one_of("format of tiles", row.name, (*known, "int8")))
    return Element(row.name, row.bits)


def checked_tile(tile: object, shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tile of an array of this shape."""
    if len(shape) < 2:
        raise ValueError(f"x must have at least two axes for tiles; got shape {shape}")
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
    """The dtype of one of `SCALE_FORMATS`."""
    return formats[name].dtype if name in formats else np.dtype(name)


# -- indices ---------------------------------------------------------------------


def _is_basic(entry: object) -> bool:
    is_integer = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
    return is_integer or isinstance(entry, slice) or entry is Ellipsis


def _whole_tiles(entry: Any, length: int, size: int) -> tuple[slice, slice]:
    """A slice of elements, and of their scales."""
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
