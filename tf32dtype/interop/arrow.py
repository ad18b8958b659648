"""Arrays of the formats in Arrow tables, and so in Parquet, Feather and IPC files.

    pq.write_table(pa.table({"x": to_arrow(a)}), "file.parquet")
    a = from_arrow(pq.read_table("file.parquet")["x"])

A column is of an extension type, `tf32dtype.bfloat16` and so on for each format, whose
storage is the codes as little-endian bytes, as Parquet has float16. Importing this
module registers the types. A reader without it gets these bytes, in a field with the
metadata `ARROW:extension:name`: none takes codes for numbers. `from_arrow` takes them.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from types import ModuleType
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.imports import when_imported
from .._base.requirements import need
from .._base.wording import brief
from .._formats.codes import bits, from_bits
from .._formats.table import Format, as_own, find, formats
from .._formats.typed import DTypeOf, FormatLike, Scalar

need("td.interop.arrow", "arrow", "pyarrow")
import pyarrow as pa  # noqa: E402

_PREFIX = "tf32dtype."


__all__ = ["NumberArray", "NumberScalar", "NumberType", "from_arrow", "to_arrow"]


def __dir__() -> list[str]:
    return __all__


class NumberType(pa.ExtensionType):
    """The Arrow type of numbers of a format.

    Parameters
    ----------
    format : str, dtype or type
        A format of this package.

    Examples
    --------
    >>> pa.schema({"x": td.interop.arrow.NumberType("bfloat16")})
    x: extension<tf32dtype.bfloat16<NumberType>>
    """

    def __init__(self, format: FormatLike) -> None:
        self.format: Format = find(format)
        super().__init__(pa.binary(self.format.itemsize), _PREFIX + self.format.name)

    def __arrow_ext_serialize__(self) -> bytes:
        return self.format.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Self:
        made = cls(formats[serialized.decode()])
        if made.storage_type != storage_type:
            raise ValueError(
                f"storage type of {made.extension_name} must be {made.storage_type}; "
                f"got {storage_type}"
            )
        return made

    def __arrow_ext_class__(self) -> type[pa.ExtensionArray]:
        return NumberArray

    def __arrow_ext_scalar_class__(self) -> type[pa.ExtensionScalar]:
        return NumberScalar

    def to_pandas_dtype(self) -> Any:
        """What has `to_pandas` make a column of the format, and not of its codes."""
        from .arrow_to_pandas import FromArrow

        return FromArrow(_column)


class NumberArray(pa.ExtensionArray):
    """An Arrow array of numbers of a format, which `np.asarray` gives."""

    def to_numpy(self, zero_copy_only: bool = True, writable: bool = False) -> Any:
        """The numbers, as `from_arrow` does."""
        numbers = from_arrow(self)
        return numbers.copy() if writable else numbers


class NumberScalar(pa.ExtensionScalar):
    """A number of an Arrow array, or null."""

    def as_py(self, **options: Any) -> float | None:
        """The number as a Python float."""
        if self.value is None:
            return None
        form = self.type.format
        code = int.from_bytes(self.value.as_py(), "little")
        return float(from_bits(code, form.dtype, dirty="ignore")[()])


def to_arrow(a: ArrayLike) -> Any:
    """An Arrow array of an array.

    Parameters
    ----------
    a : array_like
        Of a format of this package, with at least one axis. What a masked array masks
        becomes null.

    Returns
    -------
    pyarrow.Array
        Of `NumberType`; of lists of a fixed size for each further axis.

    Raises
    ------
    TypeError
        For another dtype, of which `pa.array` makes arrays.
    ValueError
        For a single number.

    Examples
    --------
    >>> td.interop.arrow.to_arrow(np.array([1.5, -2], td.bfloat16)).to_pylist()
    [1.5, -2.0]
    """
    array = as_own(np.asanyarray(a))
    form = find(array.dtype)
    if array.ndim == 0:
        raise ValueError("a must have at least one axis; got a scalar")
    codes = bits(np.asarray(array).reshape(-1)).astype(f"<u{form.itemsize}", copy=False)
    valid = None
    if np.ma.is_masked(array):
        mask = np.ma.getmaskarray(array).reshape(-1)
        valid = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    kind = NumberType(form)
    storage = pa.FixedSizeBinaryArray.from_buffers(
        kind.storage_type, len(codes), [valid, pa.py_buffer(codes)]
    )
    result = pa.ExtensionArray.from_storage(kind, storage)
    for number in range(array.ndim - 1, 0, -1):
        length = array.shape[number]
        count = int(np.prod(array.shape[:number]))
        result = pa.FixedSizeListArray.from_buffers(
            pa.list_(result.type, length), count, [None], children=[result]
        )
    return result


@overload
def from_arrow(
    array: Any, format: FormatLike | None = ..., *, masked: Literal[True]
) -> np.ma.MaskedArray[Any, np.dtype[Any]]: ...
@overload
def from_arrow(
    array: Any, format: DTypeOf[Scalar], *, masked: Literal[False] = ...
) -> NDArray[Scalar]: ...
@overload
def from_arrow(
    array: Any, format: FormatLike | None = ..., *, masked: bool = ...
) -> NDArray[Any]: ...
def from_arrow(
    array: Any, format: FormatLike | None = None, *, masked: bool = False
) -> NDArray[Any]:
    """The numbers of an Arrow array.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        As `to_arrow` returns it, read from a file or sliced; or of codes as binaries
        of a fixed size (its storage, and Lance's bfloat16) or as unsigned integers.
    format : str, dtype or type, optional
        The format, if the array does not know it.
    masked : bool, optional
        Return a masked array, with what is null masked.

    Returns
    -------
    ndarray or numpy.ma.MaskedArray
        A read-only view of the array's memory, or a new array if it is in chunks.

    Raises
    ------
    TypeError
        For an array of another type.
    ValueError
        If something is null and `masked` is not true, and for lists that are null.
    """
    if isinstance(array, pa.ChunkedArray):
        chunks = [from_arrow(chunk, format, masked=masked) for chunk in array.chunks]
        if len(chunks) == 1:
            return chunks[0]
        joined = np.ma.concatenate if masked else np.concatenate
        empty = from_arrow(pa.nulls(0, array.type), format, masked=masked)
        result: NDArray[Any] = joined([empty, *chunks])
        return result
    if not isinstance(array, pa.Array):
        raise TypeError(
            "array must be a pyarrow Array or ChunkedArray, such as a column of a"
            f" table; got {brief(array)}"
        )
    shape = [len(array)]
    while pa.types.is_fixed_size_list(array.type):
        if array.null_count:
            raise ValueError(
                "array must not have null lists; got"
                f" {array.null_count} of {len(array)} null"
            )
        shape.append(array.type.list_size)
        array = array.flatten()
    form = _format_of(array.type, format)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    numbers = from_bits(_codes(array, form), form.dtype, dirty="ignore").reshape(shape)
    if masked:
        mask = np.asarray(array.is_null()).reshape(shape)
        return np.ma.MaskedArray(numbers, mask)
    if array.null_count:
        raise ValueError(
            f"array must not have nulls; got {array.null_count} of {len(array)} null. "
            "Use from_arrow(array, masked=True) to mask them"
        )
    return numbers


def _column(array: Any) -> NDArray[Any]:
    """Numbers for pandas, which has NaN for what is null."""
    if array.null_count and array.type.format.has_nan:
        return from_arrow(array, masked=True).filled(np.nan)
    return from_arrow(array).copy()


def _holds_numbers(kind: Any) -> bool:
    children = (kind.field(i).type for i in range(kind.num_fields))
    return isinstance(kind, NumberType) or any(map(_holds_numbers, children))


def _objects(array: Any) -> NDArray[np.object_]:
    """Lists, structs and maps of numbers for pandas: each list is an array."""
    kind = array.type
    rows: Any = array.to_pylist() if not _is_list(kind) else None
    if pa.types.is_fixed_size_list(kind) and not array.null_count:
        with suppress(TypeError, ValueError):  # of lists of other sizes, or of null
            rows = from_arrow(array).copy()
    if rows is None:
        rows = (_listed(row.values) if row.is_valid else None for row in array)
    result = np.empty(len(array), object)
    for i, row in enumerate(rows):  # at once, NumPy would look into the rows
        result[i] = row
    return result


def _is_list(kind: Any) -> bool:
    kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(is_one(kind) for is_one in kinds)


def _listed(values: Any) -> NDArray[Any]:
    return (_column if isinstance(values.type, NumberType) else _objects)(values)


def _convert_nested(pandas_compat: ModuleType) -> None:
    """Have pyarrow make columns of nested types with numbers.

    It makes none of lists of extension types, and takes the codes of those in structs
    and maps.
    """
    own = getattr(pandas_compat, "_get_extension_dtypes", None)
    if own is None:
        return

    @functools.wraps(own)
    def dtypes(table: Any, *args: Any, **options: Any) -> Any:
        from .arrow_to_pandas import FromArrow

        found = own(table, *args, **options)
        for field in table.schema:
            if field.name not in found and _holds_numbers(field.type):
                found[field.name] = FromArrow(_objects)
        return found

    pandas_compat._get_extension_dtypes = dtypes  # type: ignore[attr-defined]


def _format_of(kind: Any, wanted: object) -> Format:
    """The format of an Arrow type, which is the one that is wanted, if one is."""
    if isinstance(kind, NumberType):
        form = kind.format
        if wanted is not None and find(wanted) is not form:
            raise TypeError(
                f"format must be {form.name}, the array's; got {brief(wanted)}"
            )
        return form
    if wanted is None:
        raise TypeError(
            f"array must have a tf32dtype type; got {kind}. Use from_arrow(array, "
            "format) to name the format of its codes"
        )
    form = find(wanted)
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    integer = pa.from_numpy_dtype(np.dtype(f"u{form.itemsize}"))
    if storage not in (pa.binary(form.itemsize), integer):
        raise TypeError(
            f"array must have type {pa.binary(form.itemsize)} or {integer} for codes "
            f"of {form.name}; got {kind}"
        )
    return form


def _codes(array: Any, form: Format) -> NDArray[np.unsignedinteger[Any]]:
    """What the array's memory holds, any bits where it is null."""
    memory = array.buffers()[1]
    dtype = np.dtype(f"<u{form.itemsize}")
    if memory is None:  # of no numbers at all
        return np.zeros(len(array), dtype)
    start = array.offset * dtype.itemsize
    codes = np.frombuffer(memory, dtype, len(array), start)
    codes.flags.writeable = False  # as all that is Arrow's
    return codes


for _form in formats.values():
    pa.register_extension_type(NumberType(_form))
del _form
when_imported("pyarrow.pandas_compat", _convert_nested)
