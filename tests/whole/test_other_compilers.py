"""src/ compiles for systems without tests, if their compilers are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.paths import SRC

pytestmark = pytest.mark.once

#: Without OpenMP. Clang as Microsoft's compiler warns of the C library's INFINITY.
FLAGS = ["-std=c11", f"-I{SRC}", "-DTF_ISA=baseline", "-fsyntax-only", "-O1", "-Wall"]
FLAGS += ["-Wextra", "-Werror"]
#: On Windows, pthread_atfork is a macro that drops its arguments.
WINDOWS = ["-Wno-unused-function"]
MICROSOFT = ["-fms-compatibility", "-fms-extensions", "-Wno-literal-range"]
#: Intercepting calls of other libraries' BLAS needs ELF, and shared memory POSIX.
NOT_ON_WINDOWS = {"programs/blas/counts.c"}


def sources(without: set[str] = frozenset()) -> list[Path]:
    found = [x for x in SRC.rglob("*.c") if not {"cuda", "preload"} & {*x.parts}]
    return sorted(p for p in found if p.relative_to(SRC).as_posix() not in without)


def compile_all(compiler: str, flags: list[str], files: list[Path]) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    # Compilers must not run with the sanitizer of this Python.
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    command = [compiler, *FLAGS, *flags, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr[-4000:]
    assert len(files) > 50


@pytest.mark.exhaustive  # two seconds per core, for a compiler that few have
def test_clang_as_microsofts_compiler() -> None:
    compile_all("clang", MICROSOFT, sources())


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("x86_64-w64-mingw32-gcc", WINDOWS),
        ("clang", [*WINDOWS, "--target=x86_64-w64-mingw32"]),
    ],
)
def test_windows_headers(compiler, flags):
    if not shutil.which("x86_64-w64-mingw32-gcc"):
        pytest.skip("no headers of Windows: Debian's mingw-w64 has them")
    compile_all(compiler, flags, sources(NOT_ON_WINDOWS))


def test_arm64():
    compile_all("aarch64-linux-gnu-gcc", [], sources())


def test_no_remainder_of_the_x87_unit() -> None:
    """Use no fprem, whose flags are not in MXCSR, which our loops clear and restore."""
    if not (objdump := shutil.which("objdump")):
        pytest.skip("no objdump")
    module = find_spec("tf32dtype._core._core")
    assert module is not None
    assert module.origin is not None
    command = [objdump, "--disassemble", "--no-show-raw-insn", module.origin]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = [line for line in process.stdout if "fprem" in line]
    assert process.returncode == 0
    assert not found
