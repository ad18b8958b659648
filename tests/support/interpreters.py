"""Runs code in a fresh interpreter that finds the package as this one did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import tf32dtype as td
from tests.support.paths import ROOT


def python(
    *arguments: object,
    cwd: Path | None = None,
    input: str | None = None,
    timeout: float | None = 120,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """`python *arguments`, with what `environment` adds to this one's."""
    path = f"{Path(td.__file__).parents[1]}{os.pathsep}{ROOT}"
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        input=input,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )


def run(*arguments: object, **options: Any) -> str:
    """Standard output of `python *arguments`; it must end well."""
    done = python(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_code(code: str) -> str:
    """Standard output of the code; it must end well."""
    return run("-c", code)
