"""Plans of ufuncs: a format at some call sites, or at all others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import rounded
from tf32dtype import _core
from tf32dtype._programs.plan_lines import Line
from tf32dtype._programs.plans import NONE, Plan, PlannedCallSite, plan_text

if not (_core.blas_available() and _core.frames_are_known()):
    pytest.skip("needs Linux, and CPython 3.11 to 3.14", allow_module_level=True)
pytestmark = pytest.mark.once

X = np.random.default_rng(0).normal(size=1000).astype("f4")


def doubled(x: Any) -> Any:
    return x + x


def tripled(x: Any) -> Any:
    return x * np.float32(3)


def summed(x: Any) -> Any:
    return x.sum(), x.mean(), np.cumsum(x)


def scaled(x: Any) -> Any:
    return np.float32(x[0]) * np.float32(1.1)


def line(function: str, text: str) -> Line:
    return Line(__file__, function, text)


LINES = {
    "doubled": line("doubled", "return x + x"),
    "tripled": line("tripled", "return x * np.float32(3)"),
    "summed": line("summed", "return x.sum(), x.mean(), np.cumsum(x)"),
    "scaled": line("scaled", "return np.float32(x[0]) * np.float32(1.1)"),
}


def plan(
    folder: Path, formats: dict[str, str], default: str | None = None, **others: Any
) -> Path:
    sites = [
        PlannedCallSite("", LINES[name], arithmetic=format)
        for name, format in formats.items()
    ]
    path = folder / "plan.toml"
    path.write_text(plan_text(Plan(tuple(sites), arithmetic=default, **others)))
    return path


def results() -> dict[str, bytes]:
    found = {}
    for function in (doubled, tripled, summed, scaled):
        found[function.__name__] = (
            b"".join(np.asarray(x).tobytes() for x in np.atleast_1d(function(X)))
            if function is not summed
            else b"".join(np.asarray(x).tobytes() for x in function(X))
        )
    return found


def test_only_the_planned_lines_round(tmp_path: Path) -> None:
    plain = results()
    with td.arithmetic("bf16"):
        low = results()
    assert all(plain[name] != low[name] for name in plain)
    for name in LINES:
        with td.arithmetic(plan=plan(tmp_path, {name: "bf16"})):
            assert results() == plain | {name: low[name]}
        with td.arithmetic(plan=plan(tmp_path, {name: NONE}, "bf16")):
            assert results() == low | {name: plain[name]}
    assert results() == plain


def test_each_line_has_its_own_format(tmp_path: Path) -> None:
    path = plan(tmp_path, {"doubled": "float8_e4m3fn", "tripled": "f16"})
    with td.arithmetic(plan=path):
        a, b = doubled(X), tripled(X)
    low = rounded(X, "float8_e4m3fn")
    assert (a == rounded(low + low, "float8_e4m3fn")).all()
    assert (b == rounded(rounded(X, "float16") * 3, "float16")).all()


def test_float64_is_the_plans(tmp_path: Path) -> None:
    x = X.astype("f8")
    with td.arithmetic(plan=plan(tmp_path, {"doubled": "bf16"})):
        assert (doubled(x) == x + x).all()
    with td.arithmetic(plan=plan(tmp_path, {"doubled": "bf16"}, float64=True)):
        found = doubled(x)
    low = rounded(x, "bfloat16")
    assert (found == rounded(low + low, "bfloat16")).all()


def test_threads(tmp_path: Path) -> None:
    plain = results()
    with td.arithmetic("bf16"):
        low = results()
    with (
        td.arithmetic(plan=plan(tmp_path, {"doubled": "bf16"})),
        ThreadPoolExecutor(4) as pool,
    ):
        for found in pool.map(lambda _: results(), range(40)):
            assert found == plain | {"doubled": low["doubled"]}


def test_figures_are_of_the_planned_lines(tmp_path: Path) -> None:
    with td.arithmetic(plan=plan(tmp_path, {"tripled": "bf16"}), watch=True):
        results()
    (site,) = td.arithmetic.call_sites()
    assert site["user"][2] == "tripled"
    assert site["results"] == X.size


def test_nested(tmp_path: Path) -> None:
    path = plan(tmp_path, {"doubled": "bf16"})
    with td.arithmetic(plan=path), td.arithmetic(plan=path):
        assert (doubled(X) != X + X).any()
        with pytest.raises(RuntimeError, match="inside of arithmetic\\(plan="):
            td.arithmetic("bf16").__enter__()
    assert "plan=" in repr(td.arithmetic(plan=path))


def test_what_is_wrong(tmp_path: Path) -> None:
    path = plan(tmp_path, {"doubled": "bf16"})
    with pytest.raises(ValueError, match=r"must not be given with a plan.*'bf16'"):
        td.arithmetic("bf16", plan=path)
    with pytest.raises(
        ValueError, match=r"must not be given with a plan.*float64=True"
    ):
        td.arithmetic(float64=True, plan=path)
    with pytest.raises(ValueError, match="cannot be read"):
        td.arithmetic(plan=tmp_path / "missing.toml")
    path.write_text(path.read_text().replace("bf16", "bf17"))
    with pytest.raises(ValueError, match=r"plan\.toml: .*bf17"):
        td.arithmetic(plan=path)
    path.write_text(path.read_text().replace("bf17", "float8_e8m0fnu"))
    with pytest.raises(ValueError, match="zero and negative numbers"):
        td.arithmetic(plan=path)
    with pytest.raises(TypeError):
        td.arithmetic()


def test_a_line_that_is_not_found(tmp_path: Path) -> None:
    path = plan(tmp_path, {"doubled": "bf16"})
    path.write_text(path.read_text().replace("x + x", "x + y"))
    with pytest.warns(
        UserWarning, match=r"line not found.*none is used for its ufuncs"
    ):
        scope = td.arithmetic(plan=path)
    with scope:
        assert (doubled(X) == X + X).all()


def test_products_keep_the_default_precision(tmp_path: Path) -> None:
    """Keep the precision of products if only call sites of ufuncs are planned."""
    path = plan(tmp_path, {"doubled": "bf16"}, default="bf16")
    assert "precision = " not in path.read_text()
    a = X[:900].reshape(30, 30)
    with td.matmul_precision(plan=path):
        found = a @ a
    assert (found == a @ a).all()
