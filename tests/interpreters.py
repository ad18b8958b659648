"""Runs code in a fresh interpreter that finds the package as this one did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tf32dtype as td


def run(*arguments: str) -> str:
    """Standard output of `python *arguments`; it must end well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(Path(td.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_code(code: str) -> str:
    """Standard output of the code; it must end well."""
    return run("-c", code)
