"""The bits and flags are the same on every instruction set of this machine.

TF32DTYPE_ISA is read at import, so each one takes a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tf32dtype as td

SCRIPT = Path(__file__).with_name("digest.py")
ISAS = td._core.available_isas()


def run(isa: str) -> dict[str, str]:
    path = [str(Path(td.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "TF32DTYPE_ISA": isa,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert result["isa"] == isa
    digests: dict[str, str] = result["digests"]
    return digests


@pytest.fixture(scope="module")
def baseline() -> dict[str, str]:
    return run("baseline")


def test_baseline_is_there():
    assert "baseline" in ISAS
    assert td.isa() in ISAS


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != "baseline"])
def test_same_bits(isa, baseline, compared):
    found = run(isa)
    differ = [key for key in baseline if found.get(key) != baseline[key]]
    assert found.keys() == baseline.keys()
    assert not differ, f"{isa} and baseline differ in {differ}"
    compared(len(found))


def test_unknown_isa_is_named():
    with pytest.raises(AssertionError, match="x86-64-v9"):
        run("x86-64-v9")
