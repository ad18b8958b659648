"""benchmarks/cuda/gpu_bounds.py: the loop of machine code that it finds, and bounds."""

from __future__ import annotations

import importlib
import json
from collections import Counter

import pytest

from tests.support.cuda import cupy  # noqa: F401
from tests.support.paths import BENCHMARKS

LISTING = """
\t.section\t.text.other,"ax",@progbits
.L_x_0:
        /*0000*/                   HMMA.16816.F32.BF16 R0, R4, R8, R0 ;
        /*0010*/                   BRA `(.L_x_0) ;
\t.section\t.text.native,"ax",@progbits
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   FADD R2, R2, R3 ;
.L_x_2:
        /*0020*/                   HMMA.16816.F32.BF16 R0, R4, R8, R0 ;
        /*0030*/                   HMMA.16816.F32.BF16 R4, R4, R8, R4 ;
        /*0040*/              @!P0 LDG.E.128 R8, [R2] ;
        /*0050*/               @P0 BRA `(.L_x_2) ;
.L_x_3:
        /*0060*/                   FADD R2, R2, R3 ;
        /*0070*/               @P1 BRA `(.L_x_3) ;
        /*0080*/               @P2 BRA `(.L_x_1) ;
        /*0090*/                   EXIT ;
"""


@pytest.fixture
def bounds(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS / "cuda")
    return importlib.import_module("gpu_bounds")


def test_the_inner_loop_that_works(bounds):
    loop = bounds.main_loop(LISTING, "native", "HMMA")
    assert loop == {"HMMA.16816.F32.BF16": 2, "LDG.E.128": 1, "BRA": 1}
    assert bounds.main_loop(LISTING, "other", "HMMA").total() == 2
    assert bounds.main_loop(LISTING, "native", "FADD") == {"FADD": 1, "BRA": 1}


def test_what_limits(bounds):
    rate = 132 * 4 * 1.755e9 * 1e-12
    row = bounds.Row("a", None, "HMMA", "TFLOP/s")
    found = bounds.bound(row, Counter({"HMMA.16816.F32.BF16": 2, "BRA": 10}))
    clocks = 2 * 4 / 0.62
    assert found["limit"] == "tensor cores"
    assert found["at most"] == found["issued"] == round(rate * 2 * 4096 / clocks, 2)
    found = bounds.bound(row, Counter({"HMMA.16816.F32.BF16": 2, "FADD": 30}))
    assert (found["limit"], found["issued"]) == ("FP32", round(rate * 2 * 4096 / 32, 2))
    row = bounds.Row("a", None, "LDG.E.128", "TB/s")
    loop = Counter({"LDG.E.128": 2, "STG.E.64": 2, "LDG.E": 1, "LDG.E.U16": 1})
    found = bounds.bound(row, loop)
    assert (found["limit"], found["at most"]) == ("memory", 3.35)
    slow = bounds.bound(row, loop + Counter({"LOP3.LUT": 10_000}))
    assert slow["issued"] == round(rate * 32 * (32 + 16 + 4 + 2) / 10_006, 2)


REPORT = json.loads((BENCHMARKS / "results" / "gpu_bounds.json").read_text())


def test_the_report_is_of_this_gpu(bounds):
    assert REPORT["arch"] == bounds.ARCH
    assert REPORT["gpu"] == bounds.H100._asdict()


def test_all_rows_are_in_the_report(bounds):
    names = [row.name for row in bounds.rows()]
    assert names == [row["kernel"] for row in REPORT["kernels"]]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("known", REPORT["kernels"], ids=lambda x: x["kernel"])
def test_bounds_are_of_the_kernels_as_they_are(bounds, known):
    if bounds.nvrtc_version() != REPORT["nvrtc"]:
        pytest.skip("of another compiler")
    (row,) = (x for x in bounds.rows() if x.name == known["kernel"])
    assert bounds.counted(row) == known
