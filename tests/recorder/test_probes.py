"""The recorder's inputs: they have the right values, and expose faults."""

from dataclasses import replace

import numpy as np
import pytest

from tests.recorder.cases import DISTINCT, UNITS, asked, truth
from tests.reference import tensor_core
from tests.reference.codec import decode_code
from tests.support.interpreters import run_code
from tools.tensor_core_recorder import bulk_inputs, instructions
from tools.tensor_core_recorder.probes import GROUPS, probes
from tools.tensor_core_recorder.recordings import set_name

pytestmark = pytest.mark.once

# -- probes ----------------------------------------------------------------------------


@pytest.mark.sampled(20)
@pytest.mark.parametrize("unit", DISTINCT, ids=set_name)
def test_probes(unit):
    found = probes(unit)
    assert found.a.shape == found.b.shape == (len(found.c), unit.k)
    assert 900 < len(found.c) < 2400
    for again, one in zip(probes(unit), found, strict=True):
        np.testing.assert_array_equal(again, one)
    assert set(found.group.tolist()) <= set(GROUPS)
    assert len(set(found.group.tolist())) > 12
    for f, bits in zip((unit.a, unit.b, unit.accumulator), found, strict=False):
        codes = instructions.encode(
            f, bits
        )  # raises for numbers that are not in the format
        same = instructions.decode(f, codes) == bits
        assert (same | (bits & 0x7FFFFFFF > 0x7F800000)).all()  # payloads may be cut


PRINT_DIGEST = """
import hashlib
from tools.tensor_core_recorder import instructions
from tools.tensor_core_recorder.probes import probes
h = hashlib.sha256()
for unit in instructions.units((8, 0))[::3]:
    for x in probes(unit)[:3]:
        h.update(x.tobytes())
digest = h.hexdigest()
print(digest)
"""


@pytest.mark.exhaustive
def test_probes_are_the_same_in_every_process():
    here = {}
    exec(PRINT_DIGEST, here)
    assert run_code(PRINT_DIGEST) == here["digest"]


def test_every_group_says_what_it_pins():
    for group, build in GROUPS.items():
        assert build.__doc__, group


def value(x):
    """Return the exact number of a code, as a float."""
    size = {"inf": np.inf, "nan": np.nan, "": x.integer * 2.0**x.exponent}[x.special]
    return -size if x.negative else size


NARROW = [f for f in instructions.FORMATS.values() if f.storage < 32]


@pytest.mark.parametrize("f", NARROW, ids=lambda f: f.name)
def test_codes(f):
    codes = (np.arange(1 << f.bits) << f.shift).astype(f.unsigned)
    bits = instructions.decode(f, codes)
    np.testing.assert_array_equal(instructions.encode(f, bits), codes)
    exact = tensor_core.format_named(f.name)
    want = [value(decode_code(exact, code)) for code in range(1 << f.bits)]
    np.testing.assert_array_equal(bits.view(np.float32), np.array(want, np.float32))
    np.testing.assert_array_equal(bits >> 31, codes >> f.shift >> (f.bits - 1))
    with pytest.raises(
        ValueError, match="does not hold what float32 has as 0x3f800001"
    ):
        instructions.encode(f, np.array([0x3F800001], np.uint32))
    if not f.has_nan:
        with pytest.raises(ValueError, match="as 0x7fc00000"):
            instructions.encode(f, np.array([0x7FC00000], np.uint32))


# -- faults show -----------------------------------------------------------------------

WRONG = {
    "c outside": {"c_outside": True},
    "operands flushed": {"flush_operands": True},
    "c flushed": {"flush_c": True},
    "results flushed": {"flush_results": True},
    "products normalized": {"renormalise_products": True},
    "operands normalized": {"normalise_operands": True},
    "terms to nearest": {"alignment": "ties_to_even"},
    "terms down": {"alignment": "toward_negative"},
    "a sticky bit": {"alignment": "sticky"},
    "results down": {"rounding": "toward_negative"},
}
MODELS = [
    ("A100", "mma.m16n8k16.f16.f16.f32"),
    ("A100", "mma.m16n8k8.tf32.tf32.f32"),
    ("L40S", "mma.m16n8k32.e5m2.e4m3.f32"),
    ("H100", "mma.m16n8k16.f16.f16.f16"),
    ("H100", "wgmma.m64n8k16.bf16.bf16.f32"),
    ("H100", "wgmma.m64n8k32.e4m3.e4m3.f32"),
    ("RTX Blackwell", "mma.m16n8k32.e5m2.e5m2.f32"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("device", "unit"), MODELS)
def test_wrong_arithmetic_shows(device, unit, compared):
    unit = UNITS[device, unit]
    model, found = unit.model(device), asked(unit)
    right = truth(model, *found[:3])
    compared(len(right))
    # Most faults show in few probes. The other probes are computed only when needed.
    order = np.random.default_rng(0).permutation(len(right))
    parts = np.array_split(order, 20)

    def shows(other, mutation=tensor_core.RIGHT):
        return any(
            (truth(other, *(x[at] for x in found[:3]), mutation) != right[at]).any()
            for at in parts
        )

    for what, changes in WRONG.items():
        assert shows(model, tensor_core.Mutation(**changes)), what
    fractions = {12, 13, 14, 22, 23, 24, 25, 26} - {model.fraction}
    depths = {4, 8, 16, 32} - {model.depth}
    others = [{"fraction": f} for f in fractions]
    others += [{"depth": d} for d in depths if unit.k % d == 0]
    others.append({"kept": model.kept - 1})
    if not unit.half:
        others.append({"kept": 36 - model.kept})
    for changes in others:
        assert shows(replace(model, **changes)), changes


# -- bulk results ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", DISTINCT, ids=set_name)
def test_bulk_operands_are_numbers(unit, monkeypatch):
    monkeypatch.setattr(bulk_inputs, "CHUNK", 1 << 13)
    a, b, c = bulk_inputs.chunk(unit, 3)
    assert a.shape == b.shape == (bulk_inputs.CHUNK, unit.k)
    for f, bits in ((unit.a, a), (unit.b, b), (unit.accumulator, c)):
        assert np.isfinite(bits.view(np.float32)).all()
        instructions.encode(f, bits[:64])
    assert bulk_inputs.digest(c) != bulk_inputs.digest(c[::-1])
