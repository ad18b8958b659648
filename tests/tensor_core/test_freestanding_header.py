"""All compilers accept the headers src/tensor_core/mma_model.h and scaled_mma_model.h,
which hold the models."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import SRC

pytestmark = pytest.mark.once

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror"]

CALL = """
#include "tensor_core/scaled_mma_model.h"
{prefix} void chain(const struct tf_mma_model *model, const uint32_t *a,
                    const uint32_t *b, uint32_t *c)
{{
    *c = tf_mma_accumulate(model, a, 1, b, 1, 77, *c, 0);
}}
{prefix} void scaled(const struct tf_scaled_model *model, const uint32_t *a,
                     const uint8_t *s, const uint32_t *b, const uint8_t *t, uint32_t *c)
{{
    *c = tf_scaled_chain(model, a, 1, s, b, 1, t, 77, *c, 0);
}}
"""
HOST = {
    "gcc": ["-std=c11"],
    "clang": ["-std=c11"],
    "g++": ["-std=c++17"],
    "clang++": ["-std=c++17"],
}


def compile_text(command: list[str], source: Path) -> None:
    # A sanitizer that is preloaded into Python must not run in the compiler.
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [*command, f"-I{SRC}", str(source)], capture_output=True, text=True, env=plain
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", HOST)
def test_host_compilers(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source = tmp_path / ("chain.c" if "++" not in compiler else "chain.cpp")
    source.write_text(CALL.format(prefix="extern"))
    flags = [*HOST[compiler], *WARNINGS, "-O2", "-c", "-o", str(tmp_path / "chain.o")]
    compile_text([compiler, *flags], source)


def test_nvcc(tmp_path):
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    source = tmp_path / "chain.cu"
    source.write_text(CALL.format(prefix='extern "C" __global__'))
    compile_text(["nvcc", "-c", "-o", str(tmp_path / "chain.o")], source)


@pytest.mark.parametrize(
    "arch", ["compute_75", "compute_80", "compute_90", "compute_120"]
)
def test_nvrtc(arch):
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    names = (
        "runtime/bit_masks.h",
        "tensor_core/mma_model.h",
        "tensor_core/scaled_mma_model.h",
    )
    code = CALL.format(prefix='extern "C" __global__')
    headers = [(SRC / name).read_bytes() for name in names]
    named = headers, [name.encode() for name in names]
    program = nvrtc.createProgram(code, "chain.cu", *named)
    try:
        nvrtc.compileProgram(program, [f"--gpu-architecture={arch}"])
        ptx = nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        pytest.fail(f"{error}: {nvrtc.getProgramLog(program)}")
    finally:
        nvrtc.destroyProgram(program)
    text = ptx.decode() if isinstance(ptx, bytes) else ptx
    assert "chain" in text
    assert "scaled" in text
    assert ".f32" not in text  # only integers
