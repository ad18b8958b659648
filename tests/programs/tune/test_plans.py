"""Plans: their file, the lines they match, and their effect in the engine."""

from __future__ import annotations

import contextvars
import json
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tf32dtype as td
from tests.support import forks
from tf32dtype import _core
from tf32dtype._programs.operand import Operand
from tf32dtype._programs.plan_lines import Line, LineError, find_line, name_line
from tf32dtype._programs.plans import Plan, PlannedCallSite, plan_text, read_plan

pytestmark = pytest.mark.once

X = np.linspace(-1, 1, 900, dtype=np.float32).reshape(30, 30)
needs_frames = pytest.mark.skipif(
    not (_core.blas_available() and _core.frames_are_known()),
    reason="needs Linux, and CPython 3.11 to 3.14",
)


def rounded(precision: str, x: NDArray[Any] = X) -> bytes:
    return bytes(td.matmul(x, x, precision=precision).tobytes())


# -- the file ----------------------------------------------------------------------

# For st.characters, hypothesis would first classify all of Unicode.
alphabet = "".join(map(chr, range(0x300))) + "\u2028\ufeff\uffff\U0001f600"
texts = st.text(alphabet, min_size=1, max_size=20)
counts = st.integers(1, 5).flatmap(
    lambda of: st.tuples(st.integers(1, of), st.just(of))
)
lines = st.builds(
    lambda file, function, text, count: Line(file, function, text, *count),
    texts, texts, texts, counts,
)  # fmt: skip
operands = st.builds(
    lambda count, *rest: Operand(*count, *rest),
    counts,
    st.sampled_from("AB"),
    st.integers(1, 2**62),
    st.integers(1, 9),
    st.sampled_from(["", "0123456789abcdef"]),
    st.just("") | texts,
)
sites = st.builds(
    PlannedCallSite,
    st.sampled_from([None, "bf16", "tf32"]),
    lines,
    st.none() | lines,
    st.just("gemm"),
    st.just("float32"),
    st.sampled_from([None, "bf16", "none"]),
    st.none() | operands,
)
plans = st.builds(
    Plan,
    st.lists(sites, max_size=3).map(tuple),
    st.sampled_from([None, "bf16"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(
        [(), (("check", 'regex:"\\d\n'), ("tolerance", 1e-6), ("final", True))]
    ),
    st.sampled_from([None, "bf16"]),
)


@pytest.mark.parametrize(
    "examples", [25, pytest.param(100, marks=pytest.mark.exhaustive)]
)
def test_a_plan_is_read_as_it_was_written(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "round.toml"

    @settings(max_examples=examples)
    @given(plans)
    def check(plan: Plan) -> None:
        path.write_text(plan_text(plan), encoding="utf-8")
        assert read_plan(str(path)) == plan

    check()


ONE_OPERAND = (
    "version = 1\n[[call_site]]\nprecision = 'bf16'\noperand = {}\n"
    "user = {{file = 'x', function = 'f', text = 't'}}"
)
SHAPE = ", side = 'A', rows = 1, columns = 1}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "No such file"),
        ("version = ", "is not valid TOML"),
        ("", "version must be 1; got None"),
        ("version = 1\ndefault = 'bf17'", "precision must be one of"),
        ("version = 1\nfloat64 = 1", "float64 must be a boolean; got 1"),
        ("version = 1\ncolor = 1", "a plan cannot have the key 'color'"),
        (
            "version = 1\n[[call_site]]\nprecision = 'bf16'",
            "a call site must have user",
        ),
        (
            "version = 1\n[[call_site]]\n"
            "user = {file = 'x', function = 'f', text = 't'}",
            "precision must be given",
        ),
        (
            "version = 1\n[[call_site]]\nprecision = 'bf16'\n"
            "user = {file = 'x', function = 'f', text = 't', count = 3}",
            "count must be from 1 to of = 1; got 3",
        ),
        (ONE_OPERAND.format("[1]"), "operand must be {number"),
        (ONE_OPERAND.format("{number = 1}"), "of must be given"),
        (ONE_OPERAND.format("{number = 2, of = 1" + SHAPE), "number must be from 1 to"),
        (ONE_OPERAND.format("{number = 1, of = 2000" + SHAPE), "at most 1024; got 1"),
        (
            ONE_OPERAND.format(
                "{number = 1, of = 1, side = 'C', rows = 1, columns = 1}"
            ),
            "side must be 'A' or 'B'; got 'C'",
        ),
        (
            ONE_OPERAND.format(
                "{number = 1, of = 1, side = 'A', rows = 0, columns = 1}"
            ),
            "an operand must have a shape; got 0 x 1",
        ),
        (
            ONE_OPERAND.format("{number = 1, of = 1, digest = 'x'" + SHAPE),
            "digest must be 16 hexadecimal digits; got 'x'",
        ),
    ],
)
@needs_frames
def test_what_is_no_plan(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "plan.toml"
    if text is not None:
        path.write_text(text)
    for function in (td.matmul_precision, td.set_matmul_precision):
        with pytest.raises(ValueError, match=f"plan.toml.*{complaint}"):
            function(plan=path)
    done = forks.python(
        "-m", "tf32dtype", "run", "--plan", path, "nothing.py", cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tf32dtype run: ")
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr


@needs_frames
def test_a_plan_goes_with_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("version = 1\n")
    with pytest.raises(ValueError, match="float64 must not be given with a plan"):
        td.matmul_precision(plan=path, float64=True)
    with pytest.raises(ValueError, match="precision must not be given with a plan"):
        td.set_matmul_precision("bf16", plan=path)
    for words in (["--precision", "bf16"], ["--no-blas"], ["--dots"]):
        done = forks.python(
            "-m", "tf32dtype", "run", "--plan", path, *words, "x.py", cwd=tmp_path
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


# -- lines -------------------------------------------------------------------------

SOURCE = """import numpy as np

class Model:
    def step(self, x):
        first = x @ x
        return first

    def twice(self, x):
        y = x @ x
        y = x @ x
        return [z @ z for z in (lambda: x @ x)()]

def outer(x):
    def inner(x):
        return x @ x
    return inner(x)
"""
NAMED = {
    5: ("Model.step", 1, 1),
    9: ("Model.twice", 1, 2),
    10: ("Model.twice", 2, 2),
    11: ("Model.twice", 1, 1),
    15: ("outer.<locals>.inner", 1, 1),
}


def test_lines_are_named_and_found(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    where = [str(tmp_path)]
    for number, (function, count, of) in NAMED.items():
        line = name_line(str(path), number, "", where)
        assert line is not None
        assert (line.file, line.function) == ("model.py", function)
        assert (line.count, line.of) == (count, of)
        assert find_line(line, where) == (str(path), number)
    assert name_line(str(path), 99, "", where) is None
    assert name_line("<string>", 1, "", where) is None


def test_lines_outlive_edits_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    where = [str(tmp_path)]
    known = {number: name_line(str(path), number, "", where) for number in NAMED}
    edited = "# a comment\n\ndef more(x):\n    first = x @ x\n\n" + SOURCE
    path.write_text(edited.replace("        first", "\n        a = 1\n        first"))
    for number, line in known.items():
        assert line is not None
        _, found = find_line(line, where)
        text = path.read_text().split("\n")[found - 1]
        assert text.strip() == SOURCE.split("\n")[number - 1].strip()
        assert found > number


@pytest.mark.parametrize(
    ("edited", "complaint"),
    [
        (SOURCE.replace("first = x @ x", "first = x @ -x"), "line not found in"),
        (SOURCE.replace("first = x @ x", "first = x @ x\n        first = x @ x"),
         "got 2 equal lines"),
        (SOURCE.replace("def step", "def leap"), "line not found in the file"),
        (SOURCE + "(", "cannot be read"),
        (None, "file not found"),
    ],
)  # fmt: skip
def test_lines_that_are_gone(
    tmp_path: Path, edited: str | None, complaint: str
) -> None:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    line = name_line(str(path), 5, "", [str(tmp_path)])
    assert line is not None
    path.unlink()
    if edited is not None:
        path.write_text(edited)
    with pytest.raises(LineError, match=complaint):
        find_line(line, [str(tmp_path)])


# -- the engine --------------------------------------------------------------------


def by_operator(x: Any) -> Any:
    first = x @ x
    second = x @ x.copy()
    return first, second


def by_method(x: Any) -> Any:
    first = x.dot(x)
    second = x.dot(x.copy())
    return first, second


def by_function(x: Any) -> Any:
    first = np.dot(x, x)
    second = np.tensordot(x, x, 1)
    return first, second


def by_scipy(x: Any) -> Any:
    from scipy.linalg.blas import sgemm  # type: ignore[import-untyped]

    first = sgemm(1.0, x, x)
    second = sgemm(1.0, x, x.copy())
    return first, second


def plan_of(path: Path, *found: tuple[str, str, str], **others: Any) -> Path:
    """Write a plan of function, line and precision of each call site in this file."""
    made = [
        PlannedCallSite(precision, Line(__file__, function, text))
        for function, text, precision in found
    ]
    path.write_text(plan_text(Plan(tuple(made), **others)))
    return path


@needs_frames
@pytest.mark.parametrize("function", [by_operator, by_method, by_function, by_scipy])
@pytest.mark.parametrize("default", [None, "bf16x3"])
def test_each_line_has_its_precision(
    tmp_path: Path, function: Callable[[Any], Any], default: str | None
) -> None:
    if function is by_scipy:
        pytest.importorskip("scipy")
    own = [y.tobytes() for y in function(X)]
    texts: dict[Any, str] = {
        by_operator: "second = x @ x.copy()",
        by_method: "second = x.dot(x.copy())",
        by_function: "second = np.tensordot(x, x, 1)",
        by_scipy: "second = sgemm(1.0, x, x.copy())",
    }
    first: dict[Any, str] = {
        by_operator: "first = x @ x",
        by_method: "first = x.dot(x)",
        by_function: "first = np.dot(x, x)",
        by_scipy: "first = sgemm(1.0, x, x)",
    }
    name = function.__name__
    both = plan_of(
        tmp_path / "both.toml",
        (name, first[function], "bf16"),
        (name, texts[function], "tf32"),
        default=default,
    )
    one = plan_of(
        tmp_path / "one.toml", (name, texts[function], "tf32"), default=default
    )
    with td.matmul_precision(plan=both):
        made = [np.ascontiguousarray(y).tobytes() for y in function(X)]
    assert made == [rounded("bf16"), rounded("tf32")]
    with td.matmul_precision(plan=one):
        made = [np.ascontiguousarray(y).tobytes() for y in function(X)]
        with td.matmul_precision(None):
            assert [y.tobytes() for y in function(X)] == own
    assert made[1] == rounded("tf32")
    if default:
        assert made[0] == rounded(default)
    elif function is not by_scipy:
        assert made[0] == own[0]
    assert [y.tobytes() for y in function(X)] == own


@pytest.mark.exhaustive
@needs_frames
def test_a_line_of_a_library_counts(tmp_path: Path) -> None:
    def product() -> Any:
        return np.tensordot(X, X, 1)

    library = Line("numpy/_core/numeric.py", "tensordot", "res = dot(at, bt)")
    path = tmp_path / "plan.toml"
    user = Line(__file__, product.__qualname__, "return np.tensordot(X, X, 1)")
    for sites, precision in (
        ([PlannedCallSite("bf16", None, library)], "bf16"),
        (
            [PlannedCallSite("bf16", user), PlannedCallSite("tf32", user, library)],
            "tf32",
        ),
    ):
        path.write_text(plan_text(Plan(tuple(sites))))
        with td.matmul_precision(plan=path):
            assert product().tobytes() == rounded(precision)


@needs_frames
def test_float64_and_dots_obey_where_the_plan_says_so(tmp_path: Path) -> None:
    wide = X.astype(np.float64)
    own = wide.dot(wide).tobytes()
    path = tmp_path / "plan.toml"
    narrow = rounded("bf16")
    for float64 in (False, True):
        path.write_text(plan_text(Plan((), "bf16", float64=float64)))
        with td.matmul_precision(plan=path):
            made = wide.dot(wide)
            assert X.dot(X).tobytes() == narrow
        assert (made.astype(np.float32).tobytes() == narrow) == float64
        assert (made.tobytes() == own) != float64


@needs_frames
def test_what_is_not_found_is_one_warning(tmp_path: Path) -> None:
    path = plan_of(
        tmp_path / "plan.toml",
        ("by_method", "first = x.dot(x)", "bf16"),
        ("by_method", "third = x.dot(x)", "bf16"),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with td.matmul_precision(plan=path):
            assert by_method(X)[0].tobytes() == rounded("bf16")
    (warning,) = caught
    assert "line not found in the file" in str(warning.message)
    assert "third = x.dot(x)" in str(warning.message)


@needs_frames
def test_the_command_tells_of_changed_code(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text("import sys\nsys.exit(7)\n")
    line = Line("gone.py", "<module>", "y = x @ x")
    (tmp_path / "plan.toml").write_text(
        plan_text(Plan((PlannedCallSite("bf16", line),)))
    )
    done = forks.python(
        "-m", "tf32dtype", "run", "--quiet", "--plan", "plan.toml", "gone.py",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 7
    assert done.stderr == (
        "tf32dtype run: plan.toml: line not found in the file: gone.py, <module>:"
        " 'y = x @ x'; none is used instead\n"
    )


@needs_frames
def test_threads_obey_their_own_places(tmp_path: Path) -> None:
    path = plan_of(
        tmp_path / "plan.toml",
        ("by_method", "first = x.dot(x)", "bf16"),
        ("by_method", "second = x.dot(x.copy())", "tf32"),
    )
    td.set_matmul_precision(plan=path)
    try:
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(by_method, [X] * 64))
    finally:
        td.set_matmul_precision(None)
    for first, second in made:
        assert first.tobytes() == rounded("bf16")
        assert second.tobytes() == rounded("tf32")


@needs_frames
def test_scopes_and_plans_are_told_apart(tmp_path: Path) -> None:
    text = "first = x.dot(x)"
    low, high = (
        plan_of(tmp_path / f"{name}.toml", ("by_method", text, name))
        for name in ("bf16", "tf32")
    )
    with td.matmul_precision(plan=low):
        with td.matmul_precision(plan=high):
            assert by_method(X)[0].tobytes() == rounded("tf32")
        assert by_method(X)[0].tobytes() == rounded("bf16")
        with td.matmul_precision("bf16x3", blas=True):
            assert by_method(X)[0].tobytes() == rounded("bf16x3")


@needs_frames
def test_an_empty_plan_changes_no_bit(tmp_path: Path) -> None:
    path = plan_of(tmp_path / "plan.toml", float64=True, complex64=True, dots=True)
    x = np.random.default_rng(0).standard_normal((3, 40, 40))
    for dtype in (np.float32, np.float64, np.complex64):
        y = x.astype(dtype)
        own = [f(y) for f in OWN]
        with td.matmul_precision(plan=path):
            made = [f(y) for f in OWN]
        for a, b in zip(own, made, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


OWN: list[Callable[[Any], Any]] = [
    lambda y: y @ y,
    lambda y: y[0] @ y[0].T,
    lambda y: np.dot(y, y),
    lambda y: np.dot(y[0], y[0, 0]),
    lambda y: np.inner(y[0], y[1]),
    lambda y: np.vdot(y[0, 0], y[0, 1]),
    lambda y: np.einsum("ij,jk,kl", y[0], y[1], y[2], optimize=True),
    lambda y: np.einsum("ij,ji", y[0], y[1], optimize=True),
]


# -- operands ------------------------------------------------------------------------

NET = """import sys
import numpy as np
rng = np.random.default_rng(int(sys.argv[1]))
weights = [rng.standard_normal((12, 12)).astype("f") for _ in range(6)]
x = np.random.default_rng(9).standard_normal((5, 12)).astype("f")
def linear(x, w):
    return {product}
outs = []
for w in weights:
    outs.append(linear(x, w))
    x = outs[-1] / np.float32(4)
np.save("out.npy", outs)
"""
WEIGHT_PRODUCTS = ["x @ w", "np.dot(x, w)", "x.dot(w)", "(w.T @ x.T).T", "x[:1] @ w"]


def net_plan(
    folder: Path, product: str, seed: int, precisions: dict[int, str]
) -> list[Operand]:
    """Write the program, and a plan for some layers; return the report's operands."""
    (folder / "net.py").write_text(NET.format(product=product))
    words = ("--no-trial", "--quiet", "--precision", "bf16", "--json", "r.json")
    done = forks.python("-m", "tf32dtype", "report", *words, "net.py", seed, cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = json.loads((folder / "r.json").read_text())["call_sites"]
    operands = [Operand(**row["operand"]) for row in rows]
    line = Line("net.py", "linear", f"return {product}")
    sites = [
        PlannedCallSite(precisions[one.number], line, operand=one)
        for one in operands
        if one.number in precisions
    ]
    (folder / "plan.toml").write_text(plan_text(Plan(tuple(sites))))
    return operands


def layers(folder: Path, seed: int) -> list[NDArray[Any]]:
    """Return the layers' results under the plan."""
    words = ("-m", "tf32dtype", "run", "--quiet", "--plan", "plan.toml", "net.py")
    done = forks.python(*words, seed, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return list(np.load(folder / "out.npy"))


def by_hand(product: str, seed: int, precisions: dict[int, str]) -> list[NDArray[Any]]:
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal((12, 12)).astype("f") for _ in range(6)]
    x = np.random.default_rng(9).standard_normal((5, 12)).astype("f")
    outs = []
    for number, w in enumerate(weights, 1):
        precision = precisions.get(number)
        with td.matmul_precision(precision, blas=precision is not None):
            outs.append(eval(product, {"x": x, "w": w, "np": np}))
        x = outs[-1] / np.float32(4)
    return outs


@pytest.mark.sampled(4)
@needs_frames
@pytest.mark.parametrize("product", WEIGHT_PRODUCTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_plan_lowers_one_layer(tmp_path: Path, product: str, seed: int) -> None:
    """Lower one layer, also for other weights (seed 1) than in the report."""
    lowered = {3: "bf16"}
    operands = net_plan(tmp_path, product, 0, lowered)
    assert [one.number for one in operands] == [1, 2, 3, 4, 5, 6]
    made = layers(tmp_path, seed)
    expected = by_hand(product, seed, lowered)
    for ours, theirs in zip(made, expected, strict=True):
        assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes()
    unchanged = by_hand(product, seed, {})
    assert made[1].tobytes() == np.ascontiguousarray(unchanged[1]).tobytes()
    assert made[2].tobytes() != np.ascontiguousarray(unchanged[2]).tobytes()


@needs_frames
def test_layers_of_a_plan_differ(tmp_path: Path) -> None:
    wanted = {1: "tf32", 3: "bf16", 6: "bf16x3"}
    net_plan(tmp_path, "x @ w", 0, wanted)
    for seed in (0, 1):
        made, expected = layers(tmp_path, seed), by_hand("x @ w", seed, wanted)
        assert [x.tobytes() for x in made] == [x.tobytes() for x in expected]


@needs_frames
def test_a_line_holds_for_other_operands(tmp_path: Path) -> None:
    def product(w: NDArray[Any], x: NDArray[Any] = X) -> NDArray[Any]:
        return x @ w

    line = Line(__file__, product.__qualname__, "return x @ w")
    weights = [X + 2, X + X, X - 1]
    with td.report(precision="bf16") as r:
        [product(w, X + i) for i, w in enumerate(weights)]
    digests = {}
    for site, *_ in r.call_sites:
        assert site.operand is not None
        digests[site.operand.number] = site.operand
    sites = [
        PlannedCallSite("tf32", line),
        PlannedCallSite("bf16", line, operand=digests[2]),
        PlannedCallSite(None, line, operand=digests[3]),
    ]
    path = tmp_path / "plan.toml"
    path.write_text(plan_text(Plan(tuple(sites))))
    with td.matmul_precision(plan=path), ThreadPoolExecutor(4) as pool:
        found = [product(w).tobytes() for w in weights]
        context = contextvars.copy_context()
        again = [
            pool.submit(context.copy().run, product, w).result().tobytes()
            for w in weights * 8
        ]
    expected = [
        td.matmul(X, X + 2, precision="tf32").tobytes(),
        td.matmul(X, X + X, precision="bf16").tobytes(),
        (X @ (X - 1)).tobytes(),
    ]
    assert found == expected
    assert again == expected * 8
