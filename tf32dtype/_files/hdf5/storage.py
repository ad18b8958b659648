"""The HDF5 types that store arrays of a format, and the format of a dataset.

HDF5 2.0 names types for bfloat16 and the two FP8 formats of OCP; HDF5 2.2 adds FP6 and
FP4. A type is defined by its fields, so older libraries read and write it too. h5py has
no names for these types. Codes are read and written without conversion, because HDF5
itself treats all these types as if they followed IEEE 754. It reads Inf where FP8 E4M3
has 256 ("Known Problems" of its CHANGELOG.md).

Opaque data with the attribute "dtype" also have a format: Keras writes bfloat16 in this
form.

Other formats have no type. Their codes are stored as unsigned integers, and those of
tf32 as float32. float32 has the same layout, so other readers see the values. An
attribute of the dataset names the format.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.requirements import need
from ..._base.wording import brief
from ..._formats.table import Format, formats
from .. import opaque

#: The attribute that names a dataset's format.
ATTRIBUTE = "tf32dtype"
_LONGEST_ATTRIBUTE = 1 << 16  # bytes: any attribute of ours is shorter

#: The formats with HDF5 types: H5T_FLOAT_BFLOAT16LE, F8E4M3, F8E5M2, F6E2M3, F6E3M2
#: and F4E2M1.
TYPED = tuple(
    formats[name]
    for name in """bfloat16 float8_e4m3fn float8_e5m2 float6_e2m3fn float6_e3m2fn
    float4_e2m1fn""".split()
)


def h5py() -> Any:
    """Import and return h5py; raise an ImportError that says how to install it."""
    return need("td.hdf5", "hdf5", "h5py")


def type_of(form: Format) -> Any:
    """Return the HDF5 type that stores a format: its own, or that of its codes."""
    types = h5py().h5t
    if form not in TYPED:
        return types.py_create(form.carrier.newbyteorder("<"))
    made = types.IEEE_F32LE.copy()
    made.set_fields(*_fields(form))
    made.set_size(form.itemsize)
    made.set_precision(form.bits)
    made.set_ebias(form.bias)
    return made


def format_of(dataset: Any) -> Format | None:
    """Return the format of a dataset; None if it has none.

    Raises
    ------
    ValueError
        If the attribute names an unknown format, or one that the dataset cannot store;
        if fields overlap.
    TypeError
        If elements contain a format in a field or array, because HDF5 would convert
        some values wrongly.
    """
    found = dataset.id.get_type()
    name = attribute(dataset, ATTRIBUTE)
    if name is None:
        if isinstance(found, h5py().h5t.TypeFloatID):
            return _typed(found)
        if isinstance(found, h5py().h5t.TypeOpaqueID):
            return _named(dataset)
        _check_within(found, dataset)
        return None
    form = formats.get(name)
    if form is None or form in TYPED:
        known = [form.name for form in formats.values() if form not in TYPED]
        raise ValueError(
            f"attribute {ATTRIBUTE!r} of {dataset.name} must be one of"
            f" {', '.join(known)}; got {brief(name)}"
        )
    if not _is_carrier(found, form):
        raise ValueError(
            f"{dataset.name} must hold {form.carrier}, as its attribute {ATTRIBUTE!r}"
            f" is {name}; got {found.dtype} of {8 * found.get_size()} bits"
        )
    return form


def _named(dataset: Any) -> Format | None:
    """Return the format that the attribute of opaque data names, or None."""
    try:
        name = attribute(dataset, opaque.ATTRIBUTE)
    except ValueError:  # the attribute of another program
        return None
    return opaque.format_named(name, dataset.dtype)


def _is_carrier(found: Any, form: Format) -> bool:
    """Say whether a type is that of a format's codes, in any byte order.

    The dtype that h5py reports is not enough: for a float of 8 bytes it can be float32.
    """
    wanted = type_of(form)
    if not isinstance(found, type(wanted)):
        return False
    wanted.set_order(found.get_order())
    return bool(found == wanted)


def attribute(dataset: Any, name: str) -> str | None:
    """Return the string in an attribute of a dataset; None if there is none.

    Raises
    ------
    ValueError
        If the attribute is not a string, or longer than this package writes.
    """
    if name not in dataset.attrs:
        return None
    held = dataset.attrs.get_id(name)
    is_text = held.shape == () and isinstance(held.get_type(), h5py().h5t.TypeStringID)
    if is_text and held.get_storage_size() <= _LONGEST_ATTRIBUTE:
        text = dataset.attrs[name]
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        if isinstance(text, str):
            return text
    raise ValueError(
        f"attribute {name!r} of {dataset.name} must be a string of at most"
        f" {_LONGEST_ATTRIBUTE} bytes"
    )


def set_attribute(dataset: Any, name: str, text: str) -> None:
    """Set an attribute of a dataset to a string that `attribute` reads.

    The string has a fixed length. Strings of variable length are stored in the heap of
    the file, and a damaged heap makes libhdf5 loop without end.
    """
    dataset.attrs.create(name, np.bytes_(text.encode()))


def _fields(form: Format) -> tuple[int, int, int, int, int]:
    """Return the position of the sign, then position and size of the other fields."""
    mantissa = form.mantissa_bits
    return form.bits - 1, mantissa, form.exponent_bits, 0, mantissa


def _typed(found: Any) -> Format | None:
    facts = found.get_size(), found.get_fields(), found.get_ebias(), found.get_offset()
    return next(
        (x for x in TYPED if facts == (x.itemsize, _fields(x), x.bias, 0)), None
    )


def _check_fields(dtype: np.dtype[Any], dataset: Any) -> None:
    """Raise ValueError if fields overlap in NumPy's layout.

    Some fields are wider in NumPy than in HDF5. h5py then writes outside the array.
    """
    spans = [
        (place, kind.itemsize) for kind, place, *_ in (dtype.fields or {}).values()
    ]
    end = 0
    for place, size in sorted(spans):
        if place < end or place + size > dtype.itemsize:
            raise ValueError(f"fields of {dataset.name} must not overlap; got {dtype}")
        end = place + size


def _check_within(found: Any, dataset: Any) -> None:
    types = h5py().h5t
    match found:
        case types.TypeFloatID():
            form = _typed(found)
            if form is not None:
                raise TypeError(
                    f"{dataset.name} must not have {form.name} in a field or array,"
                    " because HDF5 converts some values wrongly. Write each field as a"
                    " separate dataset"
                )
        case types.TypeCompoundID():
            _check_fields(found.dtype, dataset)
            for i in range(found.get_nmembers()):
                _check_within(found.get_member_type(i), dataset)
        case types.TypeArrayID() | types.TypeVlenID():
            _check_within(found.get_super(), dataset)
