"""`td.report` around a block, with a collector in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.collector import Collector
from tf32dtype import _core
from tf32dtype._programs.report import collect

pytestmark = pytest.mark.once

THE_COLLECTOR = collect.Collector
A = np.random.default_rng(0).standard_normal((20, 20), np.float32)


@pytest.fixture(autouse=True)
def _in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "Collector", Collector)


def test_a_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with td.report(precision=["bf16", "mxfp4"], device="H100") as r:
        np.matmul(A, A)
        np.dot(A, A)
    first, second = r.call_sites
    assert first.call_site.user.file == second.call_site.user.file == __file__
    assert first.call_site.user.function == "test_a_block"
    assert [*first.figures.errors] == ["f32", "bf16", "mxfp4", "bf16@H100"]
    assert first.verdict.text == "bf16 is enough"
    assert r.run.argv == ()
    assert r.not_reached[0].kind == "LAPACK"
    assert "bf16 is enough" in r.advice[0].text
    r.print()
    assert capsys.readouterr().out.startswith("The block: ")
    r.save(tmp_path / "x.html")
    r.save(str(tmp_path / "x.json"))
    assert "td.report()" in (tmp_path / "x.html").read_text()
    assert json.loads((tmp_path / "x.json").read_text())["program"] == []


def test_an_error_goes_on_and_is_told() -> None:
    r = td.report()

    def fail() -> None:
        with r:
            np.matmul(A, A)
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert len(r.call_sites) == 1
    assert np.matmul.__class__ is np.ufunc


@pytest.mark.skipif(
    not _core.blas_available(), reason="needs Linux on x86-64 or AArch64"
)
def test_what_cannot_begin_leaves_nothing_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collect, "Collector", THE_COLLECTOR)
    r = td.report(arithmetic="bf16")
    with td.arithmetic("float16"), pytest.raises(RuntimeError, match="cannot begin"):
        r.__enter__()
    with r:  # the report is not made yet
        np.matmul(A, A)
    assert len(r.call_sites) == 1
    with monkeypatch.context() as patch:
        patch.setattr(_core, "watch_call_sites", None)
        with pytest.raises(TypeError):
            td.report().__enter__()
    with td.report() as other:
        np.matmul(A, A)
    assert len(other.call_sites) == 1


def test_the_order_of_things() -> None:
    r = td.report()
    for what in ("call_sites", "advice", "not_reached", "run"):
        with pytest.raises(RuntimeError, match="before its block ends"):
            getattr(r, what)
    with r, pytest.raises(RuntimeError, match="entered twice"):
        r.__enter__()
    with pytest.raises(RuntimeError, match="entered twice"), r:
        pass


@pytest.mark.parametrize(
    "chosen",
    [
        {"precision": "bf17"},
        {"device": "H900"},
        {"target_db": -1},
        {"only": "missing.py"},
    ],
)
def test_what_cannot_be_is_a_value_error(chosen: Any) -> None:
    with pytest.raises(ValueError, match=r"bf17|H900|-1|missing\.py"):
        td.report(**chosen)
    with pytest.raises(TypeError):
        td.report(precisions="bf16")  # type: ignore[call-arg]
