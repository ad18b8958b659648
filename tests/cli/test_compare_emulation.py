"""`tf32dtype compare --precision exact,crt8,int8x4`: against the exact product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import complaint, plain, report

NAMES = "exact,crt5,crt7,crt8,crt13,crt8_fast,int8x4,int8x8"


@pytest.fixture(autouse=True)
def _factors(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    np.save("A.npy", rng.standard_normal((30, 90), np.float32))
    np.save("B.npy", rng.standard_normal((90, 40), np.float32))


def test_the_record_against_td_matmul(capsys: Any) -> None:
    a, b = np.load("A.npy"), np.load("B.npy")
    found = report(capsys, "compare", "A.npy", "B.npy", "--precision", NAMES)
    assert "formats" not in found
    assert "precisions" not in found
    record = found["emulation"]
    assert record["dtype"] == "float32"
    names = [row["precision"] for row in record["products"]]
    assert names == ["float32", "float64", *NAMES.split(",")]
    exact = td.matmul(a, b, precision="exact")
    wide = td.matmul(a, b, precision="exact", dtype=np.float64)
    magnitudes = np.abs(a).astype(float) @ np.abs(b).astype(float)
    for row in record["products"][2:]:
        product = td.matmul(a, b, precision=row["precision"])
        unrounded = td.matmul(a, b, precision=row["precision"], dtype=np.float64)
        assert row["correctly_rounded"] == (product == exact).mean()
        assert row["largest_ulps"] == td.ulp_distance(product, exact).max()
        error = (np.abs(unrounded - wide) / magnitudes).max()
        assert row["largest_error"] == pytest.approx(error)
    assert record["as_accurate_as_float32"] == ["int8x4", "crt7", "crt8_fast"]
    assert record["correctly_rounded"] == ["int8x8", "crt13"]
    assert record["as_accurate_as_float64"] == ["int8x8", "crt13"]
    assert record["moduli_without_truncation"] in range(10, 14)


def test_the_text(capsys: Any) -> None:
    text = plain(capsys, "compare", "A.npy", "B.npy", "--precision", "CRT13,tf32,crt5")
    assert "Error of A @ B (float32) in each precision" in text
    assert "Error of A @ B (float32), relative to the exact product" in text
    assert "As accurate as NumPy's float32: crt13\n" in text
    assert "All float32 results rounded correctly: crt13\n" in text
    assert "no number is truncated from crt" in text
    text = plain(capsys, "compare", "A.npy", "B.npy", "--precision", "crt5")
    assert text.count(": none of these\n") == 3


def test_float64_operands(capsys: Any) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((9, 50)), rng.standard_normal((50, 8))
    a[0, 0] *= 2.0**200
    np.save("A.npy", a)
    np.save("B.npy", b)
    command = ("compare", "A.npy", "B.npy", "--precision", "crt7,crt17,int8x6")
    record = report(capsys, *command)["emulation"]
    assert record["dtype"] == "float64"
    assert record["row_span"] >= 200
    assert record["moduli_without_truncation"] is None
    text = plain(capsys, *command)
    assert "all emulated precisions up to crt20 truncate numbers" in text
    assert "As accurate as NumPy's float64: crt17\n" in text


def test_a_product_that_overflows_in_float32(capsys: Any) -> None:
    rng = np.random.default_rng(1)
    for name, shape in (("A.npy", (20, 100)), ("B.npy", (100, 20))):
        exponents = rng.integers(-200, 200, shape)
        np.save(name, np.ldexp(rng.standard_normal(shape), exponents))
    command = ("compare", "A.npy", "B.npy", "--precision", "exact,crt7,crt20")
    found = report(capsys, *command)
    single, *_ = found["emulation"]["products"]
    assert single["correctly_rounded"] == 0
    assert single["largest_error"] == "inf"
    assert single["largest_ulps"] is None
    assert found["emulation"]["as_accurate_as_float32"] == ["crt7"]
    assert found["condition"]["float32_overflows"]
    assert found["condition"]["float32_bound_largest"] == "inf"
    text = plain(capsys, *command)
    assert "Error bound of float32 sums: none, since A, B or sum |x_i y_i|" in text
    [row] = [line.split() for line in text.splitlines() if line.startswith("float32 ")]
    assert row == ["float32", "0", "%", "-", "inf"]


def test_results_that_are_rightly_infinite(capsys: Any) -> None:
    np.save("A.npy", np.full((2, 3), 3e38, np.float32))
    np.save("B.npy", np.full((3, 2), 3e38, np.float32))
    command = ("compare", "A.npy", "B.npy", "--precision", "exact")
    for row in report(capsys, *command)["emulation"]["products"]:
        assert row["correctly_rounded"] == 1
        assert row["largest_ulps"] == 0


def test_exact_without_emulated_precisions_has_no_conclusions(capsys: Any) -> None:
    command = ("compare", "A.npy", "B.npy", "--precision", "exact")
    assert [*report(capsys, *command)["emulation"]] == ["dtype", "products"]
    assert plain(capsys, *command).splitlines()[-1].startswith("exact ")


def test_operands_of_more_bits_than_float64(capsys: Any) -> None:
    command = ("compare", "A.npy", "B.npy", "--precision", "exact")
    record = report(capsys, *command)["condition"]
    np.save("A.npy", np.load("A.npy").astype(np.longdouble))
    assert report(capsys, *command)["condition"] == record
    third = np.longdouble(1) / 3
    if third == float(third):
        pytest.skip("longdouble is float64")
    for number in (third, np.int64(2**53 + 1)):
        np.save("A.npy", np.full((30, 90), number))
        message = f"float64; got {number.dtype} with more bits. Save x.astype"
        assert message in complaint(capsys, *command)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "H100"), "--precision crt8 must not be given with --device"),
        (("--target-db", "40"), "--target-db must not be given with --precision crt8"),
    ],
)
def test_options_that_make_no_sense(
    options: tuple[str, ...], message: str, capsys: Any
) -> None:
    command = ("compare", "A.npy", "B.npy", "--precision", "crt8", *options)
    assert message in complaint(capsys, *command)


@pytest.mark.parametrize("name", ["crt", "crt1", "CRT21", "crt2fast", "int8x100"])
def test_unknown_numbers_of_moduli(name: Any, capsys: Any) -> None:
    fix = "Use crtN, crtN_fast or int8xN with N from 2 to 20"
    command = ("compare", "A.npy", "B.npy", "--precision", name)
    message = complaint(capsys, *command)
    assert "precision must be one of" in message
    assert message.endswith(f"got {name!r}. {fix}\n")
    with pytest.raises(ValueError, match=f"got {name!r}. {fix}"):
        td.matmul(np.eye(2), np.eye(2), precision=name)


@pytest.mark.parametrize("name", ["exakt", "int8x_4"])
def test_names_with_errors(name: str, capsys: Any) -> None:
    command = ("compare", "A.npy", "B.npy", "--precision", name)
    near = {"exakt": "exact?", "int8x_4": "int8x4"}[name]
    assert f"Did you mean {near}" in complaint(capsys, *command)
