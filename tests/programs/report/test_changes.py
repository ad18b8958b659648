"""The change of numbers between two outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf32dtype._programs.report.changes import (
    PRINTED,
    Change,
    compare,
    has_numbers,
    read_output,
    values_of,
)

pytestmark = pytest.mark.once
INF = float("inf")


def change(first: Any, other: Any, again: Any = None) -> Change | None:
    """Return the only change, or None if nothing was compared."""
    outputs = [{PRINTED: x} for x in (first, first if again is None else again, other)]
    changes, _ = compare(*outputs, tolerance=0.01)
    assert len(changes) <= 1
    return changes[0] if changes else None


@pytest.mark.parametrize(
    ("first", "other", "largest", "example"),
    [
        ("inertia 32852", "inertia 129957", 97105 / 32852, "inertia 32852 -> 129957"),
        ("mean 1 2", "mean 1 3", 0.5, "mean 2 -> 3"),
        ("a 1 b 2.0", "a 1 b 2.5", 0.25, "b 2.0 -> 2.5"),
        ("x = -1e-3, y", "x = -2e-3, y", 1, "x -1e-3 -> -2e-3"),
        ("bf16 v1.2.3 1", "bf16 v1.2.3 1", 0, ""),
        ("[1e-9 1.0]\n", "[2e-9 1.0]\n", 1e-9, "1e-9 -> 2e-9"),
        ("[[1 2]\n [3 4]] 5", "[[1 2]\n [3 4]] 6", 0.2, "5 -> 6"),
        ("0 1e-9\n2 1.0\n", "0 2e-9\n2 1.0\n", 1e-9, "1e-9 -> 2e-9"),
        ("x 1e-9\ny 1.0\n", "x 2e-9\ny 1.0\n", 1, "x 1e-9 -> 2e-9"),
        ("nan inf", "nan inf", 0, ""),
        ("error 1.5", "error nan", INF, "error 1.5 -> nan"),
        ("negative 0", "negative 13", INF, "negative 0 -> 13"),
        ("a cat 1", "a dog 1", INF, "'a cat 1' -> 'a dog 1'"),
        ("1 2", "1", INF, "'1 2' -> '1'"),
    ],
)
def test_text(first: str, other: str, largest: float, example: str) -> None:
    found = change(first, other)
    assert found is not None
    assert found.largest == pytest.approx(largest)
    assert found.example == example


@pytest.mark.parametrize(
    ("first", "other", "largest"),
    [
        ("[1.   2.25]", "[1.   2.26 ]", 0.01 / 2.25),
        ("[12.    2.25]", "[ 9.9   2.25]", 2.1 / 12),
        ("[[1. 2.]\n [3. 4.]]", "[[ 1.  2.]\n [ 3. 40.]]", 36 / 4),
        ("(1, 2)", "( 1,2 )", 0.0),
    ],
)
def test_padding_is_not_a_change(first: str, other: str, largest: float) -> None:
    ((change,), _) = compare({"": first}, {"": first}, {"": other}, 0.01)
    assert change.largest == pytest.approx(largest)


def test_times_and_noise_are_left_out() -> None:
    for text in ("took 1.5", "elapsed time: 3", "done in 0.25 s", "12 ms"):
        assert change(text, text.replace("1", "9").replace("2", "8")) is None
        assert not has_numbers({PRINTED: text})
    assert change("loss 1 seed 5", "loss 1 seed 7", again="loss 1 seed 6") == Change(
        PRINTED, 0.0, ""
    )
    assert change("cat 5", "dog 5", again="cow 5") is None


def test_arrays() -> None:
    x = np.array([[1, 2], [3, 0.0]])
    assert change(x, x) == Change(PRINTED, 0, "")
    found = change(x, np.where(x < 1, 1.5, x))
    assert found == Change(PRINTED, 0.5, "[1, 1] 0 -> 1.5")
    for other in (x[:1], np.where(x > 2, np.nan, x)):
        assert change(x, other).largest == INF  # type: ignore[union-attr]
    assert change(np.array(["a"]), np.array(["b"])).largest == INF  # type: ignore[union-attr]
    assert change(x, 2 * x, again=3 * x) is None


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "b.npz", x=np.arange(2), y=np.ones(1))
    (tmp_path / "c.txt").write_text("energy 3")
    (tmp_path / "d.bin").write_bytes(b"\0\xff\1")
    names = ["a.npy", "b.npz", "c.txt", "d.bin", "missing"]
    found = read_output(str(tmp_path), names, "printed")
    assert [*found] == [PRINTED, "a.npy", "b.npz x", "b.npz y", "c.txt"]
    missing, *_ = compare(found, found, {}, 0.01).changes
    assert (missing.largest, missing.example) == (INF, "missing")
    assert Change("a.npy", 0.5, "x").text == "a.npy changes by at most 50 % (x)"
    assert Change(PRINTED, 25, "x").text == (
        "the printed numbers change by at most 25 times the value (x)"
    )


def test_values() -> None:
    assert [*values_of({"a": 1, "b": [np.ones(2), 3.0]})] == ["a", "b[0]", "b[1]"]
    assert values_of(None) == {}
    assert values_of([1, 2])["the result"].shape == (2,)
