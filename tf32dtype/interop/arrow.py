"""Store arrays of the formats in Arrow tables and Parquet, Feather and IPC files.

    pq.write_table(pa.table({"x": to_arrow(a)}), "file.parquet")
    a = from_arrow(pq.read_table("file.parquet")["x"])

A column has an extension type, such as `tf32dtype.bfloat16`. It stores the codes as
little-endian bytes, as Parquet stores float16. Importing this module registers the
types. A reader without this module gets the bytes, in a field with the metadata
`ARROW:extension:name`, and so does not take codes for numbers. `from_arrow` also
accepts these bytes.
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
    """An Arrow extension type for the values of a format.

    `to_arrow` returns arrays of this type.

    Parameters
    ----------
    format : str, dtype or type
        A format of this package.

    Raises
    ------
    TypeError, ValueError
        If `format` is not a format.

    See Also
    --------
    to_arrow : Convert an array to an Arrow array.

    Examples
    --------
    >>> import pyarrow as pa, tf32dtype as td
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
        """Return the dtype by which `to_pandas` makes a column of values."""
        from .arrow_to_pandas import FromArrow

        return FromArrow(_column)


class NumberArray(pa.ExtensionArray):
    """An Arrow array of values of a format; `np.asarray` converts it to NumPy.

    See Also
    --------
    to_arrow : Create an Arrow array from a NumPy array.
    from_arrow : Convert an Arrow array to a NumPy array.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x = td.interop.arrow.to_arrow(np.array([1.5, -2], td.bfloat16))
    >>> type(x).__name__, np.asarray(x)
    ('NumberArray', array([ 1.5, -2. ], dtype=bfloat16))
    """

    def to_numpy(self, zero_copy_only: bool = True, writable: bool = False) -> Any:
        """Return the values as a NumPy array, as `from_arrow` does."""
        numbers = from_arrow(self)
        return numbers.copy() if writable else numbers


class NumberScalar(pa.ExtensionScalar):
    """A value of a `NumberArray`, or null.

    See Also
    --------
    NumberArray : The array that has such values.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x = td.interop.arrow.to_arrow(np.array([1.5, -2], td.bfloat16))
    >>> x[0], x[0].as_py()
    (<pyarrow.NumberScalar: 1.5>, 1.5)
    """

    def as_py(self, **options: Any) -> float | None:
        """Return the value as a Python float, or None for null."""
        if self.value is None:
            return None
        form = self.type.format
        code = int.from_bytes(self.value.as_py(), "little")
        return float(from_bits(code, form.dtype, dirty="ignore")[()])


def to_arrow(a: ArrayLike) -> Any:
    """Convert an array to an Arrow array.

    Parameters
    ----------
    a : array_like
        An array of a format of this package, with at least one axis. Masked elements
        become null.

    Returns
    -------
    pyarrow.Array
        An array of `NumberType`, inside one fixed-size list for each additional axis.

    Raises
    ------
    TypeError
        For another dtype; use `pa.array` for NumPy dtypes.
    ValueError
        For a scalar.

    See Also
    --------
    from_arrow : Convert an Arrow array to a NumPy array.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
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
    """Convert an Arrow array to a NumPy array.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
        An array as `to_arrow` returns it, also read from a file or sliced. Or an array
        of codes: fixed-size binaries (its storage type, and Lance's bfloat16) or
        unsigned integers.
    format : str, dtype or type, optional
        The format, for an array whose type does not name the format.
    masked : bool, optional
        Whether to return a masked array, in which null elements are masked.

    Returns
    -------
    ndarray or numpy.ma.MaskedArray
        An array of the format, with one more axis for each fixed-size list. It is a
        read-only view of the array's memory, or a new array if `array` is in chunks.

    Raises
    ------
    TypeError
        For an array of another type, and if `format` is not a format.
    ValueError
        If an element is null and `masked` is False; if a list is null; for an unknown
        format.

    See Also
    --------
    to_arrow : Convert an array to an Arrow array.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, tf32dtype as td
    >>> codes = pa.array([0x3FC0, None], pa.uint16())
    >>> td.interop.arrow.from_arrow(codes, "bfloat16", masked=True).tolist()
    [1.5, None]
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
    """Return the values for pandas, with NaN for null if the format has NaN."""
    if array.null_count and array.type.format.has_nan:
        return from_arrow(array, masked=True).filled(np.nan)
    return from_arrow(array).copy()


def _holds_numbers(kind: Any) -> bool:
    children = (kind.field(i).type for i in range(kind.num_fields))
    return isinstance(kind, NumberType) or any(map(_holds_numbers, children))


def _objects(array: Any) -> NDArray[np.object_]:
    """Return lists, structs and maps for pandas, with an array for each list."""
    kind = array.type
    rows: Any = array.to_pylist() if not _is_list(kind) else None
    if pa.types.is_fixed_size_list(kind) and not array.null_count:
        with suppress(TypeError, ValueError):  # lists of other sizes, nulls
            rows = from_arrow(array).copy()
    if rows is None:
        rows = (_listed(row.values) if row.is_valid else None for row in array)
    result = np.empty(len(array), object)
    for i, row in enumerate(rows):  # else NumPy would convert the rows
        result[i] = row
    return result


def _is_list(kind: Any) -> bool:
    kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(is_one(kind) for is_one in kinds)


def _listed(values: Any) -> NDArray[Any]:
    return (_column if isinstance(values.type, NumberType) else _objects)(values)


def _convert_nested(pandas_compat: ModuleType) -> None:
    """Make pyarrow convert columns of nested types with values of formats.

    By itself, pyarrow cannot convert lists of extension types, and converts extension
    types in structs and maps to codes.
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
    """Return the format of an Arrow type, and check that it is the wanted one."""
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
    """Return the codes in the memory of an array; null elements have any bits."""
    memory = array.buffers()[1]
    dtype = np.dtype(f"<u{form.itemsize}")
    if memory is None:  # the array has no values
        return np.zeros(len(array), dtype)
    start = array.offset * dtype.itemsize
    codes = np.frombuffer(memory, dtype, len(array), start)
    codes.flags.writeable = False  # all memory of Arrow is read-only
    return codes


for _form in formats.values():
    pa.register_extension_type(NumberType(_form))
del _form
when_imported("pyarrow.pandas_compat", _convert_nested)
