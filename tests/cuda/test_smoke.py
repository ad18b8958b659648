"""The first minutes on a GPU: the list of checks, each in its own process."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

from tests.support.cuda import tfc  # noqa: F401
from tests.support.paths import ROOT

CHECKS = """machine cast_add chain_small chain_large mma_bf16 mma_f16 mma_ragged
    mma_tf32 mma_e4m3 mma_e4m3_e5m2 every_tile cublas emulation exact block_formats
    dlpack streams wgmma speed""".split()


def test_each_check_has_a_process(monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which it adds
    smoke = importlib.import_module("tests.cuda.smoke")
    started = []

    def run(command, **_):
        started.append(command)
        return SimpleNamespace(returncode=len(started) == 2, stdout="said", stderr="E")

    monkeypatch.setattr(smoke.subprocess, "run", run)
    assert smoke.main([]) == 1
    assert [command[-2:] for command in started] == [["--here", x] for x in CHECKS]
    said = capsys.readouterr().out
    assert said.endswith("18 of 19 checks hold\n")
    assert "FAIL cast_add" in said
    assert "this means: Compiling, loading or starting kernels fails." in said


def test_documents_count_them():
    for file in ("tools/gpu", "docs/benchmarks/gpu_tests.md"):
        assert f" {len(CHECKS)} checks" in (ROOT / file).read_text()
