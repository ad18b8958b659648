"""Call the explorer's arithmetic, with one process of node for all calls."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from functools import cache
from typing import IO, Any, NamedTuple

import pytest

from tests.support.paths import ROOT

EXPLORER = ROOT / "docs" / "explorer"


class Call(NamedTuple):
    """The call `arithmetic.name(*arguments)`, or a member that is not a function."""

    name: str
    arguments: tuple[Any, ...] = ()
    #: paths of the wanted members of the result: "rounded.value.code", "rows.*.flags"
    pick: tuple[str, ...] | None = None


def row(table: str, index: int) -> dict[str, Any]:
    """Return an argument that stands for a row of one of the tables."""
    return {"of": table, "at": index}


def big(x: int) -> dict[str, Any]:
    """Return an argument that stands for a bigint."""
    return {"big": str(x)}


def steps_of(number: int) -> pytest.MarkDecorator:
    """Parametrize a test by a step: each `number`-th case, or all cases."""
    whole = pytest.param(1, id="all", marks=pytest.mark.exhaustive)
    return pytest.mark.parametrize("step", [pytest.param(number, id="some"), whole])


def _number(x: dict[str, Any]) -> Any:
    if x.keys() != {"number"} or not isinstance(x["number"], str):
        return x
    text = x["number"]
    return int(text) if text.lstrip("-").isdigit() else float(text)


@cache
def node() -> tuple[subprocess.Popen[str], IO[str]]:
    """Return a process of node that answers all calls, and the file of its errors."""
    path = shutil.which("node") or shutil.which("nodejs")
    if path is None:
        assert "TF32DTYPE_NEED_NODE" not in os.environ, "node is not installed"
        pytest.skip("node is not installed")
    # At its end, node 20 waits for V8's compiler, which may wait for node to collect
    # garbage. One thread therefore does everything. A sanitizer that is preloaded into
    # Python must not run in node.
    script = str(ROOT / "tests" / "explorer" / "run_calls.js")
    command = [path, "--single-threaded", script, str(EXPLORER)]
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=plain,
    )
    atexit.register(process.communicate)  # closes its input, which ends it
    return process, errors


def run(calls: Iterable[Call]) -> list[Any]:
    """Return the results of calls; codes of float64 are integers."""
    process, errors = node()
    assert process.stdin is not None
    assert process.stdout is not None
    watch = threading.Timer(300, process.kill)
    watch.start()
    try:
        process.stdin.write(json.dumps([call._asdict() for call in calls]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    finally:
        watch.cancel()
    if not line:
        errors.seek(0)
        raise AssertionError(f"node has ended: {errors.read()}")
    found: list[Any] = json.loads(line, object_hook=_number)
    return found
