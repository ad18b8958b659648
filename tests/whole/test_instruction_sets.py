"""The bits and flags are the same on every instruction set of this machine.

TF32DTYPE_ISA is read at import, so each one takes a process of its own.
"""

import json

import pytest

import tf32dtype as td
from tests.support.interpreters import run

SCRIPT = "-m", "tests.support.digest"
ISAS = td._core.available_isas()


def digests(isa: str) -> dict[str, str]:
    """Those of a set that is named; of the best one, as by default, for ""."""
    result = json.loads(run("-W", "ignore", *SCRIPT, timeout=None, TF32DTYPE_ISA=isa))
    assert result["isa"] == (isa or ISAS[-1])
    found: dict[str, str] = result["digests"]
    return found


@pytest.fixture(scope="module")
def baseline() -> dict[str, str]:
    return digests("baseline")


def test_baseline_is_there():
    assert "baseline" in ISAS
    assert td.isa() in ISAS


@pytest.mark.parametrize("isa", [*ISAS[1:], ""])
def test_same_bits(isa, baseline, compared):
    if len(ISAS) == 1:
        pytest.skip("this machine has the baseline alone")
    found = digests(isa)
    differ = [key for key in baseline if found.get(key) != baseline[key]]
    assert found.keys() == baseline.keys()
    assert not differ, f"{isa} and baseline differ in {differ}"
    compared(len(found))


def test_unknown_isa_is_named():
    with pytest.raises(AssertionError, match="x86-64-v9"):
        digests("x86-64-v9")
