"""Stubs keep every argument and result: assembler code, tried with each compiler."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import SRC

pytestmark = pytest.mark.once

#: Each compiler, and the command that runs its programs.
COMPILERS = {
    "gcc": [],
    "clang": [],
    "aarch64-linux-gnu-gcc": ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
}


@pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="there are none",
)
@pytest.mark.parametrize("optimize", ["-O0", "-O3"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_arguments_and_results_are_kept(
    compiler: str, optimize: str, tmp_path: Path
) -> None:
    runner = COMPILERS[compiler]
    for program in (compiler, *runner[:1]):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not there")
    binary = tmp_path / "stub_calls"
    sources = [
        Path(__file__).with_name("stub_calls.c"),
        SRC / "programs" / "hooks" / "stubs.c",
    ]
    subprocess.run(
        [compiler, "-std=c11", optimize, f"-I{SRC}", *sources, "-o", binary], check=True
    )
    done = subprocess.run([*runner, binary], capture_output=True, text=True, check=True)
    seen = "1 2 3 4 5 6 7 8 9 10 1.5 2.5 3.75\n"
    assert done.stdout == 3 * seen + "7\n"
