"""All stages give the bits of exact sums, and each stage is used where it should be."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tf32dtype as td
from tests.exact.stage_cases import (
    DTYPES,
    ROUNDINGS,
    Case,
    cases,
    differing,
    exact_rows,
)
from tests.support.interpreters import run
from tf32dtype import _core
from tf32dtype._exact import rows, stages

CASES = {case.name: case for case in cases(40, 97, 33, 0)}
ISAS = _core.available_isas()

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_dtype
@each_case
def test_same_bits_as_exact_sums(
    case: Case, dtype: np.dtype[Any], compared: Callable[..., None]
) -> None:
    for rounding in ROUNDINGS:
        assert differing(case, dtype, rounding) == 0, rounding
        compared(len(case.x) * len(case.y))


@each_dtype
@each_case
def test_tiles(
    case: Case, dtype: np.dtype[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "_TILE", 64)
    monkeypatch.setattr(stages, "_LEAST_HEIGHT", 3)
    monkeypatch.setattr(stages, "_PLACES", 300)
    monkeypatch.setattr(rows, "_DEPTH", 20)
    assert differing(case, dtype, 0) == 0


@pytest.mark.exhaustive
@each_dtype
@each_case
@pytest.mark.parametrize("shape", [(300, 700, 200), (70, 3000, 90), (1030, 40, 530)])
def test_larger(case: Case, dtype: np.dtype[Any], shape: tuple[int, int, int]) -> None:
    larger = next(x for x in cases(*shape, 2) if x.name == case.name)
    for rounding in (0, 3):
        assert differing(larger, dtype, rounding) == 0


@given(st.data())
def test_any_exponents(data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(5, 12)) for _ in range(3))
    k *= data.draw(st.sampled_from([12, 60]))
    seed = data.draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    operands = []
    for count in (m, n):
        low = data.draw(st.integers(-1060, 900))
        high = data.draw(st.integers(low + 1, min(low + 400, 1010)))
        x = np.ldexp(
            rng.standard_normal((count, k)), rng.integers(low, high, (count, k))
        )
        operands.append(x)
    x, y = operands
    if data.draw(st.booleans()):
        x, y = np.hstack([x, -x]), np.hstack([y, y * (1 + 2.0**-30)])
    for dtype in DTYPES:
        assert (
            differing(Case("", x, y), dtype, data.draw(st.sampled_from(ROUNDINGS))) == 0
        )


# -- operands as they are in memory ---------------------------------------------------

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "apart": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
}
LAYOUTS["columns apart"] = lambda x: LAYOUTS["apart"](x.T).T
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


@each_dtype
@each_layout
@pytest.mark.parametrize(
    "name", ["float32", "float32 subnormal", "float32 large", "canceling", "special"]
)
def test_float32_operands(
    name: str, layout: Callable[[Any], Any], dtype: np.dtype[Any]
) -> None:
    case = next(case for case in cases(31, 421, 50, 4) if case.name == name)
    x, y = (z.astype(np.float32) for z in case[1:])
    wanted = exact_rows(x.astype(np.float64), y.astype(np.float64), dtype, 0)
    found = stages.multiply_rows(layout(x), layout(y), dtype, 0)[0]
    assert found.tobytes() == wanted.tobytes()


@each_layout
@pytest.mark.parametrize("shape", [(1201, 5, 533), (19, 600, 35), (7, 0, 20)])
def test_float64_products(
    shape: tuple[int, int, int], layout: Callable[[Any], Any]
) -> None:
    rng = np.random.default_rng(1)
    m, k, n = shape
    a, b = rng.integers(-99, 99, (m, k)), rng.integers(-99, 99, (k, n))
    for one, other in itertools.product((np.float32, np.float64), repeat=2):
        out = np.full((m, n), np.nan)
        _core.float64_matmul(layout(a.astype(one)), layout(b.astype(other)), out)
        assert (out == a @ b).all()


@each_layout
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_facts(dtype: Any, layout: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((45, 37)).astype(dtype)
    x[3], x[4, 5], x[17, 36], x[20, 0], x[44, 1] = 0, 0, np.inf, np.nan, -np.inf
    x[21] = 2.0**-140 * np.rint(9 * x[21])
    facts, extremes = _core.exact_facts(layout(x))
    assert extremes[2] == np.inf
    usual = np.isfinite(x).all(1)
    assert (np.isfinite(facts[3]) == usual).all()
    for row, found in zip(x[usual].tolist(), facts[:, usual].T, strict=True):
        norm, ratio, unit, largest = found
        units = [Fraction(1, Fraction(v).denominator) for v in row if v]
        assert largest == max(map(abs, row))
        assert all(Fraction(v) / Fraction(unit) % 1 == 0 for v in row if v)
        assert not units or unit >= min(units)
        squares = sum(Fraction(v) ** 2 for v in row)
        assert squares <= Fraction(norm) ** 2 <= squares * (1 + Fraction(1, 2**40))
        assert not units or Fraction(ratio) ** 2 * Fraction(unit) ** 2 >= squares
    facts, extremes = _core.exact_facts(layout(x[usual]))
    assert extremes == (facts[0].max(), facts[2].min(), facts[3].max())


# -- which stage decides --------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the results that each stage computes, or its calls."""
    counts: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        own = getattr(_core, name)

        def counted(*arguments: Any) -> Any:
            result = own(*arguments)
            if name == "exact_elements":
                counts["dot products"] += len(arguments[3])
                counts["exact sums"] += result
            elif name == "exact_round":  # of a product, if terms are its operands
                counts["float64_matmul"] += isinstance(arguments[0], tuple)
            else:
                counts[name] += 1
            return result

        return counted

    names = [name for name in dir(_core) if not name.startswith("__")]
    stand_in = SimpleNamespace(**{name: getattr(_core, name) for name in names})
    for name in (
        "float64_matmul",
        "exact_round",
        "exact_slice",
        "exact_elements",
    ):
        setattr(stand_in, name, counting(name))
    for module in (stages, rows):
        monkeypatch.setattr(module, "_core", stand_in)
    return counts


@pytest.mark.parametrize("name", ["bfloat16", "integers", "float32"])
def test_the_first_stage_decides(name: str, calls: Counter[str]) -> None:
    assert differing(CASES[name], DTYPES[0], 0) == 0
    assert calls["float64_matmul"] == 1
    assert calls["dot products"] < 10
    assert calls["exact sums"] == 0


def test_exact_float64_products_need_one_product(calls: Counter[str]) -> None:
    assert differing(CASES["integers"], DTYPES[1], 0) == 0
    assert calls == {"float64_matmul": 1}


@pytest.mark.parametrize("name", ["normal", "float32", "canceling", "zero"])
def test_slices_decide_float64(name: str, calls: Counter[str]) -> None:
    assert differing(CASES[name], DTYPES[1], 0) == 0
    assert 4 <= calls["float64_matmul"] <= 6
    assert calls["dot products"] < 50
    assert calls["exact sums"] == 0


def test_slices_decide_canceling_float32(calls: Counter[str]) -> None:
    assert differing(CASES["canceling more"], DTYPES[0], 0) == 0
    assert 4 <= calls["float64_matmul"] <= 17
    assert calls["exact sums"] == 0


def test_exact_sums_decide_the_rest(calls: Counter[str]) -> None:
    assert differing(CASES["2^-1050 to 2^1000"], DTYPES[1], 0) == 0
    assert calls["exact sums"] > 1000


def test_small_rests_of_midpoints(calls: Counter[str]) -> None:
    """One slice of each row gives a midpoint of float32; the rest is below 2^-60."""
    x, y = np.zeros((2, 32, 64))
    x[:, :3] = 1, 2.0**-12, 1
    y[:, :3] = 1, 2.0**-12, 2.0**-75
    assert differing(Case("", x, y), DTYPES[0], 0) == 0
    assert calls["exact_slice"] > 0


# -- faults ---------------------------------------------------------------------------


def near_midpoints(noise: float) -> Case:
    """Return products that are `noise` away from midpoints of float32 near 1."""
    rng = np.random.default_rng(9)
    k = 40
    x, y = 1024 * rng.standard_normal((64, k)), rng.standard_normal((64, k))
    x, y = np.hstack([x, -x]), np.hstack([y, y])
    x = np.hstack([x, np.ones((64, 3))])
    tail = np.stack(
        [np.ones(64), np.full(64, 2.0**-24), noise * rng.choice([-1, 1], 64)]
    )
    return Case("", x, np.hstack([y, tail.T]))


def test_a_float64_bound_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    case = near_midpoints(2.0**-56)
    assert differing(case, DTYPES[0], 0) == 0
    monkeypatch.setattr(stages, "float64_error", lambda k: k * 2.0**-70)
    assert differing(case, DTYPES[0], 0) > 0


def test_a_compensated_bound_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = near_midpoints(2.0**-110)
    pairs = np.stack(np.divmod(np.arange(64**2), 64), axis=1)
    wanted = exact_rows(case.x, case.y, DTYPES[0], 0).reshape(-1)

    def found() -> Any:
        return stages.multiply_pairs(case.x, case.y, DTYPES[0], 0, pairs)[0]

    assert (found() == wanted).all()
    monkeypatch.setattr(stages, "compensated_error", lambda k: k * 2.0**-126)
    assert (found() != wanted).any()


def test_rests_of_slices_that_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["normal"]
    monkeypatch.setattr(
        stages._Product,
        "_rest_bounds",
        lambda self, known, rows: [(self._x.norms[rows] * 0, self._y.norms * 0)],
    )
    monkeypatch.setattr(stages, "_STEPS", (2.0**-40, 2.0**-60))
    assert differing(case, DTYPES[1], 0) > 0


# -- machines --------------------------------------------------------------------------


@pytest.mark.parametrize("isa", ISAS)
def test_same_bits_on_each_instruction_set(isa: str) -> None:
    wanted = run("-W", "ignore", "-m", "tests.exact.stage_cases").split()[1]
    found = run("-W", "ignore", "-m", "tests.exact.stage_cases", TF32DTYPE_ISA=isa)
    assert found.split() == [isa, wanted]


def test_threads_give_the_same_bits() -> None:
    script = "-W", "ignore", "-m", "tests.exact.stage_cases"
    one, two = (
        run(*script, OMP_NUM_THREADS=n, OPENBLAS_NUM_THREADS=n) for n in ("1", "2")
    )
    assert one == two


@pytest.mark.exhaustive
def test_same_bits_of_larger_products() -> None:
    """Such operands have several blocks along k, and enough elements for threads."""
    script = "-W", "ignore", "-m", "tests.exact.stage_cases", 130, 1500, 90
    wanted = run(*script).split()[1]
    for isa in ISAS:
        for n in ("1", "2"):
            environment = {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n}
            found = run(*script, TF32DTYPE_ISA=isa, **environment)
            assert found.split() == [isa, wanted], n


def test_ctrl_c_stops_a_product() -> None:
    rng = np.random.default_rng(0)
    x, y = (
        np.ldexp(
            rng.standard_normal((400, 2000)), rng.integers(-1000, 1000, (400, 2000))
        )
        for _ in range(2)
    )
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            td.matmul(x, y.T, precision="exact")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["normal", "canceling", "2^-1050 to 2^1000"])
def test_progress(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    @contextmanager
    def bar(wanted: bool, what: str, total: int, *_: Any) -> Iterator[Any]:
        assert (wanted, what, total) == (True, "multiplying exactly", 100)
        yield lambda: steps.append(1)

    monkeypatch.setattr(stages, "progress", bar)
    monkeypatch.setattr(stages, "_PRODUCTS", 10_000)
    case = CASES[name]
    for dtype in DTYPES:
        steps.clear()
        x, y = case.x, case.y
        found = td.matmul(x, y.T, precision="exact", dtype=dtype)
        assert len(steps) == 100
        assert (found == exact_rows(x, y, dtype, 0)).all()


def test_scopes_show_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of a program in a scope stays whole."""
    shown: list[bool] = []

    def bar(wanted: bool, *_: Any) -> Any:
        shown.append(wanted)
        return nullcontext(lambda: None)

    monkeypatch.setattr(stages, "progress", bar)
    case = CASES["normal"]
    with td.matmul_precision("exact"):
        assert np.isfinite(case.x @ case.y.T).all()
    assert shown == [False]


def test_scopes_of_arithmetic_round_nothing() -> None:
    case = CASES["canceling"]
    wanted = exact_rows(case.x, case.y, DTYPES[0], 0)
    with td.arithmetic("bf16", float64=True):
        found = td.matmul(case.x, case.y.T, precision="exact", dtype=np.float32)
    assert found.tobytes() == wanted.tobytes()
