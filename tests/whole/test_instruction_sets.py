"""The bits and flags are the same for every instruction set of this machine.

TF32DTYPE_ISA is read at import. Therefore each one needs its own process.
"""

import functools
import json

import pytest

import tf32dtype as td
from tests.support.interpreters import run

SCRIPT = "-m", "tests.support.digest"
ISAS = td._core.available_isas()
#: Numbers per loop: FEW are two chunks of 1024 and the begin of a third one.
FEW, MANY = 2_500, 12_000


@functools.cache
def digests(isa: str, count: int, *names: str) -> dict[str, str]:
    """Return the digests of a named instruction set, or for "" of the best one."""
    words = "-W", "ignore", *SCRIPT, "--count", count, *names
    result = json.loads(run(*words, timeout=None, TF32DTYPE_ISA=isa))
    assert result["isa"] == (isa or ISAS[-1])
    found: dict[str, str] = result["digests"]
    return found


def test_baseline_is_there():
    assert "baseline" in ISAS
    assert td.isa() in ISAS


@pytest.mark.parametrize(
    "count", [FEW, pytest.param(MANY, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("isa", ISAS[1:])
def test_same_bits(isa, count, compared):
    same_bits(isa, count, compared)


@pytest.mark.parametrize(
    ("count", "names"),
    [
        # The default leaves out products in pairs, of any format.
        (FEW, ("bfloat16", "float8_e5m2", "float4_e2m1fn")),
        pytest.param(MANY, (), marks=pytest.mark.exhaustive),
    ],
    ids=["few", "many"],
)
def test_same_bits_by_default(count, names, compared):
    same_bits("", count, compared, *names)


def same_bits(isa, count, compared, *names):
    if len(ISAS) == 1:
        pytest.skip("this machine has the baseline alone")
    found = digests(isa, count, *names)
    baseline = {
        key: digest
        for key, digest in digests("baseline", count).items()
        if not names or key.split()[0] in names
    }
    differ = [key for key in baseline if found.get(key) != baseline[key]]
    assert found.keys() == baseline.keys()
    assert not differ, f"{isa or 'the default'} and baseline differ in {differ}"
    compared(len(found))


def test_unknown_isa_is_named():
    with pytest.raises(AssertionError, match="x86-64-v9"):
        digests("x86-64-v9", FEW)
