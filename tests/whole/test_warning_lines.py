"""Every warning shows the line that called the package, and no warning is needless."""

from __future__ import annotations

import ast
import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.paths import ROOT
from tests.ufuncs import numpy_surface
from tests.ufuncs.numpy_surface_table import CHAINED, ROUNDED

PACKAGE = os.path.dirname(td.__file__) + os.sep


def warned(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return found


HUGE = np.full((32, 32), 1e30, np.float32)
WIDE = np.full((32, 32), 1e300)
NARROW = np.full((4, 4), 400, td.float8_e4m3fn)
BF16 = np.full((4, 4), 3e38, td.bfloat16)
BLOCKS = td.blocks.quantize(HUGE / 10, "mxfp8_e4m3")
TILES = td.blocks.quantize_tiles(np.full((256, 256), 1e30, np.float32))
E4M3 = np.empty((32, 32), td.float8_e4m3fn)

#: Calls that raise a floating-point error, by the function that warns.
CALLS: dict[str, Callable[[], Any]] = {
    "quantize": lambda: td.quantize(HUGE, "fp8_e4m3"),
    "quantize out": lambda: td.quantize(HUGE, "fp8_e4m3", out=E4M3),
    "quantize NaN": lambda: td.quantize(np.nan, "fp4"),
    "scalar": lambda: td.float8_e4m3fn(1e9),
    "array": lambda: np.array([1e9], td.float8_e4m3fn),
    "astype": lambda: HUGE.astype(td.float8_e4m3fn),
    "ufunc": lambda: NARROW + NARROW,
    "scalars": lambda: NARROW[0, 0] * NARROW[0, 0],
    "@": lambda: NARROW @ NARROW,
    "np.inner": lambda: np.inner(NARROW, NARROW),
    "np.einsum": lambda: np.einsum("ij,jk", NARROW, NARROW),
    "np.einsum of one": lambda: np.einsum("ij->", NARROW),
    "np.einsum unsafe": lambda: np.einsum(
        "ij->ij", HUGE, dtype=td.float8_e4m3fn, casting="unsafe"
    ),
    "np.sum": lambda: np.sum(NARROW),
    "sum": lambda: NARROW.sum(0),
    "np.prod": lambda: np.prod(NARROW),
    "np.add.reduceat": lambda: np.add.reduceat(NARROW[0], [0, 2]),
    "np.cumsum": lambda: np.cumsum(NARROW[0]),
    "np.var": lambda: np.var(np.array([-400, 400], td.float8_e4m3fn)),
    "np.linalg.norm": lambda: np.linalg.norm(NARROW),
    "np.mean dtype": lambda: np.mean(BF16, dtype=td.float8_e4m3fn),
    "np.mean out": lambda: np.mean(WIDE, 0, dtype=np.float32, out=HUGE[0].copy()),
    "np.median out": lambda: np.median(BF16, 0, out=E4M3[0, :4]),
    "td.einsum": lambda: td.einsum("ij,jk", NARROW, NARROW),
    "td.einsum out": lambda: td.einsum("ij->ij", HUGE, out=E4M3),
    "td.matmul": lambda: td.matmul(HUGE, HUGE, precision="bf16"),
    "td.matmul of formats": lambda: td.matmul(NARROW, NARROW),
    "td.matmul dtype": lambda: td.matmul(NARROW, NARROW, dtype=np.float16),
    "td.matmul narrow": lambda: td.matmul(
        HUGE / 1e20, HUGE / 1e20, precision="bf16", dtype=np.float16
    ),
    "blocks.matmul": lambda: td.blocks.matmul(BLOCKS, HUGE),
    "blocks.matmul dtype": lambda: td.blocks.matmul(
        BLOCKS, HUGE / 1e29, dtype=np.float16
    ),
    "blocks @": lambda: BLOCKS @ HUGE,
    "blocks.dequantize": lambda: BLOCKS.dequantize(np.float16),
    "np.asarray of blocks": lambda: np.asarray(BLOCKS, np.float16),
    "np.asarray of blocks, int": lambda: np.asarray(BLOCKS, np.int8),
    "tiles.dequantize": lambda: TILES.dequantize(np.float16),
    "arithmetic": lambda: in_arithmetic(lambda: HUGE + HUGE),
    "arithmetic of scalars": lambda: in_arithmetic(lambda: HUGE[0, 0] + HUGE[0, 0]),
    "arithmetic of copies": lambda: in_arithmetic(lambda: np.cumsum(HUGE[0, :1])),
    "matmul_precision": lambda: in_bf16(lambda: HUGE @ HUGE),
    "matmul_precision dot": lambda: in_bf16(lambda: np.dot(HUGE[0], HUGE[0])),
}


OF_NUMPY = (
    "np.cumsum",
    "np.var",
    "np.mean dtype",
    "np.mean out",
    "arithmetic of copies",
)


def in_arithmetic(compute: Callable[[], Any]) -> Any:
    with td.arithmetic("float8_e5m2"):
        return compute()


def in_bf16(compute: Callable[[], Any]) -> Any:
    with td.matmul_precision("bf16"):
        return compute()


@pytest.mark.parametrize("name", CALLS)
def test_floating_point_errors(name: str) -> None:
    found = warned(CALLS[name])
    assert found
    assert all("encountered in" in str(x.message) for x in found)
    if name in OF_NUMPY:  # a Python function of NumPy, whose line is shown
        assert all(os.sep + "numpy" + os.sep in x.filename for x in found)
    else:
        assert {x.filename for x in found} == {__file__}
        first = CALLS[name].__code__.co_firstlineno
        lines = range(first, first + 4)
        assert "arithmetic" in name or all(x.lineno in lines for x in found)


@pytest.mark.parametrize("mode", ["ignore", "raise", "call"])
@pytest.mark.parametrize("name", ["quantize", "td.einsum", "np.einsum", "np.var"])
def test_errstate_decides(name: str, mode: Any) -> None:
    seen: list[Any] = []
    with np.errstate(all=mode, call=lambda *what: seen.append(what)):
        if mode == "raise":
            with pytest.raises(FloatingPointError, match="overflow encountered in"):
                CALLS[name]()
        else:
            assert not warned(CALLS[name])
    assert bool(seen) is (mode == "call")


def test_saturating_is_no_overflow() -> None:
    for form in td.formats:
        for x in (1e300, -1e300, np.inf, HUGE, BF16):
            found = warned(lambda x=x, f=form: td.quantize(x, f, overflow="saturate"))
            is_of_scales = form == "float8_e8m0fnu" and bool(np.any(np.asarray(x) < 0))
            assert bool(found) is is_of_scales, (form, x)


def raised_at(call: Callable[[], Any]) -> Iterator[str]:
    for one in warned(call):
        if one.filename.startswith(PACKAGE):
            yield f"{one.filename}:{one.lineno}: {one.message}"


@pytest.mark.once
@pytest.mark.parametrize("scale", [1, 150, np.inf, 2.0**-6])
def test_functions_of_numpy(scale: float) -> None:
    """Show no line of this package for any function of the surface."""
    letters = numpy_surface.letters(td.float8_e4m3fn)
    with np.errstate(all="ignore"):
        for key, value in letters.items():
            if isinstance(value, np.ndarray) and value.dtype == td.float8_e4m3fn:
                letters[key] = (value.astype("f8") * scale).astype(value.dtype)
    found = set()
    for prefix, entries in [*ROUNDED.items(), *CHAINED.items()]:
        for name, written in entries.items():
            f = getattr(numpy_surface.namespace(prefix), name, None)
            if f is None or prefix.startswith("np.random"):
                continue
            for one in (written,) if isinstance(written, str) else written:
                names = {
                    key: np.copy(x) if isinstance(x, np.ndarray) else x
                    for key, x in letters.items()
                } | {"f": f}
                found.update(raised_at(lambda e=one, n=names: tried(e, n)))
    assert not found


def tried(expression: str, names: dict[str, Any]) -> None:
    with contextlib.suppress(Exception):  # tests/ufuncs checks these exceptions
        eval(expression, names)


def test_raw_bytes(tmp_path: Path) -> None:
    raw = np.zeros(3, "V1")
    np.save(tmp_path / "raw.npy", raw)
    np.savez(tmp_path / "raw.npz", raw=raw)
    with (
        open(tmp_path / "raw.npy", "rb") as stream,
        td.load(tmp_path / "raw.npz") as archive,
    ):
        for call in (
            lambda: td.load(tmp_path / "raw.npy"),
            lambda: td.load(stream),
            lambda: archive["raw"],
            lambda: dict(archive),
        ):
            (found,) = warned(call)
            assert found.filename == __file__


def test_only_one_function_warns() -> None:
    """Warn in one function, as `stacklevel` would depend on the path of calls."""
    for path in Path(PACKAGE).rglob("*.py"):
        names = {
            node.attr for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            and node.value.id == "warnings"
        }  # fmt: skip
        own = {"warn", "warn_explicit"} if path.name != "caller.py" else {"warn"}
        assert not names & own, path.relative_to(ROOT)
