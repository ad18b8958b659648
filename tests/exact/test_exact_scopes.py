"""Correctly rounded products of NumPy's functions, in a scope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tf32dtype import _core
from tf32dtype._programs.plans import Plan, plan_text

Array = np.ndarray[Any, Any]

PRODUCTS: dict[str, Callable[[Array, Array], Array]] = {
    "@": lambda a, b: a @ b,
    "matmul": np.matmul,
    "out": lambda a, b: np.matmul(a, b, out=np.empty((60, 50), a.dtype, order="F")),
    "dot": lambda a, b: np.dot(a, b),
    "inner": lambda a, b: np.inner(a, b.T.copy()),
    "tensordot": lambda a, b: np.tensordot(a, b, 1),
    "einsum": lambda a, b: np.einsum("ij,jk->ik", a, b, optimize=True),
    "td.einsum": lambda a, b: td.einsum("ij,jk->ik", a, b),
    "vecdot": lambda a, b: np.vecdot(a.conj()[:, None], b.T[None]),
    "matvec": lambda a, b: np.stack([np.matvec(a, x) for x in b.T], axis=1),
    "vecmat": lambda a, b: np.stack([np.vecmat(x, b) for x in a.conj()]),
    "vdot": lambda a, b: np.array([[np.vdot(x, y) for y in b.T] for x in a.conj()]),
    "td.matmul": td.matmul,
}


@pytest.fixture(params=["float32", "float64", "complex64", "complex128"])
def operands(request: pytest.FixtureRequest) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, *shape)) for shape in ((60, 70), (70, 50)))
    is_complex = request.param.startswith("complex")
    return tuple(  # type: ignore[misc]
        (x[0] + (1j * x[1] if is_complex else 0)).astype(request.param) for x in (a, b)
    )


@pytest.mark.parametrize("name", PRODUCTS)
def test_functions(name: str, operands: tuple[Array, Array], own_numpy: None) -> None:
    a, b = operands
    wanted = td.matmul(a, b, precision="exact")
    with td.matmul_precision("exact"):
        found = PRODUCTS[name](a, b)
    assert found.dtype == wanted.dtype
    assert (found == wanted).all()


def test_rounding() -> None:
    a = np.array([[1, 2**-30]], np.float32)
    ones = np.ones((2, 1), np.float32)
    with td.matmul_precision("exact", rounding="toward_positive"):
        assert (a @ ones).item() == 1 + 2**-23
        assert td.matmul(a, ones, dtype=td.bfloat16).item() == 1 + 2**-7
    with td.matmul_precision("exact"):
        assert (a @ ones).item() == 1
        with td.matmul_precision("bf16"):
            exact = td.matmul(a + a / 512, ones, precision="exact")
        assert exact.item() == (a + a / 512)[0, 0]
    assert (a @ ones).item() == 1


def test_stacks_and_min_size() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 7, 1, 30, 30)).astype(np.float32)
    with td.matmul_precision("exact"):
        found = a @ b[:3, 0]
        with td.matmul_precision("exact", min_size=31):
            assert (a @ b).tobytes() != found.tobytes()
    assert (found == td.matmul(a, b[:3, 0], precision="exact")).all()


def test_floating_point_errors() -> None:
    big = np.full((1, 2), 3e38, np.float32)
    with td.matmul_precision("exact"):
        with pytest.warns(RuntimeWarning, match="overflow encountered in matmul"):
            big @ np.ones((2, 1), np.float32)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            big @ np.ones((2, 1), np.float32)


def test_an_exception_leaves_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    from tf32dtype._exact import products

    def fails(*arguments: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(products, "_stacks", fails)
    a = np.ones((3, 3))
    with (
        td.matmul_precision("exact"),
        pytest.raises(ZeroDivisionError, match="planted"),
    ):
        a @ a
    monkeypatch.undo()
    with td.matmul_precision("exact"):
        assert (a @ a == 3).all()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"lapack": True}, "lapack=True must be given with blas=True"),
        ({"rounding": "stochastic"}, "rounding must be one of 'ties_to_even'"),
        ({"instruction": "wgmma"}, "instruction must not be given with precision"),
    ],
)
def test_unknown_arguments(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        td.matmul_precision("exact", **keywords)


def test_plans_cannot_name_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan_text(Plan(default="exact")))
    with pytest.raises(ValueError, match="precision 'exact'"):
        td.matmul_precision(plan=path)


def test_calls_that_cannot_use_it() -> None:
    a = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match="precision 'exact' must be given to"):
        td.error_bound(a, a, precision="exact")
    plan = td.explain_matmul(a, a, precision="exact")
    assert plan.way == "exact sums"
    assert td.explain_matmul(a.astype(td.bfloat16), a, precision="exact") == plan


def test_command(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "x = np.array([[1e8, 1, -1e8]] * 2, np.float32)\n"
        "y = np.ones((3, 1), np.float32)\n"
        "print((x @ y)[0, 0], np.ones((20, 20)).dot(np.ones((20, 20)))[0, 0])\n"
        "a = np.random.default_rng(0).standard_normal((100, 100))\n"
        "for _ in range(3):\n"
        "    a @ a.T\n"
    )
    command = "-m", "tf32dtype", "run", "--precision", "exact", str(program)
    done = forks.python(*command)
    assert done.stdout == "1.0 20.0\n"
    number = 5 if _core.blas_available() else 4
    assert f"{number} matrix multiplications ran in exact (100.0 %" in done.stderr
