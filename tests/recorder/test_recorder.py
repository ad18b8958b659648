"""The recorder without a GPU: its conclusions and its files."""

import json
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from tests.recorder.cases import CAPABILITIES, UNITS, asked, truth
from tests.recorder.made_up_gpu import MadeUp
from tests.support.interpreters import run_code
from tf32dtype.tensor_core import models
from tools.tensor_core_recorder import (
    bulk_inputs,
    command,
    conclude,
    instructions,
    recordings,
    tiles,
)
from tools.tensor_core_recorder.operand_builder import Probes
from tools.tensor_core_recorder.probes import GROUPS

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Use few bulk results, as there is no real GPU whose results they would test."""
    monkeypatch.setattr(bulk_inputs, "CHUNK", 1 << 12)
    monkeypatch.setattr(bulk_inputs, "JUDGED", 3)


# -- contested points ------------------------------------------------------------------

SETTLED = [
    ("H100", "mma.m16n8k8.tf32.tf32.f32"),
    ("H100", "mma.m16n8k16.bf16.bf16.f32"),
    ("H100", "mma.m16n8k16.f16.f16.f16"),
    ("H100", "mma.m16n8k16.e4m3.e4m3.f32"),
    ("H100", "wgmma.m64n8k32.e4m3.e4m3.f16"),
]
DEFAULTS = {
    "zero_c_exponent": None,
    "floor": {("float32", 25): -133, ("float16", 25): -21},
    "zero_products": False,
    "negative_zero": False,
    "depth of tf32 on Hopper and Blackwell": 8,
    "low_bits_nan": False,
    "scale_input_d": conclude.UNDECIDED,
    "zero_terms": conclude.UNDECIDED,
    "float4_subnormals": conclude.UNDECIDED,
    "block of Turing": conclude.UNDECIDED,
    "wgmma fp8 into float16": "float16",
    "m16n8k16 of fp8 on sm_90 and sm_100": "two blocks of 8 and an addition",
}


def results(chosen, compute):
    """Return the results of units that compute as `compute(unit, model)` says."""
    found = []
    for device, unit in chosen:
        unit = UNITS[device, unit]
        model = unit.model(device)
        probes = asked_of_points(unit)
        d = compute(unit, model)(*probes[:3])
        found.append(conclude.Result(unit, model, probes, d))
    return found


@cache
def asked_of_points(unit):
    """Return the probes of groups that bear on a contested point."""
    groups = {group for point in conclude.POINTS.values() for group in point.groups}
    there = np.isin(asked(unit).group, [*groups])
    return Probes(*(x[there] for x in asked(unit)))


def settled(found):
    return conclude.conclude((r.model, conclude.conclude_unit(r)) for r in found)


def changed(**changes):
    return lambda unit, model: partial(truth, replace(model, **changes))


def test_all_points_are_asked():
    unasked = {"scale_input_d", "zero_terms"}
    assert set(models.POINTS) < set(DEFAULTS) == {*conclude.POINTS, *unasked}
    for point in conclude.POINTS.values():
        assert set(point.groups) <= set(GROUPS)


def low_bits(unit, model):
    return conclude.seeing_low_bits(model)


def shallow(unit, model):
    return partial(truth, replace(model, depth=4 if model.a == "tf32" else model.depth))


def by_way(unit, model):
    if unit.half and model.fraction == 13:
        return conclude.changed(model, cut_first=13)
    return partial(truth, model)


def in_order(unit, model):
    return partial(truth, replace(model, emulated=False))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("compute", "difference"),
    [
        (changed(), {}),
        (
            changed(zero_c_exponent=-126),
            {"zero_c_exponent": -126, "floor": {("float16", 25): -21}},
        ),
        (changed(floor=None), {"floor": {}}),
        (
            changed(floor=None, zero_c_exponent=-126),
            {"floor": {}, "zero_c_exponent": -126},
        ),
        (changed(zero_products=True), {"zero_products": True}),
        (changed(negative_zero=True), {"negative_zero": True}),
        (shallow, {"depth of tf32 on Hopper and Blackwell": 4}),
        (low_bits, {"low_bits_nan": True}),
        (by_way, {"wgmma fp8 into float16": "e8m13, then float16"}),
        (in_order, {"m16n8k16 of fp8 on sm_90 and sm_100": "two blocks of 8 in order"}),
    ],
)
def test_each_alternative_is_found(compute, difference):
    assert settled(results(SETTLED, compute)) == DEFAULTS | difference


@pytest.mark.parametrize("value", [(8, 24), (4, 23), (4, 24)])
def test_turing(value):
    depth, fraction = value
    chosen = [("T4", "mma.m16n8k8.f16.f16.f32"), ("T4", "mma.m16n8k8.f16.f16.f16")]
    found = results(chosen, changed(depth=depth, fraction=fraction))
    assert settled(found)["block of Turing"] == value


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("formats", ["e2m1.e2m1", "e2m1.e5m2", "e4m3.e2m1"])
def test_float4(formats, value):
    def compute(unit, model):
        return dict(conclude._float4(unit, model))[value]

    chosen = [("RTX Blackwell", f"mma.m16n8k32.{formats}.f32")]
    assert settled(results(chosen, compute))["float4_subnormals"] == value


def test_what_no_alternative_explains_decides_nothing():
    found = [r._replace(d=r.d ^ np.uint32(1)) for r in results(SETTLED, changed())]
    for result in found:
        assert set(conclude.conclude_unit(result).values()) == {conclude.UNEXPLAINED}
    assert set(settled(found).values()) == {conclude.UNDECIDED}


def test_units_that_disagree_leave_a_point_undecided():
    first = results(SETTLED[:1], changed(zero_products=True))
    second = results(SETTLED[1:], changed())
    assert settled([*first, *second])["zero_products"] == conclude.UNDECIDED


def test_without_a_model_nothing_is_said():
    unit = UNITS["RTX Blackwell", "mma.m16n8k32.e3m2.e3m2.f32"]
    assert unit.model("A100") is None
    found = asked(unit)
    result = conclude.Result(unit, None, found, found.c)
    assert set(settled([result]).values()) == {conclude.UNDECIDED}


# -- files and the command, by a simulated GPU -----------------------------------------


def test_a_run_is_recorded_and_judged(tmp_path, capsys):
    assert command._record(MadeUp(), tmp_path, "tf32") == 0
    printed = capsys.readouterr().out
    assert "DIFFER" not in printed
    assert printed.count("equal") == 3
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["points"]["depth of tf32 on Hopper and Blackwell"] == 8
    assert meta["points"]["floor"] == {"float32/25": -133}
    assert meta["conversions"]["cvt.rna.tf32.f32"]["opcodes"] is not None
    facts = meta["units"]["wgmma.m64n8k8.tf32.tf32.f32"]
    assert facts["as expected"] is True
    assert facts["places agree"] == facts["probes"] == 2313
    _, found = recordings.read(tmp_path)
    for recording in found:
        again = recordings.record(MadeUp(), recording.unit)
        for got, want in zip(recording.probes, again.probes, strict=True):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(recording.d, again.d)
        np.testing.assert_array_equal(recording.chain, again.chain)
    assert command.main(["--replay", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("equal") == 3


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "unit", ["wgmma.m64n8k32.e4m3.e5m2.f16", "mma.m16n8k16.e5m2.e4m3.f32"]
)
def test_units_of_other_kinds(unit, tmp_path, capsys):
    assert command._record(MadeUp(), tmp_path, unit) == 0
    assert capsys.readouterr().out.count("equal") == 1
    assert command.main(["--replay", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("equal") == 1


def test_a_wrong_layout_is_seen(tmp_path, capsys):
    class Turned(MadeUp):
        def run(self, unit, *arguments, **keywords):
            d = super().run(unit, *arguments, **keywords)
            return np.roll(d, 1, 2)

    assert command._record(Turned(), tmp_path, "k4.tf32") == 1
    assert "DIFFER" in capsys.readouterr().out


def test_differences_name_their_groups(tmp_path, capsys):
    class Flushing(MadeUp):
        def bulk(self, unit):
            return super().bulk(unit) + np.uint64(1)

        def run(self, unit, *arguments, **keywords):
            d = super().run(unit, *arguments, **keywords)
            return np.where(d & 0x7F800000 == 0, d & np.uint32(0x80000000), d)

    assert command._record(Flushing(), tmp_path, "k4.tf32") == 1
    printed = capsys.readouterr().out
    assert " differ" in printed
    assert "\ndiffers: mma.m16n8k4.tf32.tf32.f32\n" in printed
    assert command.main(["--replay", str(tmp_path)]) == 1
    capsys.readouterr()
    assert "    sub: " in printed
    assert "    align: " not in printed
    assert "    bulk: " in printed
    meta = json.loads((tmp_path / "meta.json").read_text())
    (each,) = meta["models"].values()
    first = each["differences"]["sub"]
    assert int(first["gpu"], 16) & 0x7FFFFFFF == 0
    assert int(first["model"], 16) & 0x7FFFFFFF < 0x00800000


def test_other_machine_instructions_are_said(tmp_path, capsys):
    class Assembled(MadeUp):
        def opcodes(self, file, options):
            return {"HMMA.1684.F32.TF32": 1}

    assert command._record(Assembled(), tmp_path, "mma.m16n8k4.tf32") == 0
    assert command._record(Assembled(), tmp_path, "mma.m16n8k8.tf32") == 1
    said = capsys.readouterr().out
    assert said.endswith(
        "opcodes other: mma.m16n8k8.tf32.tf32.f32\nplaces differ: none\n"
    )
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["units"]["mma.m16n8k8.tf32.tf32.f32"]["as expected"] is False


def test_what_was_recorded_before_a_hang_is_kept(tmp_path):
    """A hang in the second unit stops the program; the first unit's results stay."""

    class Hanging(MadeUp):
        def run(self, unit, *arguments, **keywords):
            if unit.k == 8:
                raise KeyboardInterrupt
            return super().run(unit, *arguments, **keywords)

    with pytest.raises(KeyboardInterrupt):
        command._record(Hanging(), tmp_path, "tf32")
    meta, found = recordings.read(tmp_path)
    assert [x.unit.name for x in found] == ["mma.m16n8k4.tf32.tf32.f32"]
    assert "cvt.rna.tf32.f32" in meta["conversions"]
    assert command.main(["--replay", str(tmp_path)]) == 0


def test_who_is_stopped_while_writing_leaves_the_file_before(tmp_path):
    recordings.write(tmp_path, {"x": np.zeros(3)}, {"units": {}})
    with pytest.raises(TypeError):
        recordings.write(tmp_path, {"x": np.ones(3)}, {"units": {object()}})
    assert json.loads((tmp_path / "meta.json").read_text()) == {"units": {}}


def test_an_error_of_the_gpu_keeps_what_was_recorded(tmp_path, capsys):
    class Breaking(MadeUp):
        def run(self, unit, *arguments, **keywords):
            if unit.instruction == "wgmma":
                raise RuntimeError("illegal instruction")
            return super().run(unit, *arguments, **keywords)

    assert command._record(Breaking(), tmp_path, "tf32") == 1
    assert "RuntimeError: illegal instruction" in capsys.readouterr().err
    meta, found = recordings.read(tmp_path)
    assert len(found) == 2
    assert list(meta["errors"]) == ["wgmma.m64n8k8.tf32.tf32.f32"]
    with np.load(tmp_path / "golden.npz") as arrays:
        assert "cvt.rna.tf32.f32/digest" in arrays


def test_an_unknown_unit_and_a_gpu_without_tensor_cores(tmp_path):
    with pytest.raises(
        command.CudaError, match="no unit has the name 'e9m9'; it has mma"
    ):
        command._record(MadeUp(), tmp_path / "a", "e9m9")
    old = MadeUp()
    old.capability = (6, 1)
    with pytest.raises(command.CudaError, match="it has no tensor cores"):
        command._record(old, tmp_path / "a", "")
    assert not (tmp_path / "a").exists()


def test_cupy_is_imported_where_a_gpu_is_used():
    code = (
        "import sys, tools.tensor_core_recorder.command; print('cupy' in sys.modules)"
    )
    assert run_code(code) == "False"


def test_without_a_gpu_the_command_says_so(tmp_path, capsys):
    status = command.main(["--out", str(tmp_path / "out")])
    if status == 0:
        pytest.skip("there is a GPU")
    said = capsys.readouterr().err
    assert said.startswith("tensor_core_recorder: ")
    assert "pip install 'cupy-cuda13x" in said or "no NVIDIA GPU" in said
    assert not (tmp_path / "out").exists()


def test_a_replay_of_nothing(tmp_path, capsys):
    assert command.main(["--replay", str(tmp_path)]) == 1
    assert "meta.json" in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize("capability", CAPABILITIES, ids=instructions.architecture)
def test_all_of_it_is_below_a_megabyte(capability, tmp_path):
    """The results are random, and need at least as much space as real results."""
    rng = np.random.default_rng(0)
    arrays = {"boundaries": bulk_inputs.boundaries()}
    for unit in instructions.units(capability):
        found = asked(unit)
        n, chained = len(found.c), sum(tiles.LENGTHS.values())
        d = found.c ^ (rng.integers(0, 1 << 12, n).astype(np.uint32) << np.uint32(13))
        scaled = d if unit.instruction == "wgmma" else None
        agrees, digests = np.ones(n, bool), rng.integers(0, 1 << 63, 160, np.uint64)
        d = d & np.uint32(0xFFFF) if unit.half else d
        arrays |= recordings.to_arrays(
            recordings.Recording(unit, found, d, agrees, d[:chained], scaled, digests)
        )
    for conversion in bulk_inputs.conversions(capability):
        arrays[f"{conversion.name}/y"] = arrays["boundaries"] & np.uint32(0xFFFFE000)
        arrays[f"{conversion.name}/digest"] = rng.integers(0, 1 << 63, 256, np.uint64)
    np.savez_compressed(tmp_path / "golden.npz", **arrays)
    size = (tmp_path / "golden.npz").stat().st_size
    print(instructions.architecture(capability), size)
    assert size < 1_000_000
