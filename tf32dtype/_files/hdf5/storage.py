"""What a dataset holds an array of a format as, and what a dataset's format is.

HDF5 2.0 names types for bfloat16 and the two FP8 of OCP, 2.2 those for FP6 and FP4. A
type is its fields, which older libraries read and write too; h5py has no names for
them. Data goes to and from the file without conversion, codes to codes: HDF5 itself
takes all of these for IEEE 754's kind, so that it reads Inf where FP8 E4M3 has 256
("Known Problems" of its CHANGELOG.md).

Opaque data with the attribute "dtype" are a format's, as Keras writes bfloat16.

Other formats have no type. Their codes are stored as unsigned integers, those of tf32
as float32, which have the same layout: to other readers they are the numbers. An
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

#: Whose types HDF5 has: H5T_FLOAT_BFLOAT16LE, F8E4M3, F8E5M2, F6E2M3, F6E3M2, F4E2M1.
TYPED = tuple(
    formats[name]
    for name in """bfloat16 float8_e4m3fn float8_e5m2 float6_e2m3fn float6_e3m2fn
    float4_e2m1fn""".split()
)


def h5py() -> Any:
    """The library."""
    return need("td.hdf5", "hdf5", "h5py")


def type_of(form: Format) -> Any:
    """The HDF5 type of a format's dataset: its own, or that of its codes."""
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
    """The format of a dataset; None if it holds none.

    Raises
    ------
    ValueError
        If its attribute names a format that is not known, or that such a dataset
        cannot hold; if fields overlap.
    TypeError
        If items have a format within: HDF5 would convert it, some numbers wrongly.
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
    """The format of opaque data that its attribute names, if it names one."""
    try:
        name = attribute(dataset, opaque.ATTRIBUTE)
    except ValueError:  # another program's, and not for this
        return None
    return opaque.format_named(name, dataset.dtype)


def _is_carrier(found: Any, form: Format) -> bool:
    """Say whether a type is that of a format's codes, in any byte order.

    h5py's dtype does not suffice: a float of 8 bytes is float32 if its numbers are.
    """
    wanted = type_of(form)
    if not isinstance(found, type(wanted)):
        return False
    wanted.set_order(found.get_order())
    return bool(found == wanted)


def attribute(dataset: Any, name: str) -> str | None:
    """A text that a dataset has as an attribute; None if it has none.

    Raises
    ------
    ValueError
        If it is no text, or longer than any of ours.
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
    """Give a dataset a text that `attribute` reads.

    Of fixed length: what has another is in the file's heap, a damaged one of which
    keeps libhdf5 busy forever.
    """
    dataset.attrs.create(name, np.bytes_(text.encode()))


def _fields(form: Format) -> tuple[int, int, int, int, int]:
    """Of the sign the position, of exponent and mantissa position and size."""
    mantissa = form.mantissa_bits
    return form.bits - 1, mantissa, form.exponent_bits, 0, mantissa


def _typed(found: Any) -> Format | None:
    facts = found.get_size(), found.get_fields(), found.get_ebias(), found.get_offset()
    return next(
        (x for x in TYPED if facts == (x.itemsize, _fields(x), x.bias, 0)), None
    )


def _check_fields(dtype: np.dtype[Any], dataset: Any) -> None:
    """Raise ValueError if fields overlap in NumPy's layout.

    Some fields are wider in NumPy than in HDF5: h5py writes past the end of the array.
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
