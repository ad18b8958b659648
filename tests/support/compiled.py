"""C of src/ that no function of Python reaches alone, compiled for the tests."""

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

#: As setup.py has them: no result may depend on the compiler's licenses.
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
    """A library of C that includes headers of src/. Skips where the compiler lacks one
    of the flags."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    for flag in flags:
        command = [compiler, flag, "-fsyntax-only", "-x", "c", os.devnull]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip(f"{compiler} has no {flag}")
    # Compilers are not to run with a sanitizer that Python runs with.
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "text.c"), Path(folder, "text.so")
        source.write_text(text)
        command = [compiler, *FLAGS, *flags, f"-I{SRC}", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, env=plain)
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(made))


def split(x: Array, parts: int, format: str) -> Array:
    """float32 numbers in parts of bfloat16 or tf32, by the loop that packs operands:
    compiled for any processor and for this one, with the same bits."""
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
