"""Run code in a fresh interpreter that imports the same package as this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import tf32dtype as td
from tests.support.paths import ROOT


def variables() -> dict[str, str]:
    """Return the environment of this process, with the folders of the modules."""
    path = f"{Path(td.__file__).parents[1]}{os.pathsep}{ROOT}"
    return os.environ | {"PYTHONPATH": path}


def python(
    *arguments: object,
    cwd: Path | None = None,
    input: str | None = None,
    timeout: float | None = 120,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments`. `environment` adds to the variables of this process."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        input=input,
        env=variables() | environment,
    )


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Return the standard output of a process that must have succeeded."""
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run(*arguments: object, **options: Any) -> str:
    """Return the standard output of `python *arguments`, which must succeed."""
    return output(python(*arguments, **options))


def run_code(code: str) -> str:
    """Return the standard output of the code, which must succeed."""
    return run("-c", code)
