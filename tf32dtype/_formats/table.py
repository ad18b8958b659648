"""The formats: the facts of each format, and properties that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._base.wording import brief, one_of
from .aliases import (
    ALIASES,
    NUMPY_ALIASES,
    FormatAlias,
    FormatName,
    canonical,
    cure,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Format:
    """The facts of a number format. Codes are those that `tf32dtype.bits` returns.

    NumPy accepts a format as a dtype: ``x.astype(td.formats["bf16"])``. Each format has
    only one object, which cannot be changed. Copying or unpickling a format returns the
    same object.

    See Also
    --------
    tf32dtype.bits : Return the codes of an array.
    tf32dtype.from_bits : Create an array from codes.

    Examples
    --------
    >>> import tf32dtype as td
    >>> f = td.formats["fp8_e4m3"]
    >>> f.name, f.bits, f.max, f.eps, f.nan_codes
    ('float8_e4m3fn', 8, 448.0, 0.125, (127, 255))
    """

    # Not a dataclass: creating one would add a tenth to the time of this import.
    __slots__ = (
        "aliases", "bias", "bits", "exponent_bits", "itemsize", "mantissa_bits", "max",
        "name", "signed", "smallest_normal", "smallest_subnormal", "specials", "type",
        "unused_low_bits",
    )  # fmt: skip

    #: full name, as in ml_dtypes
    name: FormatName
    #: short names
    aliases: tuple[FormatAlias, ...]
    #: the scalar type, which also serves as a dtype
    type: type[np.floating[Any]]
    #: bits of a code: sign, exponent and mantissa
    bits: int
    #: bytes an array item takes
    itemsize: int
    #: unused low bits of an item
    unused_low_bits: int
    #: bits of the exponent
    exponent_bits: int
    #: stored mantissa bits; the significand has one more
    mantissa_bits: int
    #: bias of the exponent
    bias: int
    #: whether codes have a sign bit
    signed: bool
    #: which codes are not numbers: "ieee", "fn", "fnuz", "finite" or "powers"
    specials: str
    #: largest finite number
    max: float
    #: smallest positive normal number
    smallest_normal: float
    #: smallest positive number
    smallest_subnormal: float

    def __init__(self, **facts: Any) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, facts[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of a format cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of a format cannot be deleted")

    def __repr__(self) -> str:
        facts = (f"{name}={getattr(self, name)!r}" for name in self.__annotations__)
        return f"Format({', '.join(facts)})"

    def __reduce__(self) -> tuple[Callable[[str], Format], tuple[str]]:
        return find, (self.name,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays of the format."""
        return np.dtype(self.type)

    @property
    def carrier(self) -> np.dtype[Any]:
        """Return the NumPy dtype for files that have no name for the format.

        It is an unsigned integer, which holds the codes. For codes in float32's layout
        it is float32: other readers then read the same numbers.
        """
        return np.dtype("f4" if self.unused_low_bits else f"u{self.itemsize}")

    @property
    def min(self) -> float:
        """The most negative number, or the smallest one of an unsigned format."""
        return -self.max if self.signed else self.smallest_normal

    @property
    def eps(self) -> float:
        """Distance from 1 to the next larger number."""
        return 2.0**-self.mantissa_bits

    @property
    def decimal_digits(self) -> int:
        """Decimal digits that every number of the normal range keeps."""
        return self.mantissa_bits * 30103 // 100000

    @property
    def has_infinity(self) -> bool:
        """Whether the format has Inf and -Inf."""
        return self.specials == "ieee"

    @property
    def has_nan(self) -> bool:
        """Whether the format has NaN."""
        return self.specials != "finite"

    @property
    def has_zero(self) -> bool:
        """Whether the format has a zero; only float8_e8m0fnu has none."""
        return self.specials != "powers"

    @property
    def has_negative_zero(self) -> bool:
        """Whether the format has a negative zero."""
        return self.signed and self.specials != "fnuz"

    @property
    def infinity_codes(self) -> tuple[int, ...]:
        """Return the codes of Inf and -Inf in arrays; empty if there is no Inf."""
        if not self.has_infinity:
            return ()
        infinity = ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        return self._items(infinity, infinity | self._sign)

    @property
    def nan_codes(self) -> tuple[int, ...]:
        """Return all codes of NaN in arrays; empty if the format has no NaN."""
        top = self._sign if self.signed else 1 << self.bits
        if self.specials == "ieee":
            first = (((1 << self.exponent_bits) - 1) << self.mantissa_bits) + 1
            positive = range(first, top)
            return self._items(*positive, *(code | self._sign for code in positive))
        if self.specials == "fn":
            return self._items(top - 1, top - 1 | self._sign)
        if self.specials == "fnuz":
            return self._items(self._sign)
        return self._items(top - 1) if self.specials == "powers" else ()

    @property
    def _sign(self) -> int:
        return 1 << (self.bits - 1) if self.signed else 0

    def _items(self, *codes: int) -> tuple[int, ...]:
        return tuple(code << self.unused_low_bits for code in codes)


class Formats(Mapping[str, Format]):
    """All formats by name, in the table's order.

    You can also look up a format by a short name, in capitals or not, and by a dtype or
    scalar type, including those of ml_dtypes.
    """

    def __init__(self, rows: list[Format]) -> None:
        self._rows: dict[str, Format] = {row.name: row for row in rows}

    def __getitem__(self, which: object) -> Format:
        try:
            return find(which)
        except TypeError as error:
            raise UnknownFormat(*error.args) from None

    def __contains__(self, which: object) -> bool:
        if isinstance(which, str):
            return canonical(which) in self._rows
        return super().__contains__(which)

    def __iter__(self) -> Iterator[FormatName]:
        return (row.name for row in self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def known(self) -> list[str]:
        """Return all names, the short ones last."""
        short = [alias for row in self._rows.values() for alias in row.aliases]
        return [*self._rows, *short]

    def __repr__(self) -> str:
        return f"<formats: {', '.join(self._rows)}>"


class UnknownFormat(KeyError, ValueError):
    """The error for a name that is not the name of a format."""

    def __str__(self) -> str:
        return str(self.args[0])


def _rows() -> list[Format]:
    return [
        Format(aliases=ALIASES.get(name, ()), type=scalar, **_core.facts(index))
        for index, (name, scalar) in enumerate(
            zip(_core.names, _core.scalar_types, strict=True)
        )
    ]


formats: Formats = Formats(_rows())
#: The formats by their dtypes.
formats_by_dtype = {form.dtype: form for form in formats._rows.values()}


def find(which: object, argument: str = "format") -> Format:
    """Return the format of a name, dtype or scalar type.

    Parameters
    ----------
    which : str, dtype, type or Format
        A full or short name, a dtype of this package or of ml_dtypes, or a scalar
        type. Names always mean the formats of this package.
    argument : str
        The name of the argument, for the error.

    Raises
    ------
    ValueError
        For an unknown name; the error shows the nearest names.
    TypeError
        For a dtype that is none of these formats.
    """
    if isinstance(which, Format):
        return which
    if isinstance(which, str):
        row = formats._rows.get(canonical(which))
        if row is not None:
            return row
        raise UnknownFormat(
            one_of(argument, which, formats.known(), "td.formats", cure(which))
        )
    try:
        own = _own_dtype(np.dtype(which)).type  # type: ignore[call-overload]
    except TypeError:
        own = None
    if own in _core.scalar_types:
        return formats[own.__name__]
    raise TypeError(f"{argument} must be one of td.formats; got {brief(which)}")


def find_dtype(which: object) -> np.dtype[Any]:
    """Return the dtype of a format, or NumPy's own dtype.

    Names mean the formats of this package first, as for `find`, then NumPy's dtypes.
    ml_dtypes' dtypes become those of this package.

    Raises
    ------
    TypeError
        For an argument that is not a dtype.
    """
    wanted = which
    if isinstance(which, str):
        name = canonical(which)
        if name in _core.names:
            return formats[name].dtype
        wanted = name if name in NUMPY_ALIASES else which
    try:
        return _own_dtype(np.dtype(wanted))  # type: ignore[call-overload]
    except TypeError:
        listing = "td.formats or NumPy's dtypes"
        raise TypeError(one_of("dtype", which, formats.known(), listing)) from None


def format_of_dtype(dtype: np.dtype[Any]) -> Format | None:
    """Return the format of one of this package's dtypes; None for any other dtype."""
    return formats_by_dtype.get(dtype)


def as_own(x: Any) -> Any:
    """Return arrays of others under this package's dtypes.

    These are arrays of ml_dtypes' types, in fields too, and PyTorch tensors, which
    become arrays. Anything else is returned unchanged.
    """
    if not isinstance(x, np.ndarray | np.generic):
        return _core.viewed(x)
    own = _own_dtype(x.dtype)
    return x if own is x.dtype else np.asanyarray(x).view(own)


def own_array(x: Any) -> NDArray[Any]:
    """Return the array of an array_like, under this package's dtypes.

    The dtypes are those of `as_own`, also for lists and for objects with ``__array__``.
    """
    array: NDArray[Any] = as_own(np.asarray(as_own(x)))
    return array


def with_items(
    dtype: np.dtype[Any], change: Callable[[np.dtype[Any]], np.dtype[Any]]
) -> np.dtype[Any]:
    """Change the items of a dtype, in fields and subarrays too.

    If nothing changes, the same dtype is returned.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        item = with_items(base, change)
        return dtype if item is base else np.dtype((item, shape))
    if not dtype.names or dtype.fields is None:
        return change(dtype)
    fields = [dtype.fields[name] for name in dtype.names]
    items = [with_items(field[0], change) for field in fields]
    if all(item is field[0] for item, field in zip(items, fields, strict=True)):
        return dtype
    facts: Any = {
        "names": dtype.names,
        "formats": items,
        "offsets": [field[1] for field in fields],
        "titles": [field[2] if len(field) == 3 else None for field in fields],
        "itemsize": dtype.itemsize,
    }
    structure: np.dtype[Any] = np.dtype(facts, align=dtype.isalignedstruct)
    return structure


def _own_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    kind: Any = dtype.type
    if kind is np.void and (dtype.names or dtype.subdtype):
        return with_items(dtype, _own_dtype)
    own = _own_of_type(kind)
    return dtype if own is None else own


@lru_cache(maxsize=256)
def _own_of_type(kind: Any) -> np.dtype[Any] | None:
    """This package's dtype for a type of ml_dtypes; None for other types."""
    if kind.__module__.partition(".")[0] == "ml_dtypes" and kind.__name__ in formats:
        return formats[kind.__name__].dtype
    return None
