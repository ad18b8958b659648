"""Calls of the explorer's arithmetic, in one process of node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from tests.support.paths import ROOT

EXPLORER = ROOT / "docs" / "explorer"


class Call(NamedTuple):
    """`arithmetic.name(*arguments)`, or a member that is no function."""

    name: str
    arguments: tuple[Any, ...] = ()
    #: paths of what is wanted of the result: "rounded.value.code", "rows.*.flags"
    pick: tuple[str, ...] | None = None


def row(table: str, index: int) -> dict[str, Any]:
    """An argument: a row of one of the tables."""
    return {"of": table, "at": index}


def big(x: int) -> dict[str, Any]:
    """An argument: a bigint."""
    return {"big": str(x)}


def _number(x: dict[str, Any]) -> Any:
    if x.keys() != {"number"} or not isinstance(x["number"], str):
        return x
    text = x["number"]
    return int(text) if text.lstrip("-").isdigit() else float(text)


def run(calls: Iterable[Call]) -> list[Any]:
    """What they return; codes of float64 are integers."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        assert "TF32DTYPE_NEED_NODE" not in os.environ, "node is not installed"
        pytest.skip("node is not installed")
    asked = json.dumps([call._asdict() for call in calls])
    # At its end node 20 waits for V8's compiler, which may wait for node to collect
    # garbage: so nothing is compiled beside. It is not to run with a sanitizer that
    # Python runs with.
    script = str(ROOT / "tests" / "explorer" / "run_calls.js")
    command = [node, "--single-threaded", script, str(EXPLORER)]
    plain = {name: x for name, x in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        command, input=asked, capture_output=True, text=True, env=plain, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout, object_hook=_number)
    return found
