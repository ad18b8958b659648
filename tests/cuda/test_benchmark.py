"""Run `python benchmarks/cuda/gpu.py` on the host, completely except for clocks."""

# ruff: noqa: F811

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.paths import BENCHMARKS, GPU_BENCHMARKS
from tests.support.simulator.dry_run import Clock, sizes
from tf32dtype._base import nvrtc
from tf32dtype.cuda._matmul import crossover, cublaslt

NO_ENERGY = ["--parts", "cases", "accuracy", "crossover", "figures"]
DEVICE = {"gpu": "the host", "driver": "580.1", "nvrtc": "[13, 5]"}


@pytest.fixture
def gpu(backend, monkeypatch, tmp_path):
    """Yield the benchmark's module, with tiny sizes."""
    if backend is not HOST:
        pytest.skip("the benchmark itself runs on a GPU")
    for folder in GPU_BENCHMARKS:
        monkeypatch.syspath_prepend(folder)
    ours = "gpu_arrays", "gpu_streams", "gpu_products", "gpu_cases", "gpu_clock"
    for name in (*ours, "common", "measuring", "report"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location(
        "benchmarks_gpu", BENCHMARKS / "cuda" / "gpu.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.cases, "QUICK", sizes(module.cases))
    monkeypatch.setattr(module, "versions", lambda: DEVICE)
    monkeypatch.setattr(crossover, "FOLDER", tmp_path / "package")
    crossover.read.cache_clear()
    yield module
    crossover.read.cache_clear()


@pytest.fixture
def fp8(monkeypatch):
    """Return a list of the products that cublasLt was asked for."""
    asked = []

    def multiply(x, y, out, formats):
        asked.append((x.shape, y.shape, out.shape, formats))

    monkeypatch.setattr(cublaslt, "_multiply", multiply)
    return asked


def test_everything_runs(gpu, fp8, tmp_path, capsys):
    clock, path = Clock(), tmp_path / "out" / "gpu.json"
    arguments = ["--quick", *NO_ENERGY, "--json", str(path)]
    arguments += ["--tables", str(tmp_path / "tables")]
    drawn = tmp_path / "gpu.png"
    if importlib.util.find_spec("matplotlib"):
        arguments += ["--figure", str(drawn)]
    assert gpu.main(arguments, clock) == 0
    if importlib.util.find_spec("matplotlib"):
        assert drawn.stat().st_size > 1000

    report = json.loads(path.read_text())
    assert report["device"] == DEVICE
    rows = {row["name"]: row for row in report["results"][0]["rows"]}
    counts = {name: len(row["measured"]) for name, row in rows.items()}
    assert counts == {
        "casts": 8, "ufuncs": 24, "reductions": 18, "native products": 4,
        "own kernel, wgmma": 2, "own kernel, mma.sync": 2, "bf16x9": 1, "bf16x6": 1,
        "bf16x3": 1, "tf32x3": 1, "exact": 1, "exact-int8": 1, "crt7": 1,
        "blocks": 4, "TCFP-16": 1, "chain": 3,
        "A100 emulated": 2, "H100 emulated": 2,
    }  # fmt: skip
    assert {m["ratio"] for m in rows["casts"]["measured"]} == {2}
    assert set(fp8) == {((1, 16, 16), (1, 16, 16), (1, 16, 16), ("float8_e4m3fn",) * 2)}
    assert len(fp8) == 3  # ours, and the library's, twice
    for ratio in report["snr"]["32"].values():
        assert 120 < ratio < 200
    cells = report["crossover"]["cases"]
    assert [(c["mn"], c["k"]) for c in cells] == [
        (16, 16),
        (16, 32),
        (32, 16),
        (32, 32),
    ]
    assert {c["performant over the better"] for c in cells} == {0.5}

    table = crossover.read("the host")
    assert table.sides == table.depths == [16, 32]
    assert table.speedup == {"bf16x9": [[2, 2], [2, 2]]}
    assert table.measured == {"driver": "580.1", "nvrtc": "[13, 5]"}
    assert [p.name for p in (tmp_path / "tables").iterdir()] == ["the_host.json"]
    assert crossover.emulates("bf16x9", "performant", 32, 32, 32)
    assert "performant takes at most 0.500" in capsys.readouterr().out


def test_a_row_that_raises_is_an_error_and_the_others_go_on(
    gpu, fp8, monkeypatch, tmp_path, capsys
):
    """When a row begins, the file has the measurements of the preceding rows."""
    path = tmp_path / "gpu.json"
    measuring = importlib.import_module("measuring")
    saved = []

    def good():
        yield measuring.Case(
            "good", "N(0,1)", dict.fromkeys(("ours", "reference"), int)
        )

    def bad():
        saved.extend(json.loads(path.read_text())["results"][0]["rows"])
        yield from good()
        raise RuntimeError("an illegal address")

    made = {"first": good, "second": bad, "third": good}
    rows = [measuring.Row(x, "of a copy", 1, 1, call) for x, call in made.items()]
    monkeypatch.setattr(gpu.cases, "rows", lambda sizes: rows)
    arguments = ["--quick", *NO_ENERGY, "--json", str(path)]
    assert gpu.main(arguments, Clock()) == 1
    assert [row["name"] for row in saved] == ["first"]
    report = json.loads(path.read_text())
    assert report["errors"] == {"second": "RuntimeError: an illegal address"}
    found = {row["name"]: row for row in report["results"][0]["rows"]}
    assert list(found) == [*made, "chain", "A100 emulated", "H100 emulated"]
    assert [len(found[x]["measured"]) for x in made] == [1, 1, 1]
    assert report["crossover"]["cases"]
    assert "ERROR second: RuntimeError: an illegal" in capsys.readouterr().err


def test_cells_are_kept_before_performant_is_measured(gpu, monkeypatch, tmp_path):
    path = tmp_path / "gpu.json"
    kept = []

    def performant(*_):
        kept.extend(json.loads(path.read_text())["crossover"]["cases"])
        raise RuntimeError("out of memory")

    monkeypatch.setattr(gpu, "performant", performant)
    report = gpu.Report(path, DEVICE)
    measure = gpu.partial(gpu.measure_crossover, report, Clock(), (16, 32), None)
    report.attempt("crossover", measure)
    assert len(kept) == 4
    saved = json.loads(path.read_text())
    assert saved["crossover"]["cases"] == kept
    assert saved["errors"] == {"crossover": "RuntimeError: out of memory"}
    assert crossover.read("the host").sides == [16, 32]


def test_it_starts_from_another_folder(tmp_path):
    """The program starts even if a package with the folder's name is installed."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("raise SystemExit(9)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(BENCHMARKS / "cuda" / "gpu.py"), "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: python benchmarks/cuda/gpu.py")


def test_every_row_is_judged_the_right_way_round(gpu):
    """A row with half its minimum fails, and a row with twice its target does not."""
    report = importlib.import_module("report")
    names = [row.name for row in gpu.cases.rows(gpu.cases.QUICK)]
    for factor, status in ((0.5, "below minimum"), (2, "target reached")):
        rows = []
        for row in gpu.cases.rows(gpu.cases.QUICK):
            row.take(
                "case",
                "data",
                "ours",
                factor * (row.minimum if factor < 1 else row.target),
            )
            rows.append(row.record())
        lines = report.table({"rows": rows})
        assert [(line[0], line[4]) for line in lines] == [(n, status) for n in names]


def test_fp8_lies_along_k(gpu):
    """FP8 operands are contiguous along k for cublasLt. Otherwise the library's row
    would measure a transpose."""
    for name in ("float8_e4m3fn", "bfloat16"):
        a, b = gpu.products.operands(16, name)
        assert (b.strides[0] == b.itemsize) == (name == "float8_e4m3fn")
        assert a.strides[1] == a.itemsize


def test_cells_are_tabled_by_side_and_depth(gpu):
    cells = [
        {"mn": mn, "k": k, "native": float(mn), "emulated": 4.0 * k}
        for k in (2, 1)
        for mn in (64, 128)
    ]
    table = crossover.Crossover(**gpu.tabled(DEVICE, "bf16x3", cells))
    assert (table.sides, table.depths) == ([64, 128], [1, 2])
    assert table.speedup == {"bf16x3": [[16, 8], [32, 16]]}


def test_clock(gpu, monkeypatch):
    """Each event costs a millisecond, and each call costs two."""
    now = [0.0]

    class Event:
        def record(self):
            now[0] += 1
            self.at = now[0]

        def synchronize(self):
            pass

    def call():
        now[0] += 2

    monkeypatch.setattr(cupy.cuda, "Event", Event)
    monkeypatch.setattr(
        cupy.cuda, "get_elapsed_time", lambda begin, end: end.at - begin.at
    )
    clock, ahead = gpu.gpu_clock.Clock(), []
    monkeypatch.setattr(clock, "occupy", ahead.append)
    assert clock.seconds(call, 4) == pytest.approx(9e-3 / 4)
    assert clock.medians({"ours": call}, 3, 1.0) == {"ours": pytest.approx(3e-3)}
    assert len(ahead) == 3
    assert min(ahead) > 0


def test_figure(gpu, tmp_path):
    """The figure has the crossover's cases, and energy if measured. Without cases,
    there is no figure."""
    pytest.importorskip("matplotlib")
    draw = importlib.import_module("gpu_figure").draw
    cells = [{"mn": 64, "k": 64, "native": 1e-3, "emulated": np.inf}]
    report = {"device": DEVICE, "crossover": {"cases": cells}}
    line = {"n": 64, "bf16x9 GFLOP/J": 2.0, "SGEMM GFLOP/J": 1.0}
    sizes = []
    for more in ({}, {"energy": [line]}):
        draw(report | more, tmp_path / "x.png")
        sizes.append((tmp_path / "x.png").stat().st_size)
    assert min(sizes) > 1000
    assert sizes[0] != sizes[1]
    draw({"device": DEVICE}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_no_energy_counter_stops_nothing(gpu, fp8, monkeypatch, tmp_path, capsys):
    def none():
        raise OSError("nvmlInit_v2 failed with 9")

    monkeypatch.setattr(gpu.gpu_clock, "Energy", none)
    path = tmp_path / "gpu.json"
    assert gpu.main(["--quick", "--json", str(path)], Clock()) == 0
    assert "no energy counters: nvmlInit_v2 failed" in capsys.readouterr().err
    assert "energy" not in json.loads(path.read_text())


def test_energy(gpu, monkeypatch):
    class Counter:
        def per_call(self, function, seconds):
            function()
            return {"joules": 2.0, "seconds": 0.5}

    monkeypatch.setattr(gpu.gpu_clock, "Energy", Counter)
    (line,) = gpu.energy((16,))
    assert line["n"] == 16
    assert line["bf16x9 GFLOP/J"] == line["SGEMM GFLOP/J"] == 2 * 16**3 / 2 * 1e-9
    assert line["SGEMM TFLOP/s"] == 2 * 16**3 / 0.5 * 1e-12


def test_no_gpu_is_said(gpu, monkeypatch, capsys):
    def none():
        raise nvrtc.CudaError("there is no NVIDIA GPU")

    monkeypatch.setattr(gpu, "versions", none)
    assert gpu.main(["--quick"], Clock()) == 1
    assert "gpu.py: there is no NVIDIA GPU" in capsys.readouterr().err
