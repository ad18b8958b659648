"""Use the formats as data types of Zarr, with the package zarr.

If tf32dtype is installed, zarr finds the data types itself, by the entry points in
pyproject.toml. Otherwise, importing this module registers them. The names are those of
the registry of extensions, https://github.com/zarr-developers/zarr-extensions. Two
formats are not in the registry: float8_e4m3fn, whose name TensorStore also uses, and
tf32.

>>> import zarr, tf32dtype as td
>>> zarr.create_array({}, shape=4, dtype="float8_e4m3fn")[:]
array([0., 0., 0., 0.], dtype='float8_e4m3fn')
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Self, SupportsFloat

import numpy as np

from .._base.requirements import need
from .._formats.codes import bits, from_bits
from .._formats.table import Format, as_own, find_dtype, formats

need("td.interop.zarr", "zarr", "zarr")

import zarr.dtype  # noqa: E402
import zarr.errors  # noqa: E402
from zarr.core.dtype.common import HasEndianness, HasItemSize  # noqa: E402
from zarr.dtype import ZDType, data_type_registry  # noqa: E402
from zarr.registry import register_codec  # noqa: E402

from ._zarr_packbits import PackBits  # noqa: E402

__all__ = ["PackBits", *formats]


def __dir__() -> list[str]:
    return __all__


#: The exception that tells zarr to try another data type; zarr 3.3 moved it.
_Mismatch: type[Exception] = next(
    vars(module)["DataTypeValidationError"]
    for module in (zarr.errors, zarr.dtype)
    if "DataTypeValidationError" in vars(module)
)


class FormatType(ZDType[Any, Any], HasItemSize):
    """The base class of the data types in this module: a format as a type of Zarr.

    zarr calls the methods; users do not need them. Arrays of dtypes of ml_dtypes become
    arrays of dtypes of this package.
    """

    _format: ClassVar[Format]

    @classmethod
    def from_native_dtype(cls, dtype: np.dtype[Any]) -> Self:
        if type(find_dtype(dtype)) is cls.dtype_cls:
            return cls()
        raise _Mismatch(f"{dtype} is not {cls._format.name}")

    def to_native_dtype(self) -> np.dtype[Any]:
        order = getattr(self, "endianness", sys.byteorder)
        if order != sys.byteorder:
            raise ValueError(
                f"byte order of {self._format.name} must be {sys.byteorder}-endian, as"
                f" on this machine; got {order}-endian. Use TensorStore"
            )
        return self._format.dtype

    @classmethod
    def _from_json_v2(cls, data: Any) -> Self:
        if data == {"name": cls._format.name, "object_codec_id": None}:
            return cls()
        raise _Mismatch(f"{data!r} is not {cls._format.name}")

    @classmethod
    def _from_json_v3(cls, data: Any) -> Self:
        name = cls._format.name
        if data in (name, {"name": name}, {"name": name, "configuration": {}}):
            return cls()
        raise _Mismatch(f"{data!r} is not {name}")

    def to_json(self, zarr_format: int) -> Any:
        if zarr_format != 3:
            raise ValueError(
                f"zarr_format must be 3 for {self._format.name}; got {zarr_format}"
            )
        return self._format.name

    def _check_scalar(self, data: object) -> bool:
        return isinstance(data, SupportsFloat | str)

    def cast_scalar(self, data: object) -> Any:
        """Convert to the format by one rounding; its own scalars keep their bits."""
        if not self._check_scalar(data):
            raise TypeError(
                f"scalar must be a number of {self._format.name}; got {data!r}"
            )
        return np.asarray(as_own(data)).astype(self._format.dtype)[()]

    def default_scalar(self) -> Any:
        """Return the value of the elements of `numpy.zeros`."""
        return np.zeros((), self._format.dtype)[()]

    def to_json_scalar(self, data: object, *, zarr_format: int) -> Any:
        """Return a number, "Infinity", "-Infinity", "NaN" or the code of other NaNs."""
        scalar = self.cast_scalar(data)
        if np.isfinite(scalar):
            return float(scalar)
        if np.isinf(scalar):
            return "Infinity" if scalar > 0 else "-Infinity"
        code = int(bits(scalar))
        # "NaN" stands for the same code in zarr-extensions and in this package.
        nan = int(bits(self._format.type("nan")))
        return "NaN" if code == nan else f"0x{code:0{2 * self.item_size}x}"

    def from_json_scalar(self, data: Any, *, zarr_format: int) -> Any:
        """Return the value that `to_json_scalar` wrote."""
        form = self._format
        if isinstance(data, int | float) and not isinstance(data, bool):
            return self.cast_scalar(data)
        known = {
            "NaN": form.has_nan,
            "Infinity": form.has_infinity,
            "-Infinity": form.has_infinity,
        }
        if isinstance(data, str) and known.get(data):
            return self.cast_scalar(data)
        digits = 2 * form.itemsize
        try:
            [code] = re.findall(rf"\A0x([0-9a-fA-F]{{{digits}}})\Z", str(data))
            return from_bits(int(code, 16), form.dtype)[()]
        except ValueError:
            words = "".join(f', "{word}"' for word, has in known.items() if has)
            raise ValueError(
                f"fill value of {form.name} must be a number{words} or a code of"
                f' {digits} hexadecimal digits, "0x..."; got {data!r}'
            ) from None

    @property
    def item_size(self) -> int:
        return self._format.itemsize


def _data_type(form: Format) -> type[FormatType]:
    """Return the class of a format, which zarr finds by its name."""
    bases = (FormatType, HasEndianness) if form.itemsize > 1 else (FormatType,)
    facts = {
        "__module__": __name__,
        "__doc__": f"{form.name} as a data type of Zarr.",
        "_format": form,
        "_zarr_v3_name": form.name,
        "dtype_cls": type(form.dtype),
    }
    return dataclass(frozen=True, kw_only=True)(type(form.name, bases, facts))


for _form in formats.values():
    globals()[_form.name] = _data_type(_form)
    data_type_registry.register(_form.name, globals()[_form.name])
register_codec("packbits", PackBits)
