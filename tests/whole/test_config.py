"""`td.show_config`: versions, and the instruction sets of the build and of the CPU."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import tf32dtype as td

pytestmark = pytest.mark.once

KNOWN = td._core.instruction_sets()


def test_dictionary():
    found = td.show_config(mode="dicts")
    assert found["version"] == td.__version__
    assert found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    sets = found["instruction_sets"]
    available = [name for name in sets["built"] if name in sets["cpu"]]
    assert available == td._core.available_isas()
    assert "baseline" in available
    assert sets["used"] == td.isa()
    assert {*sets["built"], *sets["cpu"]} <= {name for name, _, _ in KNOWN}


def test_text(capsys):
    assert td.show_config() is None
    text = capsys.readouterr().out
    assert f"tf32dtype {td.__version__}, NumPy {np.__version__}, Python" in text
    assert f"instruction set in use: {td.isa()}\n" in text


@pytest.mark.parametrize(
    ("facts", "better"),
    [
        ([("baseline", True, True), ("fast", True, True)], ""),
        ([("baseline", True, True), ("fast", False, True)], "fast"),
        ([("baseline", True, True), ("fast", True, False)], ""),
        ([("baseline", True, True), ("fast", False, False)], ""),
        ([("baseline", True, True), ("mid", True, True), ("top", False, True)], "top"),
        ([("baseline", True, True), ("mid", False, True), ("top", True, True)], ""),
    ],
)
def test_a_better_set_is_named(facts, better, monkeypatch, capsys):
    monkeypatch.setattr(td._core, "instruction_sets", lambda: facts)
    td.show_config()
    text = capsys.readouterr().out
    assert ("leaves out" in text) == bool(better)
    assert f"This CPU has {better}" in text or not better


def test_mode_is_checked():
    with pytest.raises(ValueError, match="'stdout' or 'dicts'; got 'html'"):
        td.show_config("html")
