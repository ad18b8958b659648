"""The benchmark of the surface runs, and uses the BLAS kernels that users have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run
from tests.support.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"
FOLDERS = str(BENCHMARKS / "whole"), str(BENCHMARKS / "support")
#: Variables that some machines set, and a script that prints those still set.
CHOSEN = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "512"}
SEEN = """import os, common
common.restart_as_usual()
print([name for name in common.CHOICES if name in os.environ], common.blas())"""


def test_kernels_are_left_to_blas(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SEEN)
    path = str(BENCHMARKS / "support")
    printed = run(script, **CHOSEN, PYTHONPATH=path)
    assert printed.startswith("[] ")
    assert printed == run(script, PYTHONPATH=path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Return the output and the JSON of a few cases, the worst of two runs."""
    path = tmp_path_factory.mktemp("surface") / "out" / "found.json"
    only = "^(add|sum|sort|cast to int8), [^,]*, (4|256), .*(tf32|bfloat16)$"
    arguments = ["--only", only, "--runs", 2, "--json", path]
    printed = run(BENCHMARKS / "whole" / "surface.py", *arguments, **CHOSEN)
    report: dict[str, Any] = json.loads(path.read_text())
    return printed, report


def test_cases_are_measured(measured: tuple[str, dict[str, Any]]) -> None:
    printed, report = measured
    assert list(report["rows"]) == ["add", "sum", "cast to int8", "sort"]
    assert report["formats"] == list(td.formats)
    chosen = [name in ("tf32", "bfloat16") for name in td.formats]
    for rows in report["rows"].values():
        for row in rows.values():
            assert row["size"] in (4, 256)
            assert row["microseconds"] > 0
            assert [x is not None for x in row["over float32"]] == chosen
            assert all(x > 0 for x in row["over float32"] if x is not None)
            assert row["over ml_dtypes"][0] is None  # ml_dtypes has no tf32
    assert report["machine"]["cpu"] in printed
    assert report["machine"]["blas"] in printed
    assert "within the limit" in printed


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(folder)
    return pytest.importorskip("surface_report")


def test_documents_take_what_is_measured(
    texts: Any, measured: tuple[str, dict[str, Any]]
) -> None:
    _, report = measured
    assert "| sorting, searching |" in texts.summary(report)
    assert "| `tf32` |" in texts.details(report)


def test_the_worst_come_first(texts: Any) -> None:
    kinds = {"sort": "sorting, searching", "cast": "casts", "sum": "sums on outer axes"}
    ratios = {"sort": [1.5, 0.5], "cast": [5.5, 2.0], "sum": [2.0, 0.9]}
    rows = {
        call: {
            "contiguous": {
                "kind": kind,
                "size": 1024,
                "over float32": [None, ratios[call][0]],
                "over ml_dtypes": [None, ratios[call][1]],
                "not": ["tf32"] if call == "sum" else [],
            }
        }
        for call, kind in kinds.items()
    }
    report = {"formats": ["tf32", "bfloat16"], "rows": rows}
    assert [cell.call for cell in texts.above(report)] == ["cast", "sort"]
    assert [cell.call for cell in texts.behind(report)] == ["cast"]
    assert texts.missing(report) == {"sum": ["tf32"]}
    name, cells, within, faster, mean, worst, behind = texts.of_formats(report)[0]
    assert (name, cells, within, faster) == ("`bfloat16`", "3", "33.3 %", "0.0 %")
    assert (mean, worst, behind) == ("2.55", "5.5: cast, contiguous", "1")


ALL = """import warnings, numpy as np
from surface_calls import every_call
from surface_limits import LIMITS
from surface_operands import Operands, Variant
warnings.simplefilter("ignore")
np.seterr(all="ignore")
for call in every_call():
    assert {call.kind(variant) for variant in call.variants} <= set(LIMITS)
    if call.sized:
        call.build(Operands("float32", Variant(size=64)))()
    print(call.name)"""


def test_every_call_is_one_and_has_a_limit() -> None:
    names = run("-c", ALL, PYTHONPATH=":".join([*FOLDERS, str(ROOT)])).splitlines()
    assert len(set(names)) == len(names)
    single = [f for f in vars(np).values() if isinstance(f, np.ufunc)]
    with_float = [f for f in single if "f->f" in f.types or "ff->f" in f.types]
    elementwise = {f.__name__ for f in with_float if f.signature is None}
    assert elementwise - set(names) == set()
    assert all(f"cast to {name}" in names for name in td.formats)


def test_speeds_are_shown_as_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS / "support")
    report = pytest.importorskip("report")
    measured = [{"who": "ours", "case": "a", "data": "b", "ratio": x} for x in (4, 2)]
    row = {
        "name": "@",
        "unit": "x as fast",
        "minimum": 1,
        "target": 4,
        "measured": measured,
    }
    [line] = report.table({"rows": [row]})
    assert line[:5] == (
        "@",
        "<= 1 x the time of NumPy float32",
        "0.25",
        "0.50",
        "minimum reached",
    )
    assert set(report.SPEEDS) < set(report.MORE)
