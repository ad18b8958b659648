"""Python objects, strings and complex numbers in calls with our formats.

Each outcome is float16's: the class of the result, its dtype and its numbers, or the
exception.
"""

from __future__ import annotations

import array
import datetime
import enum
import gc
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

TYPES = [f.type for f in td.formats.values()]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=list(td.formats))


class WithFloat:
    def __float__(self) -> float:
        return 2.0


class WithIndex:
    def __index__(self) -> int:
        return 2


class WithArray:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values)


class BadFloat:
    def __float__(self) -> float:
        return "2"  # type: ignore[return-value]


class Two(enum.IntEnum):
    TWO = 2


# The numbers are 1, 2 and 4, which every format has.
OBJECTS: dict[str, Any] = {
    "int": 2,
    "float": 2.0,
    "bool": True,
    "Fraction": Fraction(2),
    "Decimal": Decimal(2),
    "enum": Two.TWO,
    "None": None,
    "str": "2",
    "bytes": b"2",
    "no number": "two",
    "empty": "",
    "list": [1, 2, 4],
    "short list": [1],
    "tuple": (1, 2, 4),
    "no list": [],
    "nested": [[1, 2, 4]],
    "ragged": [[1], [2, 4]],
    "dict": {},
    "set": {1},
    "range": range(1, 4),
    "buffer": array.array("f", [1, 2, 4]),
    "object": object(),
    "class": int,
    "date": datetime.date(2020, 1, 1),
    "WithFloat": WithFloat(),
    "WithIndex": WithIndex(),
    "WithArray": WithArray([1.0, 2.0, 4.0]),
    "WithArray of one": WithArray(2.0),
    "BadFloat": BadFloat(),
    "longdouble": np.longdouble(2),
    "int64": np.int64(2),
    "complex64": np.complex64(2),
    "bool_": np.True_,
    "timedelta64": np.timedelta64(2, "s"),
    "void": np.void(b"ab"),
    "no dimension": np.array(2.0),
    "object of no dimension": np.array(2.0, object),
    "one element": np.array([2.0]),
    "float64s": np.array([1.0, 2.0, 4.0]),
    "bytes swapped": np.array([1, 2, 4], ">f4"),
    "complex64s": np.array([1, 2, 4], "c8"),
    "bools": np.array([True, True, True]),
    "objects": np.array([1, 2.0, Fraction(4)], object),
    "objects with None": np.array([1, None, 4], object),
    "texts": np.array(["1", "2", "4"]),
    "bytes of text": np.array([b"1", b"2", b"4"]),
    "objects that are texts": np.array(["1", "2", "4"], object),
    "structured": np.ones(3, "f4,f4"),
    "masked": np.ma.array([1.0, 2.0, 4.0], mask=[0, 1, 0]),
    "masked constant": np.ma.masked,
    "matrix": np.matrix([1.0, 2.0, 4.0]),
}


def changed(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that makes three ones, changes the array, and returns it."""

    def apply(scalar_type: Any, value: Any) -> Any:
        x = np.ones(3, scalar_type)
        change(x, value)
        return x

    return apply


USES: dict[str, Callable[[Any, Any], Any]] = {
    "T(x)": lambda t, x: t(x),
    "array": lambda t, x: np.array(x, t),
    "array of it": lambda t, x: np.array([x], t),
    "astype": lambda t, x: np.array(x, object).astype(t),
    "full": lambda t, x: np.full(3, x, t),
    "structured": lambda t, x: np.array([(x, 1)], [("a", t), ("b", "i4")])["a"],
    "element": changed(lambda a, x: a.__setitem__(1, x)),
    "elements": changed(lambda a, x: a.__setitem__([0, 2], x)),
    "all": changed(lambda a, x: a.__setitem__(..., x)),
    "fill": changed(lambda a, x: a.fill(x)),
    "put": changed(lambda a, x: a.put([0, 2], x)),
    "flat": changed(lambda a, x: a.flat.__setitem__(slice(None), x)),
    "copyto": changed(lambda a, x: np.copyto(a, x, casting="same_kind")),
    "putmask": changed(lambda a, x: np.putmask(a, [1, 0, 1], x)),
    "add.at": changed(lambda a, x: np.add.at(a, [0, 1], x)),
    "where": lambda t, x: np.where([1, 0, 1], np.ones(3, t), x),
    "append": lambda t, x: np.append(np.ones(3, t), x),
    "insert": lambda t, x: np.insert(np.ones(3, t), 1, x),
    "concatenate": lambda t, x: np.concatenate([np.ones(3, t), x]),
    "beside": lambda t, x: np.array([t(1), x]),
    "beside, first": lambda t, x: np.array([x, t(1)]),
    "==": lambda t, x: np.ones(3, t) == x,
    "== scalar": lambda t, x: t(1) == x,
    "<": lambda t, x: np.ones(3, t) < x,
    "+": lambda t, x: np.ones(3, t) + x,
    "add": lambda t, x: np.add(x, np.ones(3, t)),
    "sum": lambda t, x: np.ones(3, t).sum(initial=x),
    "max": lambda t, x: np.ones(3, t).max(initial=x),
    "promotion": lambda t, x: np.result_type(np.ones(3, t), x),
}
# Other tests have arrays of objects, where a Fraction meets a scalar or a Python float.
MIXED = {"Fraction", "Decimal", "ragged"} | {x for x in OBJECTS if "object" in x}
# float16 converts these to NaN.
NAN = {"None", "objects with None", "masked constant"}
ARITHMETIC = {"+", "add", "<", "sum", "max", "add.at", "==", "== scalar", "promotion"}


@pytest.fixture(autouse=True)
def _no_garbage_of_others() -> Iterator[None]:
    """Collect no garbage during a test: files of other tests would warn."""
    gc.disable()
    yield
    gc.enable()


def outcome(use: Callable[[Any, Any], Any], scalar_type: Any, value: Any) -> Any:
    """Return class, dtype ("T" for float16 or ours) and numbers, or the exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = use(scalar_type, value)
        except Exception as error:
            kinds = [c for c in type(error).__mro__ if c.__module__ == "builtins"]
            return kinds[0].__name__
    told = {w.category.__name__ for w in caught} - {"RuntimeWarning"}
    dtype = got if isinstance(got, np.dtype) else getattr(got, "dtype", None)
    own = "T" if dtype == np.dtype(scalar_type) else str(dtype)
    kind = type(got).__name__
    if isinstance(got, scalar_type):
        kind = "T"
    elif isinstance(got, np.dtype):
        return own
    numbers = np.asarray(got).tolist()
    if dtype is not None and dtype.kind == "O":
        numbers = None
    elif own == "T":
        numbers = np.asarray(got).astype(float).tolist()
    return kind, own, getattr(got, "shape", None), repr(numbers), sorted(told)


# The others do not have the number 5, and E8M0 has no zero.
EXACT = [t for t in TYPES if t not in (td.float8_e8m0fnu, td.float4_e2m1fn)]


@pytest.mark.parametrize("use", USES)
def test_every_object(use: str) -> None:
    faults = []
    for name in OBJECTS:
        if use in ARITHMETIC and name in MIXED:
            continue
        want = outcome(USES[use], np.float16, OBJECTS[name])
        for scalar_type in EXACT:
            if name in NAN and not td.formats[scalar_type.__name__].has_nan:
                continue
            got = outcome(USES[use], scalar_type, OBJECTS[name])
            if got != want:
                own = scalar_type.__name__
                faults.append(f"{own}, {name}: {got}, float16 {want}")
    assert not faults, "\n".join(faults)


@each_type
def test_none_is_nan(scalar_type: Any) -> None:
    """Convert None to NaN, or, without NaN, to zero and report invalid."""
    made = [
        lambda: scalar_type(None),
        lambda: np.array([None], scalar_type)[0],
        lambda: np.array([None], object).astype(scalar_type)[0],
    ]
    for make in made:
        if td.formats[scalar_type.__name__].has_nan:
            assert np.isnan(make())
        else:
            with pytest.warns(RuntimeWarning, match="invalid"):
                assert make() == 0


@each_type
def test_complex_scalars_warn(scalar_type: Any) -> None:
    """Warn also for real components that float64 does not have; round them once."""
    for wide in (np.complex64, np.complex128, np.clongdouble):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert scalar_type(wide(2 + 1j)) == 2
        with pytest.warns(np.exceptions.ComplexWarning):
            record = np.array([(wide(2),)], [("a", scalar_type)])
        assert record["a"][0] == 2
    for make in (scalar_type, lambda x: np.array([(x,)], [("a", scalar_type)])):
        with pytest.raises(TypeError, match=r"complex.*use 2j.real"):
            make(2j)


@each_type
def test_text_is_no_operand(scalar_type: Any) -> None:
    """Store a string and a number in a common dtype, but have no loop for them."""
    x = np.ones(3, scalar_type)
    assert np.result_type(scalar_type, "U4") == np.dtype("U32")
    assert np.result_type("S40", scalar_type) == np.dtype("S40")
    assert np.concatenate([x, ["two"]]).tolist() == [*x.astype(str), "two"]
    for text in ("1", np.array(["1"] * 3)):
        assert (x == text).tolist() == np.asarray(text == x).tolist() == [False] * 3
        assert (x != text).tolist() == [True] * 3
    for ufunc in (np.add, np.less, np.maximum, np.hypot, np.matmul):
        for operands in ((x, "1"), ("1", x), (x, np.array([b"1"] * 3))):
            with pytest.raises(TypeError):
                ufunc(*operands)


@each_type
def test_casts_to_short_text_are_not_safe(scalar_type: Any) -> None:
    for kind in "US":
        assert np.can_cast(scalar_type, kind)
        assert np.can_cast(scalar_type, f"{kind}32")
        assert not np.can_cast(scalar_type, f"{kind}4")
        assert np.can_cast(scalar_type, f"{kind}4", "same_kind")
    assert np.can_cast(scalar_type, np.dtypes.StringDType())
