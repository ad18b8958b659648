"""Write arrays to HDF5 datasets, and read them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._base.caller import cast
from ..._base.wording import brief, warn_of_raw_bytes
from ..._formats.codes import bits
from ..._formats.table import Format, find_dtype, format_of_dtype, own_array
from ..scaled_arrays import is_scaled
from . import storage
from .storage import h5py

if TYPE_CHECKING:
    from ...blocks.facts_text import Scaled

_NUMBERS = "biufc"  # the kinds of NumPy's numbers
#: The attribute of an array of blocks, with all facts except its bytes.
BLOCKS_ATTRIBUTE = "tf32dtype blocks"


def write(
    group: Any,
    name: str,
    a: ArrayLike | Scaled,
    *,
    dtype: object = None,
    **create: Any,
) -> Any:
    """Write an array to a new HDF5 dataset.

    Parameters
    ----------
    group : h5py.Group or h5py.File
        The group to write to.
    name : str
        The name of the dataset. Missing groups in it are made: "layer/0/weight".
    a : array_like, BlockArray or TileArray
        bfloat16, float8_e4m3fn, float8_e5m2, float6_e2m3fn, float6_e3m2fn and
        float4_e2m1fn, also as dtypes of `ml_dtypes`, are stored under HDF5's own types,
        each element in whole bytes. For formats without an HDF5 type, the codes are
        stored (tf32 as float32), and the attribute "tf32dtype" names the format. Arrays
        of blocks are stored as their bytes, in one dimension. Unused bits are written
        as zeros. Other dtypes are stored as h5py writes them.
    dtype : dtype or str, optional
        The dtype to convert to before writing, by one rounding.
    **create
        Keyword arguments of `h5py.Group.create_dataset`: ``chunks``,
        ``compression``, ``shuffle``, ``fletcher32``, ``maxshape``, ``fillvalue`` and so
        on.

    Returns
    -------
    h5py.Dataset
        The new dataset, for `read` and `assign`. With h5py, ``dataset[...]`` returns
        float32 or float16 for HDF5's own types. It then has Inf or NaN for the largest
        numbers of all these formats except bfloat16 and float8_e5m2. For tf32 it
        returns the values, for other formats the codes.

    Raises
    ------
    ImportError
        If h5py is not installed.
    TypeError
        For arrays that a dataset cannot restore: masked arrays, structured arrays with
        a format in a field, custom dtypes of other packages. If `group` is not a group
        of h5py, or `name` is not a string.
    ValueError
        For a name that exists already. For ``scaleoffset``, which drops bits. For a
        ``fillvalue`` that HDF5 would change to another number. For a `dtype` with an
        array of blocks or tiles, or to which `a` cannot be converted. Errors are raised
        before anything is written.

    See Also
    --------
    read : Read a dataset.
    assign : Write to a selection of a dataset.
    save : Write several arrays to a new file.

    Examples
    --------
    >>> import h5py, numpy as np, tf32dtype as td
    >>> with h5py.File("a.h5", "w") as file:
    ...     w = np.ones((1000, 1000), td.bfloat16)
    ...     dataset = td.hdf5.write(file, "w", w, compression="gzip", shuffle=True)
    ...     td.hdf5.read(dataset, np.s_[0, :3])
    array([1., 1., 1.], dtype=bfloat16)
    """
    if not isinstance(group, h5py().Group):
        raise TypeError(
            f"group must be an h5py.Group or h5py.File; got {brief(group)}. Use"
            " td.hdf5.save to write a file"
        )
    if name is not None and not isinstance(name, str | bytes):
        raise TypeError(f"name must be a string; got {brief(name)}")
    if is_scaled(a):
        if dtype is not None:
            raise ValueError(
                "dtype must be None for an array of blocks or tiles; got"
                f" {brief(dtype)}"
            )
        return _write_blocks(group, name, a, **create)
    if isinstance(a, np.ma.MaskedArray):
        raise TypeError(
            "a must not have a mask; got a masked array. Write a.data and a.mask as two"
            " datasets"
        )
    array = own_array(a)
    if dtype is not None:
        array = _converted(array, find_dtype(dtype))
    form = format_of_dtype(array.dtype)
    if form is None:
        _check_plain(array.dtype, array.dtype)
        return group.create_dataset(name, data=array, **create)
    if create.get("scaleoffset") is not None:
        raise ValueError(
            f"scaleoffset must be None for {form.name}, because it would drop bits; got"
            f" {brief(create['scaleoffset'])}. Use compression"
        )
    kind = storage.type_of(form)
    if create.get("fillvalue") is not None:
        create["fillvalue"] = _fill_value(form, kind, create["fillvalue"])
    made = h5py().Datatype(kind)
    dataset = group.create_dataset(name, array.shape, made, **create)
    try:
        if form not in storage.TYPED:
            storage.set_attribute(dataset, storage.ATTRIBUTE, form.name)
        _transfer(dataset, form, (), array)
    except BaseException:
        if name is not None:
            del group[name]
        raise
    return dataset


def read(dataset: Any, selection: Any = (), out: NDArray[Any] | None = None) -> Any:
    """Read an HDF5 dataset, or a selection of it, as an array.

    Parameters
    ----------
    dataset : h5py.Dataset
        A dataset that `write` or any other program wrote. HDF5's types of formats are
        recognized by their fields, opaque elements by the attribute "dtype" that Keras
        writes.
    selection : index, optional
        An index that h5py accepts: ``np.s_[10:20, ::2]``, integers, lists, masks. The
        default is the whole dataset. Arrays of blocks can only be read as a whole.
    out : ndarray, optional
        The array to fill, with the shape and dtype of the selection.

    Returns
    -------
    ndarray, scalar, BlockArray or TileArray
        The values in the file's format and the byte order of this machine, with all
        bits as in the file. Datasets of other types are returned as h5py reads them. If
        `out` is given, `out` is returned.

    Raises
    ------
    ImportError
        If h5py is not installed.
    TypeError
        If `dataset` is not a dataset of h5py. If its elements contain a format in a
        field or an array.
    ValueError
        If the attribute does not name a format, or names one that the dataset cannot
        store. If `out` has another shape or dtype, or is read-only. For a selection
        that h5py rejects.
    IndexError
        For an index that is out of range.

    See Also
    --------
    load : Read all datasets of a file.
    write : Write an array to a new dataset.
    assign : Write to a selection of a dataset.

    Examples
    --------
    >>> import h5py, numpy as np, tf32dtype as td
    >>> with h5py.File("a.h5", "w") as file:
    ...     _ = td.hdf5.write(file, "w", np.arange(6, dtype=td.tf32).reshape(2, 3))
    ...     td.hdf5.read(file["w"], np.s_[:, 1])
    array([1., 4.], dtype=tf32)
    """
    _check_dataset(dataset)
    facts = storage.attribute(dataset, BLOCKS_ATTRIBUTE)
    if facts is not None:
        if not _is_all(selection) or out is not None:
            raise TypeError(
                f"{dataset.name} is an array of blocks: use selection=... and out=None"
            )
        return _read_blocks(dataset, facts)
    form = storage.format_of(dataset)
    if form is None or dataset.shape is None:
        found: Any = dataset[selection]
        if isinstance(found, np.ndarray | np.generic):
            warn_of_raw_bytes(found, dataset.name)
        return found if out is None else _fill(out, found)
    place = _place(dataset, selection)
    if out is not None:
        _check_out(out, place.shape, form.dtype)
    if out is not None and out.flags.c_contiguous:
        result = out
    else:
        result = np.empty(place.shape, form.dtype)
    codes = result.view(f"u{form.itemsize}")
    if codes.size:
        kind = dataset.id.get_type()
        dataset.id.read(place.memory, place.file, codes, mtype=kind)
        if not _is_native(kind):
            codes.byteswap(inplace=True)
    if out is None:
        return result[()] if place.is_number else result
    if result is not out:
        out[...] = result
    return out


def assign(dataset: Any, selection: Any, a: ArrayLike) -> None:
    """Write to a selection of an HDF5 dataset, as ``array[selection] = a`` does.

    Parameters
    ----------
    dataset : h5py.Dataset
        A dataset of any type that `read` accepts.
    selection : index
        As for `read`; ``...`` selects the whole dataset.
    a : array_like
        The values; they are broadcast to the selection and converted to the dataset's
        format.

    Raises
    ------
    TypeError, ValueError
        As for `read`, and a ValueError if `a` cannot be broadcast or converted.
    IndexError
        For an index that is out of range.

    See Also
    --------
    write : Write an array to a new dataset.
    read : Read a dataset, or a selection of it.

    Examples
    --------
    >>> import h5py, numpy as np, tf32dtype as td
    >>> with h5py.File("a.h5", "w") as file:
    ...     w = np.zeros((2, 3), td.fp4)
    ...     dataset = td.hdf5.write(file, "w", w, maxshape=(None, 3))
    ...     dataset.resize(4, axis=0)
    ...     td.hdf5.assign(dataset, np.s_[2:], [1, 2, 3])
    ...     td.hdf5.read(dataset)[:, 2]
    array([0., 0., 3., 3.], dtype='float4_e2m1fn')
    """
    _check_dataset(dataset)
    if storage.attribute(dataset, BLOCKS_ATTRIBUTE) is not None:
        raise TypeError(
            f"{dataset.name} is an array of blocks, which cannot be assigned to: use"
            " td.hdf5.write"
        )
    form = storage.format_of(dataset)
    array = own_array(a)
    if form is not None:
        _transfer(dataset, form, selection, _converted(array, form.dtype))
        return
    is_number = dataset.dtype.kind in _NUMBERS and array.dtype.kind not in _NUMBERS
    if is_number or format_of_dtype(array.dtype) is not None:
        array = _converted(array, dataset.dtype)
    try:
        dataset[selection] = array
    except TypeError as error:
        if "broadcast" in str(error):
            raise _not_broadcast(array, dataset, selection) from None
        raise


def _converted(
    array: NDArray[Any], dtype: np.dtype[Any], argument: str = "a"
) -> NDArray[Any]:
    """Return the values in a dtype, by one rounding."""
    try:
        converted: NDArray[Any] = cast(array, dtype)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{argument} must have values that convert to {dtype}; got {brief(array)}"
        ) from None
    return converted


def _not_broadcast(array: NDArray[Any], dataset: Any, selection: Any) -> ValueError:
    return ValueError(
        f"a must broadcast to selection {brief(selection)} of {dataset.name}, which has"
        f" shape {dataset.shape}; got shape {array.shape}"
    )


class _Place(NamedTuple):
    """A selection in the form that HDF5 uses."""

    shape: tuple[int, ...]
    memory: Any
    file: Any
    #: whether NumPy would return a scalar for this selection
    is_number: bool


def _place(dataset: Any, selection: Any) -> _Place:
    spaces = h5py().h5s
    if dataset.shape == ():
        if not _is_all(selection):
            raise ValueError(
                f"selection must be () or ... for {dataset.name}, which is one number;"
                f" got {brief(selection)}"
            )
        return _Place((), spaces.ALL, spaces.ALL, selection is not ...)
    from h5py._hl.selections import select  # the place of this function since h5py 2.0

    index = selection if isinstance(selection, tuple) else (selection,)
    chosen = select(dataset.shape, index, dataset)
    shape = chosen.array_shape
    return _Place(shape, spaces.create_simple(chosen.mshape), chosen.id, shape == ())


def _is_all(selection: Any) -> bool:
    return selection is ... or (isinstance(selection, tuple) and not selection)


def _transfer(dataset: Any, form: Format, selection: Any, array: NDArray[Any]) -> None:
    """Write the codes of an array, which is broadcast to the selection."""
    place = _place(dataset, selection)
    try:
        whole = np.broadcast_to(array, place.shape)
    except ValueError:
        raise _not_broadcast(array, dataset, selection) from None
    codes = np.asarray(bits(whole), order="C")
    if codes.size:
        kind = dataset.id.get_type()
        in_order = codes if _is_native(kind) else codes.byteswap()
        dataset.id.write(place.memory, place.file, in_order, mtype=kind)


def _is_native(kind: Any) -> bool:
    """Return whether elements of an HDF5 type have the byte order of this machine."""
    types = h5py().h5t
    if isinstance(kind, types.TypeOpaqueID):
        return True  # bytes in the order of their writer, which the file does not name
    little = kind.get_order() != types.ORDER_BE
    return bool(kind.get_size() == 1 or little == (sys.byteorder == "little"))


def _fill_value(form: Format, kind: Any, value: Any) -> Any:
    """Return the argument for h5py that sets a fill value in a format.

    HDF5 converts the fill value to the dataset's type, for some values wrongly. A trial
    in a file in memory finds such values.
    """
    wanted = _converted(own_array(value), form.dtype, "fillvalue")
    if form not in storage.TYPED:
        return bits(wanted).view(form.carrier)[()]
    number = wanted.astype(np.float64)[()]
    with h5py().File("fill value", "w", driver="core", backing_store=False) as scratch:
        made = h5py().Datatype(kind)
        dataset = scratch.create_dataset("x", (1,), made, fillvalue=number)
        found = read(dataset)[0]
    if found != number and not (np.isnan(found) and np.isnan(number)):
        raise ValueError(
            f"fillvalue must be a {form.name} number that HDF5 keeps; got {number:g},"
            f" which HDF5 changes to {float(found):g}. Omit fillvalue and write the"
            " values"
        )
    return number


def _check_dataset(dataset: Any) -> None:
    if not isinstance(dataset, h5py().Dataset):
        raise TypeError(
            f"dataset must be an h5py.Dataset; got {brief(dataset)}. Use td.hdf5.load"
            " to read a file"
        )


def _check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not isinstance(out, np.ndarray) or (out.shape, out.dtype) != (shape, dtype):
        raise ValueError(
            f"out must be an array of {dtype}, shape {shape}; got {brief(out)}"
        )
    if not out.flags.writeable:
        raise ValueError("out must be writable; got a read-only array")


def _fill(out: NDArray[Any], found: Any) -> NDArray[Any]:
    found = np.asarray(found)
    _check_out(out, found.shape, found.dtype)
    out[...] = found
    return out


def _check_plain(dtype: np.dtype[Any], whole: np.dtype[Any]) -> None:
    """Raise TypeError for a dtype that h5py would write as bytes without a name."""
    item = dtype.base
    if item.names is not None:
        for name in item.names:
            _check_plain(item[name], whole)
    elif item.isbuiltin == 2:  # a dtype of another package
        raise TypeError(
            f"a must have a dtype that HDF5 keeps; got {item} in {whole}. Write each"
            " field, or its bytes, as a separate dataset"
        )


# -- arrays of blocks -------------------------------------------------------


def _write_blocks(group: Any, name: str, a: Scaled, **create: Any) -> Any:
    from ...blocks.facts_text import to_bytes, to_text

    dataset = group.create_dataset(name, data=to_bytes(a), **create)
    storage.set_attribute(dataset, BLOCKS_ATTRIBUTE, to_text(a))
    return dataset


def _read_blocks(dataset: Any, facts: str) -> Scaled:
    from ...blocks.facts_text import from_text, restore

    try:
        return restore(from_text(facts), dataset[()])
    except (ValueError, TypeError) as error:
        raise ValueError(f"blocks of {dataset.name}: {error}") from None
