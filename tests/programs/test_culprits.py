"""Lines that lose accuracy, found by hand, and judgments by this reference."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.paths import BENCHMARKS

sys.path.extend(str(BENCHMARKS / name) for name in ("programs", "support"))

from advised_lines import (
    advised,
    left_high,
    line_number,
    read_arithmetic,
    read_plan,
    read_report,
)
from culprits import (
    PROGRAMS,
    block,
    culprits,
    judged,
    strict,
    with_infinities,
)
from lowered_lines import (
    ARITHMETIC,
    FORMATS,
    PRODUCTS,
    Program,
    change,
    printed_numbers,
    product,
    rounded,
)

pytestmark = pytest.mark.once

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
RESULTS = BENCHMARKS / "results" / "culprits.json"


# -- rounding ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bf16", "tf32", "f16"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_that_of_the_format(name: str, dtype: type) -> None:
    codes = np.random.default_rng(1).integers(0, 2**32, 100_000, np.uint32)
    x = codes.view(np.float32)
    with np.errstate(all="ignore"):
        found = rounded(x.astype(dtype), FORMATS[name])
        expected = x.astype(np.float16) if name == "f16" else td.quantize(x, name)
    assert found.dtype == dtype
    assert np.array_equal(found, expected.astype(dtype), equal_nan=True)


def test_float64_is_rounded_once() -> None:
    x = 1 + 2.0**-8 + 2.0**-40  # float32 would round it to a tie
    assert rounded(np.float64(x), FORMATS["bf16"]) == 1 + 2.0**-7


def test_a_product_of_parts_is_nearer() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 50, 50), np.float32)
    exact = a.astype(float) @ b

    def error(name: str) -> float:
        found = product(np.matmul, [a, b], FORMATS[name])
        return float(np.max(abs(found - exact)))

    errors = [error(x) for x in ("fp8_e4m3", "bf16", "tf32", "bf16x3", "bf16x9")]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 2
    with np.errstate(all="ignore"):
        ours = td.matmul(a, b, precision="bf16x3")
    found = product(np.matmul, [a, b], FORMATS["bf16x3"])
    assert np.allclose(found, ours, atol=1e-5)


# -- lowered lines -------------------------------------------------------------------

SOURCE = """import numpy as np
x = np.float32([1.001, 2.002])
a = x * 3
b = a
b += x
c = np.outer(x, x) @ a
print(a, x.sum(), np.exp(x), [7], -x | x if False else c)
n = 3
n *= 2.001
print(float(n), a is b)
"""


def printed(chosen: dict[tuple[int, str], str]) -> str:
    run = Program(SOURCE).run(chosen)
    assert not run.failure
    return run.printed


def test_an_unchanged_program_is_unchanged() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(SOURCE, {})
    assert printed({}) == out.getvalue()
    assert "True" in printed({}), "the array stays the same one"


def test_places_are_lines_and_kinds() -> None:
    seen = Program(SOURCE).run({}).seen
    assert set(seen) == {
        (3, ARITHMETIC),
        (5, ARITHMETIC),
        (6, ARITHMETIC),
        (6, PRODUCTS),
        (7, ARITHMETIC),
    }
    assert set(seen.values()) == {"float32"}


def test_only_the_chosen_line_is_lowered() -> None:
    x = np.float32([1.001, 2.002])
    with np.errstate(all="ignore"):
        low = td.quantize(x, "bf16").astype(np.float32)
        a = td.quantize(low * 3, "bf16").astype(np.float32)
    after = printed_numbers(printed({(3, ARITHMETIC): "bf16"}))
    assert np.allclose(after[0], a + x)
    before = printed_numbers(printed({}))
    assert np.array_equal(after[1], before[1])
    assert not np.array_equal(after[-2], before[-2]), "c follows"
    product_only = printed({(6, PRODUCTS): "bf16"})
    assert printed_numbers(product_only)[0].tolist() == before[0].tolist()
    assert change(printed({}), product_only) > 1e-4


@pytest.mark.parametrize(
    "operation",
    ["x.sum(axis=0)", "x.sum(axis=1)", "x / 5001", "x**3", "-x"],
)
def test_arithmetic_is_that_of_the_package(operation: str) -> None:
    source = (
        "import numpy as np\nrng = np.random.default_rng(3)\n"
        f"x = rng.random((300, 4), np.float32)\nprint(({operation}).tolist())"
    )
    by_hand = Program(source).run({(4, ARITHMETIC): "bf16"})
    out = io.StringIO()
    with td.arithmetic("bf16"), contextlib.redirect_stdout(out):
        exec(source, {})
    assert by_hand.printed == out.getvalue()
    assert by_hand.printed != Program(source).run({}).printed


def test_a_failure_is_told() -> None:
    run = Program("import numpy as np\nnp.linalg.inv(np.zeros((2, 2)))").run({})
    assert run.failure.startswith("LinAlgError")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a 100 b 2", "a 101 b 2", 0.01),
        ("a [100 1\n 2]", "a [100 2\n 2 ]", 0.01),
        ("a 1", "a nan", np.inf),
        ("a 0", "a 1e-3", np.inf),
        ("a [1 2]", "a [1]", np.inf),
        ("x3 = -1.5e-3", "x3 = -3e-3", 1.0),
    ],
)
def test_changes_are_relative(before: str, after: str, expected: float) -> None:
    assert change(before, after) == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_those_of_users(name: str) -> None:
    source = (PROGRAMS / f"{name}.py").read_text()
    assert 20 <= len(source.splitlines()) <= 60
    assert "tf32dtype" not in source
    assert re.findall("^ *(?:import|from) .*", source, re.M) == ["import numpy as np"]


# -- output of the commands ----------------------------------------------------------


def site(line: int, precision: str | None, dtype: str = "float32") -> dict[str, Any]:
    return {
        "user": {"file": "/x/p.py", "line": line, "function": "f"},
        "dtype": dtype,
        "verdict": {"precision": precision},
    }


def test_advised_lines_are_those_of_the_trial() -> None:
    sites = [site(3, "bf16"), site(3, "tf32"), site(4, None), site(4, "bf16")]
    sites += [site(5, "f32"), site(6, "f32", "float64")]
    assert advised(sites) == {3: "tf32", 6: "f32"}


def test_a_report_is_read() -> None:
    trial = {"why": "", "keeps_results": False, "changes": [{"largest": "inf"}]}
    found = read_report({"trial": trial, "call_sites": [site(3, "bf16")]})
    assert found["says"] == "changes"
    assert found["change"] == np.inf
    assert read_report({"trial": None, "call_sites": []})["says"] == "no trial"


def test_trials_of_lines_go_before_advice() -> None:
    advice = [
        {"kind": "canceled_digits", "text": "Lost: p.py:7 f: add (3 %); p.py:9: add"},
        {"kind": "largest_error", "text": "0.5 ulps at p.py:7 f: add, q.py:1 f: add"},
    ]
    report: dict[str, Any] = {"arithmetic": {"advice": advice}}
    found = read_arithmetic(report, "p.py")
    assert [x["line"] for x in found["blamed"]] == [7, 9]
    assert found["by"] == "canceled_digits"
    report["arithmetic"]["trials"] = [
        {"file": "/x/p.py", "line": line, "alone": alone, "without": 0.5}
        for line, alone in ((4, 0.1), (5, "inf"), (6, None), (8, 0.2))
    ]
    found = read_arithmetic(report, "p.py")
    assert [x["line"] for x in found["blamed"]] == [5, 6, 8, 4]
    assert found["by"] == "trials"
    assert found["says"] is None
    together = {"why": "", "keeps_results": True}
    report["arithmetic"] |= {"together": together, "trials": []}
    found = read_arithmetic(report, "p.py")
    assert (found["says"], found["blamed"]) == ("safe", [])


def test_a_plan_is_read() -> None:
    source = "a = b @ c\nd = e\na = b @ c\nx = y @ z\n"
    first = {"text": "a = b @ c", "count": 2, "of": 2}
    sites = [
        {"precision": "bf16", "user": first},
        {"precision": "tf32", "user": {"text": "x = y @ z"}},
        {"precision": "none", "user": {"text": "d = e"}},
    ]
    plan = {"call_site": sites, "check": {"distance": 0.5}}
    found = read_plan(plan, source)
    assert found["lines"] == {3: "bf16", 4: "tf32", 2: "none"}
    assert left_high(found["lines"]) == [2, 4]
    with pytest.raises(ValueError, match="no line"):
        line_number(source, {"text": "gone"})


# -- judgments ----------------------------------------------------------------------


def lines(**moved: float) -> list[dict[str, Any]]:
    return [{"line": int(name[1:]), "alone": x} for name, x in moved.items()]


def test_culprits_move_the_answer_most() -> None:
    assert culprits(lines(l1=0.009, l2=0.001), 0.01) == []
    assert culprits(lines(l1=0.1, l2=0.3, l3=0.02), 0.01) == [2, 1]
    assert culprits(lines(l1=5.0, l2=np.inf, l3=0.9), 0.01) == [2, 1]
    assert culprits(lines(l1=0.02, l2=0.3), 0.01, PRODUCTS) == []


def example(**changed: Any) -> dict[str, Any]:
    """Return a result: line 1 is the culprit of all, and line 2 that of products."""
    return {
        "all": 0.5,
        "all products": 0.2,
        "lines": [
            {"line": 1, "alone": 0.5, ARITHMETIC: 0.5},
            {"line": 2, "alone": 0.1, PRODUCTS: 0.2},
        ],
        "report": {"says": "changes", "by hand": 0.2},
        "arithmetic": {"blamed": [{"line": 1}], "change": 0.5},
        "tune": {"says": "safe", "by hand": 0.001, "lines": {2: "tf32"}},
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, []),
        ({"report": {"says": "safe", "by hand": 0.2}}, ["report: safe"]),
        ({"report": {"says": "safe", "by hand": 0.001}}, []),
        ({"arithmetic": {"blamed": [{"line": 2}, {"line": 1}]}}, ["arithmetic: blame"]),
        ({"arithmetic": {"blamed": []}}, ["arithmetic: blame", "arithmetic: named"]),
        (
            {"arithmetic": {"blamed": [{"line": 1}], "says": "safe"}},
            ["arithmetic: safe"],
        ),
        (
            {"tune": {"says": "safe", "by hand": 0.2, "lines": {2: "bf16"}}},
            ["tune: safe", "tune: high"],
        ),
        (
            {"tune": {"says": "safe", "by hand": 0.001, "lines": {3: "none"}}},
            ["tune: high"],
        ),
        ({"tune": {"says": "no plan", "by hand": 0.2, "lines": {}}}, []),
    ],
)
def test_judgments(changed: dict[str, Any], wrong: list[str]) -> None:
    found = judged(example(**changed), 0.01)
    assert sorted(x for x, agrees in found.items() if agrees is False) == sorted(wrong)


def test_infinities_survive_json() -> None:
    value = {"lines": {3: [1.0, np.inf]}, "text": "a"}
    assert with_infinities(json.loads(json.dumps(strict(value)))) == value


# -- results in the page -------------------------------------------------------------


def test_results_are_of_these_programs() -> None:
    """Check that programs are those measured; measure again after a change."""
    report = with_infinities(json.loads(RESULTS.read_text()))
    assert sorted(report["programs"]) == NAMES
    for name, found in report["programs"].items():
        source = (PROGRAMS / f"{name}.py").read_text().splitlines()
        for line in found["lines"]:
            assert source[line["line"] - 1].strip() == line["text"], name
    assert all(f"| `{name}` |" in block(report) for name in NAMES)


def test_what_the_document_says_of_differences() -> None:
    """Check that, but for one program, changes by hand and by tf32dtype are equal."""
    report = with_infinities(json.loads(RESULTS.read_text()))
    others = [
        name
        for name, found in report["programs"].items()
        if found["arithmetic"]["change"] != pytest.approx(found["all"], rel=0.05)
    ]
    assert others == ["lanczos"]
