"""The models against the results of an H100 in tests/data/h100.
tools/tensor_core_recorder recorded them, with the versions of all software and
hardware."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT
from tf32dtype.tensor_core import models
from tools.tensor_core_recorder import bulk_inputs, conclude, recordings

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def recorded():
    return recordings.read(ROOT / "tests" / "data" / "h100")


@pytest.mark.parametrize(
    "judged", [1, pytest.param(bulk_inputs.JUDGED, marks=pytest.mark.exhaustive)]
)
def test_all_results_are_the_models(judged, recorded, compared, monkeypatch):
    """`judged` chunks of bulk results of each unit match the models. The last test
    judges all chunks of one unit."""
    monkeypatch.setattr(bulk_inputs, "JUDGED", judged)
    _, found = recorded
    each, points = recordings.judge(found, "H100")
    assert {x for x in each if each[x]["differences"] != {}} == set()
    compared(sum(len(x.probes.a) for x in found))
    for name, point in models.POINTS.items():
        if point.settled_by == "H100":
            assert points[name] == point.value, name
    assert {fraction for _, fraction in points["floor"]} == {25}
    assert points["floor"].items() <= models.POINTS["floor"].value.items()
    assert points["scale_input_d"] == conclude.UNDECIDED


def test_machine_instructions_and_places(recorded):
    meta, _ = recorded
    assert meta["gpu"] == "NVIDIA H100 80GB HBM3"
    assert meta["driver"].startswith("580.")
    assert not meta["errors"]
    for name, facts in meta["units"].items():
        assert facts["as expected"], name
        assert facts["places agree"] == facts["probes"] > 1000, name


def test_every_row_is_recorded(recorded):
    _, found = recorded
    units = {x.unit.model("H100") for x in found}
    for model in models.ALIGNED:
        if model.device == "H100":
            assert model.verified == "recorded", model.name
            assert model in units, model.name


def test_a_difference_would_show(recorded):
    _, found = recorded
    one = next(x for x in found if x.unit.name == "wgmma.m64n8k8.tf32.tf32.f32")
    wrong = one.d.copy()
    wrong[7] ^= 1
    each, _ = recordings.judge([one._replace(d=wrong)], "H100")
    (differences,) = (x["differences"] for x in each.values())
    assert sum(group["wrong"] for group in differences.values()) == 1
