"""Call every NumPy name with arrays of a scalar type and judge the results.

The rule is "as float16". If float16's result has float16, the result of the type under
test must have this type. If float16's result has another dtype, or an error, the type
must do the same. The values must be those of the same call on float64.
`numpy_surface_exceptions` has the exceptions from this rule, each with its reason.

The letters in the expressions of `numpy_surface_table` are: `a`, `b` vectors of six;
`m` 3 x 4, `q` 3 x 3 positive definite, `c` 2 x 2 x 4, `u` in (0, 1); `nan` with NaN,
infinities and both zeros, `nan1` with one NaN; `z` of no dimension, `s` a scalar, `i`
integers, `mask` booleans, `x`, `y` masked `a`, `m`, `r` structured, `V` an array of the
type. Their values are exact in every format with four significant bits.
"""

from __future__ import annotations

import functools
import io
import operator
import os
import pickle
import re
import tempfile
import types
import warnings
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import numpy as np

from tests.support import oracle
from tests.ufuncs.numpy_surface_exceptions import EXCEPTIONS, Exempt
from tests.ufuncs.numpy_surface_table import (
    CHAINED,
    LIKE,
    MOVES,
    NOTHING,
    ROUNDED,
    Table,
)

umath = np._core.umath  # type: ignore[attr-defined]


# -- names ---------------------------------------------------------------------


GROUPS: dict[str, Table] = {
    "like": LIKE,
    "moves": MOVES,
    "rounded": ROUNDED,
    "chained": CHAINED,
}


def namespace(prefix: str) -> Any:
    if prefix == "ndarray.":
        return np.ndarray
    if prefix == "np.random.Generator.":
        return np.random.default_rng(1)
    return functools.reduce(getattr, prefix.rstrip(".").split(".")[1:], np)


def _load_modules() -> None:
    import numpy.lib.array_utils
    import numpy.lib.format
    import numpy.lib.introspect
    import numpy.lib.mixins
    import numpy.lib.npyio
    import numpy.lib.recfunctions
    import numpy.lib.stride_tricks
    import numpy.lib.user_array
    import numpy.polynomial
    import numpy.testing  # noqa: F401


_load_modules()


def names(prefix: str) -> list[str]:
    """Return public callables of a namespace (of ndarray, every attribute)."""
    where = namespace(prefix)
    listed = dir(where) if prefix == "np." else getattr(where, "__all__", dir(where))
    if prefix == "ndarray.":
        return [name for name in dir(where) if "_" not in name[:1]] + [
            name for name in dir(where) if name.startswith("__")
        ]
    found = []
    for name in sorted(set(listed)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(where, name, None)
        other = isinstance(value, (types.ModuleType, np.ufunc))
        if not name.startswith("_") and callable(value) and not other:
            found.append(name)
    return found


def rows(prefix: str) -> list[str]:
    """Return the names in the tables, once per occurrence."""
    decided = [name for part in GROUPS.values() for name in part.get(prefix, {})]
    return decided + " ".join(NOTHING[prefix].values()).split()


def undecided(prefix: str) -> list[str]:
    """Return names that are in no table and are not aliases of a name in one."""
    where = namespace(prefix)
    known = set(rows(prefix))
    objects = {
        id(getattr(where, name))
        for name in known
        if prefix != "ndarray." and hasattr(where, name)
    }
    left = []
    for name in names(prefix):
        if name not in known and id(getattr(where, name)) not in objects:
            left.append(name)
    return left


PREFIXES = tuple(NOTHING)


# -- ufuncs --------------------------------------------------------------------

STRING_UFUNCS = set(
    """_center _expandtabs _expandtabs_length _ljust _lstrip_chars _lstrip_whitespace
    _partition _partition_index _replace _rjust _rpartition _rpartition_index
    _rstrip_chars _rstrip_whitespace _slice _strip_chars _strip_whitespace _zfill count
    endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace
    istitle isupper rfind rindex startswith str_len""".split()
)
# Arguments of ufuncs that cannot be called as f(a) or f(a, b).
UFUNC_ARGUMENTS = {
    "arccos": "u",
    "arcsin": "u",
    "arctanh": "u",
    "arccosh": "a + 1",
    "clip": "a, T(0.5), T(2)",
    "ldexp": "a, i",
    "matmul": "m, m.T",
    "matvec": "m, m[0]",
    "vecmat": "m[:, 0], m",
    "vecdot": "m, m",
}
UFUNCS = sorted(
    {
        ufunc.__name__: name
        for where in (np, umath)
        for name in dir(where)
        if isinstance(ufunc := getattr(where, name), np.ufunc)
    }.values()
)


def ufunc_expressions(name: str) -> dict[str, tuple[str, ...]]:
    """Return expressions for f = the ufunc, by their rule of judgment."""
    ufunc = getattr(umath, name, None) or getattr(np, name)
    arguments = UFUNC_ARGUMENTS.get(ufunc.__name__, "a, b" if ufunc.nin == 2 else "a")
    calls = [f"f({arguments})"]
    if ufunc.signature is None:
        calls += [
            f"f({arguments}, where=mask)[mask]" if ufunc.nout == 1 else calls[0],
            f"f({arguments}, dtype=d)" if ufunc.nout == 1 else calls[0],
        ]
    if ufunc.nout == 1:
        calls.append(f"f({arguments}, out=np.empty_like(f({arguments})))")
        calls.append(f"f({', '.join(f'({x})[::-1]' for x in arguments.split(', '))})")
    methods = []
    if ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None:
        calls.append("f(a, 2)")
        calls.append("f(1.5, a)")
        calls.append("f(a, True)")
        methods = [
            "f.reduce(a)",
            "f.reduce(m, axis=0)",
            "f.reduce(m, axis=None)",
            "f.accumulate(a)",
            "f.reduceat(a, [0, 3, 1])",
            "f.outer(a, b)",
            "after(f.at, a, [0, 2], b[:2])",
        ]
    if name == "ldexp":  # the second argument is an integer
        methods = []
        calls = [call for call in calls if "dtype=d" not in call and "-1" not in call]
    return {"ufunc": tuple(dict.fromkeys(calls)), "method": tuple(methods)}


# -- evaluation ----------------------------------------------------------------


def _after(function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the first argument after `function` wrote into it."""
    x = x.copy()
    result = function(x, *args, **kwargs)
    return x if result is None else result


def _through_file(a: np.ndarray, use: Callable[[str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data")
        a.tofile(path)
        return np.array(use(path))


def _through_save(save: Any, load: Any, a: np.ndarray) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(
            folder, "data" + (".npz" if save is not np.save else ".npy")
        )
        save(path, a)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded = load(path)
        if isinstance(loaded, np.ndarray):
            return np.array(loaded)
        with loaded:
            return loaded["arr_0"]


def _through_memmap(memmap: Any, a: np.ndarray) -> np.ndarray:
    def use(path: str) -> np.ndarray:
        mapped = memmap(path, dtype=a.dtype, mode="r+", shape=a.shape)
        mapped[0] = mapped[1]
        return np.array(mapped)

    return _through_file(a, use)


def _through_write(write: Any, a: np.ndarray) -> Any:
    stream = io.BytesIO()
    write(stream, a)
    stream.seek(0)
    return np.lib.format.read_array(stream)


def letters(scalar_type: Any, wanted: Container[str] | None = None) -> dict[str, Any]:
    """Return the names that expressions use, with arrays of `scalar_type`: the `wanted`
    ones, or all of them."""

    def vector(values: Any) -> np.ndarray:
        return np.array(values, dtype=np.float64).astype(scalar_type)

    def a() -> np.ndarray:
        return vector([0.5, 1.5, 2, 3, 0.25, 1])

    def m() -> np.ndarray:
        return vector([[1, 2, 0.5, 3], [0.25, 1.5, 4, 1], [2, 0.75, 1, 0.5]])

    def mask() -> np.ndarray:
        return np.array([True, False, True, True, False, True])

    def r() -> np.ndarray:
        found = np.zeros(6, dtype=[("k", "i2"), ("x", scalar_type)])
        found["k"], found["x"] = np.arange(6), a()
        return found

    arrays: dict[str, Callable[[], Any]] = {
        "a": a,
        "b": lambda: vector([1, 0.5, 3, 2, 1.75, 0.25]),
        "m": m,
        "q": lambda: vector([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]]),
        "c": lambda: vector([[[1, 2, 0.5, 3], [0.5, 1, 1.5, 2]]] * 2),
        "u": lambda: vector([0.5, 0.25, 0.75, 0.125, 0.875, 0.375]),
        "nan": lambda: vector([2, np.nan, -0.0, 1, 0, -1, np.nan, 3]),
        "nan1": lambda: vector([2, np.nan, 1, 3]),
        "z": lambda: vector(1.5),
        "s": lambda: scalar_type(1.5),
        "i": lambda: np.array([2, 0, 1, 3, 5, 4]),
        "mask": mask,
        "x": lambda: np.ma.array(a(), mask=~mask()),
        "y": lambda: np.ma.array(m(), mask=[[0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]),
        "r": r,
    }
    others = {
        "np": np,
        "T": scalar_type,
        "V": vector,
        "d": np.dtype(scalar_type),
        "after": _after,
        "copyto": np.copyto,
        "text": lambda lines: io.StringIO("\n".join(lines)),
        "bytes_of": lambda array: np.dtype(f"u{array.itemsize}"),
        "through_file": _through_file,
        "through_save": _through_save,
        "through_memmap": _through_memmap,
        "through_write": _through_write,
        "operator": operator,
        "pickle": pickle,
    }
    made = {
        name: make() for name, make in arrays.items() if not wanted or name in wanted
    }
    return others | made


@functools.cache
def words(expression: str) -> frozenset[str]:
    """Return the names in an expression, and other words."""
    return frozenset(re.findall(r"\w+", expression))


def evaluate(f: Any, expression: str, scalar_type: Any) -> Any:
    """Return the value of the expression, or the exception that it raised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            names = letters(scalar_type, words(expression))
            return eval(expression, names | {"f": f})
        except Exception as error:
            return error


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, leaf) of nested results; a leaf is an array or a plain object."""
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value)
        yield path + ".mask", np.asarray(mask)
        yield path + ".data", np.asarray(value.data)[~mask]
    elif isinstance(value, np.void) and value.dtype.names:
        yield from leaves(value.item(), path)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield path, np.asarray(value)
    elif isinstance(value, (tuple, list)):
        yield path, len(value)
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    elif isinstance(value, dict):
        yield path, sorted(map(str, value))
        for key in sorted(value, key=str):
            yield from leaves(value[key], f"{path}[{key!r}]")
    else:
        yield path, value


# -- judgment -----------------------------------------------------------------


def exemption(name: str, expression: str, scalar_type: Any) -> Exempt | None:
    found = EXCEPTIONS.get(f"{name}:{expression}", EXCEPTIONS.get(name))
    if scalar_type is np.float16 and found and found.outcome != "own":
        return None  # the rule itself
    if found and found.formats and np.dtype(scalar_type).name not in found.formats:
        return None
    return found


def _numbers(text: str) -> list[float]:
    text = re.sub(r"dtype='?\w+", "", text)
    found = re.findall(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)", text)
    return [float(x) for x in found]


def _close(got: Any, exact: Any, how: str, name: str) -> bool:
    """Return whether values of type `name` (or wider) are near enough to `exact`."""
    got = np.asarray(got).astype(np.complex128 if np.iscomplexobj(got) else float)
    exact = np.asarray(exact)
    if how == "moves":
        return bool(np.all(oracle.same(got.real, exact.real)))
    if how == "rounded" and not np.iscomplexobj(got):
        return bool(np.all(oracle.same(got, oracle.round_to(name, exact))))
    size = np.max(np.abs(exact[np.isfinite(exact)]), initial=0.0)
    allowed = (4 if how == "chained" else 0.51) * oracle.eps(name) * size
    both = (np.isnan(got) & np.isnan(exact)) | (got == exact)
    with np.errstate(all="ignore"):
        return bool(np.all(both | (np.abs(got - exact) <= allowed)))


def _like(half: Any, scalar_type: Any) -> Any:
    """Replace float16 by the type under test in a dtype or scalar type."""
    if isinstance(half, np.dtype) and half.names:
        fields = half.fields or {}
        return [(name, _like(fields[name][0], scalar_type)) for name in half.names]
    if half == np.float16:
        return np.dtype(scalar_type)
    return half


def _class(error: Exception) -> str:
    """Return the name of the first builtin class of the exception."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def judge(
    find: Callable[[], Any],
    expression: str,
    how: str,
    scalar_types: Iterable[Any],
    name: str,
) -> list[str]:
    """Return the faults of an expression, one for each type with a fault.

    `find` returns the value of `f`, again for each evaluation. `how` is a key of
    `GROUPS`, or "ufunc" or "method". The reference of these two is longdouble, as
    NumPy's float64 `reduce` of arctan2 and power is wrong on CPUs with AVX512.
    """
    half = evaluate(find(), expression, np.float16)
    wide = np.longdouble if how in ("ufunc", "method") else np.float64
    exact = half if how == "like" else evaluate(find(), expression, wide)
    faults = []
    for scalar_type in scalar_types:
        got = evaluate(find(), expression, scalar_type)
        fault = _judge_one(got, half, exact, expression, how, scalar_type, name)
        if fault:
            faults.append(f"{name}, {scalar_type.__name__}: {expression} -> {fault}")
    return faults


def _judge_one(
    got: Any,
    half: Any,
    exact: Any,
    expression: str,
    how: str,
    scalar_type: Any,
    name: str,
) -> str:
    """Return '' if a type's result is like float16's, else the fault."""
    exempt = exemption(name, expression, scalar_type)
    raises = f"raises {_class(half)}" if isinstance(half, Exception) else ""
    if exempt and exempt.outcome.startswith("raises"):
        raises = exempt.outcome
    if raises or isinstance(got, Exception):
        found = f"raises {_class(got)}" if isinstance(got, Exception) else "works"
        return "" if found == raises else f"{found}, not {raises or 'works'}: {got}"
    if isinstance(exact, Exception):
        return f"the wide type raises: {exact!r}"
    how = {"ufunc": "rounded", "method": "chained", "like": "moves"}.get(how, how)
    found_leaves, half_leaves, exact_leaves = map(list, map(leaves, (got, half, exact)))
    if [p for p, _ in found_leaves] != [p for p, _ in half_leaves]:
        return f"another structure: {got!r}, not {half!r}"
    for (path, mine), (_, like), (_, true) in zip(
        found_leaves, half_leaves, exact_leaves, strict=True
    ):
        fault = _judge_leaf(mine, like, true, how, scalar_type, exempt)
        if fault:
            return f"{path or 'result'}: {fault}"
    return ""


def _judge_leaf(
    mine: Any, half: Any, exact: Any, how: str, scalar_type: Any, exempt: Exempt | None
) -> str:
    own, outcome = np.dtype(scalar_type), exempt.outcome if exempt else ""
    if outcome == "other":
        return ""
    if isinstance(half, (np.dtype, type, list)):
        expected = _like(half, scalar_type)
        if outcome == "bits":
            expected = np.dtype(f"V{own.itemsize}")
        return "" if mine == expected else f"{mine!r}, not {expected!r}"
    if outcome == "bits" and mine.dtype == f"V{own.itemsize}":
        mine = mine.view(own)
    if type(mine) is not type(half):
        return f"{type(mine).__name__}, not {type(half).__name__}"
    if isinstance(half, np.ndarray):
        expected = _like(half.dtype, scalar_type)
        if outcome.startswith("float") and half.dtype == np.float16:
            expected = np.dtype(outcome)
        if half.dtype.kind in "SU":
            expected = mine.dtype  # the width is that of the longest string
        if mine.dtype != expected:
            return f"dtype {mine.dtype}, not {expected}"
        if mine.shape != half.shape:
            return f"shape {mine.shape}, not {half.shape}"
        if outcome == "own":
            return ""
        if mine.dtype.kind in "SUTO" or mine.dtype.names:
            mine, exact = str(mine.tolist()), str(exact.tolist())
    if isinstance(mine, str):
        mine, exact = _numbers(mine), _numbers(exact)
        if len(mine) != len(exact):
            return f"{mine!r} is not like {exact!r}"
        right = _close(mine, exact, "chained", own.name)
    elif isinstance(mine, np.ndarray) and mine.dtype.kind not in "biu":
        other = how == "rounded" and mine.dtype != own
        right = _close(
            mine, exact, "chained" if other else how, "float32" if other else own.name
        )
    elif isinstance(mine, float):
        right = _close(mine, exact, how, own.name)
    else:
        right = np.array_equal(mine, exact)
    return "" if right else f"{mine!r} is not {exact!r}"
