"""Broken preconditions (src/runtime/asserts.h) stop a build that checks them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.support.paths import SRC

pytestmark = pytest.mark.once

#: A program that divides by zero, or, with an argument, by one.
PROGRAM = """
#include "runtime/sizes.h"
int main(int count, char **arguments)
{
    (void)arguments;
    return tf_ceil_div(0, count - 1) != 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_broken_precondition_is_said(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    sources = [str(source), str(SRC / "runtime/asserts.c")]
    flags = ["-std=c11", f"-I{SRC}", "-DTF_CHECKED", "-o", str(program)]
    subprocess.run([compiler, *flags, *sources], check=True, env=plain)
    assert subprocess.run([program, "one"], env=plain).returncode == 0
    done = subprocess.run([program], capture_output=True, text=True, env=plain)
    assert done.returncode < 0
    assert "tf_ceil_div: whole >= 0 && piece > 0 does not hold" in done.stderr
