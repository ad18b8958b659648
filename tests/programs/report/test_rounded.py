"""A program or a block whose arithmetic is in a format, and its report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks

PROGRAM = """
import numpy as np
x = np.array([1.001, 3, -2.5], np.float32)
print((x * x).tolist(), (np.outer(x, x) @ x).tolist(), flush=True)
"""
X = np.array([1.001, 3, -2.5], np.float32)


def expected() -> tuple[list[float], list[float]]:
    """Return the program's numbers in bfloat16, operation by operation."""

    def rounded(x: object) -> np.ndarray:
        return np.asarray(x, np.float32).astype(td.bfloat16).astype(np.float32)

    x = rounded(X)
    outer = rounded(np.multiply.outer(x, x))
    product = td.matmul(outer, X[:, np.newaxis], precision="bf16")[:, 0]
    return rounded(x * x).tolist(), product.tolist()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "squares.py").write_text(PROGRAM)
    return tmp_path


def test_run(program: Path) -> None:
    words = ["-m", "tf32dtype", "run", "--arithmetic", "bf16", "squares.py"]
    done = forks.python(*words, cwd=program)
    squares, product = expected()
    assert done.stdout == f"{squares} {product}\n"
    first, *others = done.stderr.splitlines()
    assert first == (
        "tf32dtype: 1 matrix multiplication ran in bf16 (100.0 % of all multiply-adds);"
        " 2 ufunc calls were rounded to bfloat16"
    )
    assert "  ufuncs: 2 multiply (12 results)" in others


SCALARS = """
import numpy as np
x = np.float32(1.001)
print(x + x, x / 3, -x, divmod(x, x))
"""


@pytest.mark.parametrize(
    ("code", "counts", "code_if_strict"),
    [
        ("x = np.ones(3000, np.float32)\n(x * x).sum()",
         {"multiply": (1, 3000), "add": (1, 1)}, 0),
        (SCALARS, {"add": (1, 1), "divide": (1, 1), "negative": (1, 1),
                   "divmod": (1, 2)}, 0),
        ("np.frexp(np.ones(5, np.float32)); np.ones(2) + 1", {"frexp": (1, 5)}, 0),
        ("np.isnan(np.ones(9, np.float32))", {}, 3),
    ],
)  # fmt: skip
def test_rounded_operations_are_counted(
    code: str,
    counts: dict[str, tuple[int, int]],
    code_if_strict: int,
    tmp_path: Path,
) -> None:
    (tmp_path / "x.py").write_text("import numpy as np\n" + code)
    words = ["-m", "tf32dtype", "run", "--arithmetic", "bf16", "--strict"]
    done = forks.python(*words, "--json", "r.json", "x.py", cwd=tmp_path)
    assert done.returncode == code_if_strict, done.stderr
    found = json.loads((tmp_path / "r.json").read_text())["arithmetic"]
    assert found["calls"] == sum(calls for calls, _ in counts.values())
    rows = found["by_ufunc"]
    assert {x["ufunc"]: (x["calls"], x["results"]) for x in rows} == counts
    assert all(f"1 {name} (" in done.stderr for name in counts)


def test_report(program: Path) -> None:
    words = ["-m", "tf32dtype", "report", "--arithmetic", "bf16", "--json", "r.json"]
    done = forks.python(*words, "squares.py", cwd=program)
    squares, product = expected()
    assert done.stdout.startswith(f"{squares} {product}\n")
    report = json.loads((program / "r.json").read_text())
    assert report["arithmetic"]["format"] == "bfloat16"
    rows = {row["function"]: row for row in report["arithmetic"]["call_sites"]}
    assert rows["multiply"]["user"]["line"] == 4
    assert [site["multiply_adds"] for site in report["call_sites"]] == [9]
    assert done.returncode == 0


def test_block() -> None:
    with td.report(arithmetic="bf16") as report:
        squares = X * X
        product = X[np.newaxis] @ np.eye(3, dtype=np.float32)
    assert squares.tolist() == expected()[0]
    assert product[0].tolist() == X.astype(td.bfloat16).tolist()
    assert report.call_sites[0].call_site.calls == 1
    assert (X * X).tolist() != squares.tolist()  # unchanged outside of the block


def test_a_format_without_a_precision_needs_one(program: Path) -> None:
    words = ["-m", "tf32dtype", "run", "--arithmetic", "float8_e3m4"]
    done = forks.python(*words, "squares.py", cwd=program)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Use --precision to name one" in done.stderr
    done = forks.python(*words, "--precision", "f32", "squares.py", cwd=program)
    assert (done.returncode, done.stdout.count("[")) == (0, 2)


@pytest.mark.parametrize("command", ["run", "report"])
def test_an_unknown_format(command: str, program: Path) -> None:
    words = ["-m", "tf32dtype", command, "--arithmetic", "bogus", "squares.py"]
    done = forks.python(*words, cwd=program)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "bogus" in done.stderr
