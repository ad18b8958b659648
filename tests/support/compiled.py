"""Compile C of src/ that no Python function calls by itself, for the tests."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.paths import SRC

Array = np.ndarray[Any, Any]

#: The flags of setup.py: no optimization may change a result.
FLAGS = [
    "-std=c11", "-O3", "-fPIC", "-shared", "-fno-trapping-math", "-fno-math-errno",
    "-ffp-contract=off",
]  # fmt: skip

SPLIT = """
#include "matmul/kernels/split_singles.h"
void split(const float *in, size_t n, int p, int parts, float *out)
{
    tf_split_singles(in, n, p, parts, out, n);
}
"""


@cache
def library(text: str, *flags: str) -> ctypes.CDLL:
    """Return a compiled library of C code that includes headers of src/. Skip the test
    if the compiler does not know one of the flags."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    for flag in flags:
        command = [compiler, flag, "-fsyntax-only", "-x", "c", os.devnull]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip(f"{compiler} has no {flag}")
    # A sanitizer that is preloaded into Python must not run in the compiler.
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "text.c"), Path(folder, "text.so")
        source.write_text(text)
        command = [compiler, *FLAGS, *flags, f"-I{SRC}", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, env=plain)
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(made))


def split(x: Array, parts: int, format: str) -> Array:
    """Split float32 numbers into bfloat16 or tf32 components.

    The loop that packs operands does it, compiled for any processor and for this one.
    The bits of both must be equal.
    """
    numbers = np.ascontiguousarray(x, np.float32)
    p = {"bfloat16": 8, "tf32": 11}[format]
    sets: list[tuple[str, ...]] = [()]
    if platform.machine() == "x86_64":
        sets.append(("-march=native",))
    made = []
    for flags in sets:
        out = np.empty((parts, *np.shape(x)), np.float32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (numbers, out)]
        size = ctypes.c_size_t(numbers.size)
        library(SPLIT, *flags).split(pointers[0], size, p, parts, pointers[1])
        made.append(out)
    for other in made[1:]:
        np.testing.assert_array_equal(other.view(np.uint32), made[0].view(np.uint32))
    return made[0]
