"""check_matmul: three verdicts, and the faults that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import tf32dtype as td

Array = NDArray[Any]

M, K, N = 96, 160, 96


class Given(NamedTuple):
    """Operands and results of a product, computed as the checked unit does."""

    a: Array
    b: Array
    c: Array
    bias: Array
    scale_a: Array
    scale_b: Array

    def product(self, rows: Any = slice(None), ks: Any = slice(None)) -> Array:
        """Return the product of some rows and k on an H100."""
        found: Array = td.tensor_core.matmul(
            np.ascontiguousarray(self.a[rows, ks]),
            np.ascontiguousarray(self.b[ks]),
            device="H100",
        )
        return found


def operands_of_faults() -> Given:
    """Return the operands of products with faults."""
    rng = np.random.default_rng(0)
    return Given(
        rng.standard_normal((M, K)).astype(td.bfloat16),
        rng.standard_normal((K, N)).astype(td.bfloat16),
        rng.standard_normal((M, N)).astype(np.float32),
        rng.standard_normal(N).astype(np.float32),
        rng.uniform(0.5, 2, (M, 1)).astype(np.float32),
        rng.uniform(0.5, 2, (1, N)).astype(np.float32),
    )


@pytest.fixture(scope="module")
def given() -> Given:
    return operands_of_faults()


def check(d: Array, given: Given, **options: Any) -> Any:
    return td.testing.check_matmul(d, given.a, given.b, unit="H100", **options)


# -- results that are right ------------------------------------------------------------


def test_one_chain_is_identical(given: Given) -> None:
    found = check(given.product(), given)
    assert found.verdict == "identical"
    assert found
    assert found.origin == "H100 wgmma bfloat16 -> float32"
    assert found.wrong == 0
    assert found.checked == found.size == M * N
    assert sum(found.distribution) == M * N


def test_a_narrow_result_is_identical(given: Given) -> None:
    found = check(given.product().astype(td.bfloat16), given)
    assert found.verdict == "identical"
    assert "rounded to bfloat16" in str(found.origin)


def test_an_unknown_order_is_within_bound(given: Given) -> None:
    order = np.random.default_rng(1).permutation(K)
    d = td.tensor_core.matmul(given.a[:, order], given.b[order], device="H100")
    found = check(d, given)
    assert found.verdict == "within bound"
    assert found
    assert found.origin is None
    assert 0 < found.worst.share < 1
    assert "within bound" in repr(found)
    assert "largest error:" in repr(found)


def test_an_epilogue_is_not_wrong(given: Given) -> None:
    scaled = given.product() * (given.scale_a * given.scale_b)
    d = (np.float32(0.5) * scaled + np.float32(2) * given.c + given.bias).astype(
        np.float16
    )
    options: dict[str, Any] = {
        "alpha": 0.5, "beta": 2, "bias": given.bias,
        "scale_a": given.scale_a, "scale_b": given.scale_b,
    }  # fmt: skip
    assert td.testing.check_matmul(d, given.a, given.b, given.c, unit="H100", **options)


@pytest.mark.parametrize("shape", [(K,), (3, 5, K), (1, K)])
def test_stacks_and_vectors(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    a = rng.standard_normal(shape).astype(np.float16)
    b = rng.standard_normal(K).astype(np.float16)
    d = td.tensor_core.matmul(a, b, device="A100")
    assert td.testing.check_matmul(d, a, b, unit="A100").verdict == "identical"
    if d.ndim:
        d = d.copy()
        d[-1] += 1
        found = td.testing.check_matmul(d, a, b, unit="A100")
        assert found.wrong == d[-1].size
        assert found.worst.at[0] == len(d) - 1


def test_inf_and_nan_of_operands_are_expected() -> None:
    a = np.ones((4, 4), np.float16)
    a[0, 0], a[1, 1] = np.inf, np.nan
    b = np.eye(4, dtype=np.float16)
    b[0, 1] = 1
    d = td.tensor_core.matmul(a, b, device="A100")
    assert td.testing.check_matmul(d, a, b, unit="A100")
    d[0, 2] = 0
    assert td.testing.check_matmul(d, a, b, unit="A100").wrong == 1


def test_float32_programs() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 128, 128)).astype(np.float32)
    assert td.testing.check_matmul(a @ b, a, b, unit="float32")
    tf32 = td.matmul(a, b, precision="tf32")
    found = td.testing.check_matmul(tf32, a, b, unit="float32")
    assert found.diagnoses == ("the operands were rounded to tf32, ties_to_even",)
    double = a.astype(np.float64) @ b.astype(np.float64)
    assert td.testing.check_matmul(double, a * 1.0, b * 1.0, unit="float32")
    wide = a.astype(np.float64), b.astype(np.float64)
    assert td.testing.check_matmul(double, *wide, unit="float64")
    assert not td.testing.check_matmul(double + 1e-9, *wide, unit="float64")


# -- planted faults --------------------------------------------------------------------


def zeros_in_rows(g: Given) -> Array:
    d = g.product()
    d[8:16] = 0
    return d


def in_tile(g: Given) -> Array:
    d = g.product()
    d[32:64] = g.product(slice(32, 64), slice(0, 128))
    return d


def relu(g: Given) -> Array:
    return np.maximum(g.product(), 0)


def nan(g: Given) -> Array:
    d = g.product()
    d[5, 7] = np.nan
    return d


def twice(g: Given) -> Array:
    return g.product() + g.product(ks=slice(37, 71))


def square(x: Array, y: Array) -> Array:
    found: Array = td.tensor_core.matmul(
        np.ascontiguousarray(x), np.ascontiguousarray(y), device="H100"
    )
    return found


FAULTS: dict[str, tuple[Callable[[Given], Array], str, tuple[str, ...]]] = {
    "unwritten rows": (zeros_in_rows, "all wrong results are 0", ()),
    "last k of rows": (in_tile, "k 128 to 159 is missing: rows 32-63", ()),
    "first k": (lambda g: g.product(ks=slice(16, None)), "k 0 to 15 is missing", ()),
    "one k": (
        lambda g: g.product(ks=np.r_[:77, 78:K]), "k 77 is missing: ", (),
    ),
    "k twice": (twice, "k 37 to 70 is counted twice", ()),
    "relu": (relu, "negative results are 0, as after a ReLU", ()),
    "NaN": (nan, "NaN where the operands give finite results: [5, 7]", ()),
    "factor": (
        lambda g: 2 * g.product(),
        "the results are multiplied by 2, as if added twice",
        (),
    ),
    "row factors": (
        lambda g: g.product() * g.scale_a, "the results of a row are multiplied", (),
    ),
    "rows shifted": (
        lambda g: np.roll(g.product(), 1, 0),
        "row i of d has the results of row i - 1",
        (),
    ),
    "k shifted": (
        lambda g: square(np.roll(g.a, 1, 1), g.b), "k of a is shifted by 1", (),
    ),
    "bias missing": (lambda g: g.product(), "the bias is missing", ("bias",)),
    "bias of rows": (
        lambda g: g.product() + g.bias[:, None],
        "the bias is added along the wrong axis",
        ("bias",),
    ),
    "bias twice": (
        lambda g: g.product() + 2 * g.bias, "the bias is added twice", ("bias",),
    ),
    "c missing": (lambda g: g.product(), "c is missing", ("c",)),
    "scale missing": (
        lambda g: g.product() * g.scale_a,
        "scale_b is not applied",
        ("scale_a", "scale_b"),
    ),
    "scale twice": (
        lambda g: g.product() * g.scale_a * g.scale_b**2,
        "scale_b is applied twice",
        ("scale_a", "scale_b"),
    ),
    "zero point": (
        lambda g: g.product() + np.float32(3) * g.b.astype(np.float32).sum(0),
        "the zero point of a is missing or wrong: the results are those of a + 3",
        (),
    ),
    "truncated": (
        lambda g: (g.product().view(np.uint32) & 0xFFFF0000).view(np.float32).astype(
            td.bfloat16
        ),
        "results were rounded to bfloat16 toward_zero",
        (),
    ),
    "fp8 operands": (
        lambda g: square(
            *(x.astype(td.float8_e4m3fn).astype(td.bfloat16) for x in (g.a, g.b))
        ),
        "the operands were rounded to float8_e4m3fn, ties_to_even",
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str, given: Given) -> None:
    make, text, options = FAULTS[name]
    d = make(given)
    found = check(d, given, **{key: getattr(given, key) for key in options})
    assert found.verdict == "wrong"
    assert not found
    assert found.diagnoses, found
    assert found.diagnoses[0].startswith(text), found
    with pytest.raises(AssertionError, match="wrong: "):
        td.testing.assert_matmul(
            d, given.a, given.b, unit="H100",
            **{key: getattr(given, key) for key in options},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("a is transposed", lambda a, b: square(a.T, b)),
        ("b is transposed", lambda a, b: square(a, b.T)),
        ("d is transposed", lambda a, b: square(a, b).T),
        ("the operands are exchanged", lambda a, b: square(b, a)),
    ],
)
def test_transposed_operands(text: str, change: Callable[..., Array]) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, 64, 64)).astype(td.bfloat16)
    found = td.testing.check_matmul(change(a, b), a, b, unit="H100")
    assert found.diagnoses[0].startswith(text)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_narrow_accumulators(name: str) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 128, 128)).astype(np.float16)
    d = np.zeros((128, 128), td.formats[name].dtype if name in td.formats else name)
    for k in range(128):
        term = np.outer(a[:, k].astype(np.float64), b[k].astype(np.float64))
        d = (d.astype(np.float64) + term).astype(d.dtype)
    found = td.testing.check_matmul(d.astype(np.float32), a, b, unit="A100")
    assert found.diagnoses == (
        f"sums were accumulated in {name}: all results are {name} numbers",
    )


@pytest.mark.parametrize("k", [16, 64, 256])
def test_one_missing_product_is_found(k: int) -> None:
    rng = np.random.default_rng(k)
    a = rng.standard_normal((64, k)).astype(td.bfloat16)
    b = rng.standard_normal((k, 64)).astype(td.bfloat16)
    d = square(a, b)
    average = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) / k
    for dtype in (np.float32, td.bfloat16):
        bound = td.error_bound(a, b, unit="H100", dtype=dtype)
        assert (bound < average).all()
    missing = square(np.delete(a, 3, 1), np.delete(b, 3, 0))
    found = td.testing.check_matmul(missing, a, b, unit="H100")
    assert found.diagnoses[0].startswith("k 3 is missing"), found
    assert td.testing.check_matmul(d, a, b, unit="H100")


# -- arguments -----------------------------------------------------------------------


def test_a_sample_has_indices_of_the_product(given: Given) -> None:
    d = given.product()
    d[40:] = 0
    found = check(d, given, sample=400)
    assert found.verdict == "wrong"
    assert 300 < found.checked < 600
    assert found.worst.at[0] >= 40
    assert found.worst.result == 0
    assert "a sample of" in repr(found)


def test_a_factor_widens_bounds(given: Given) -> None:
    d = given.product()
    d[3, 3] += np.float32(1e-3)
    assert not check(d, given)
    assert check(d, given, factor=1000)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"unit": "H10"}, ValueError, "unit must be one of"),
        ({"unit": "float32", "instruction": "wgmma"}, ValueError, "instruction"),
        ({"d": np.zeros((3, 3))}, ValueError, "d must have the shape"),
        ({"d": np.zeros((M, N), int)}, TypeError, "d must have a floating-point dtype"),
        ({"c": np.zeros(5)}, ValueError, "c must broadcast"),
        ({"bias": np.zeros(5)}, ValueError, "bias must broadcast"),
        (
            {"scale_a": np.zeros((5, 1))},
            ValueError,
            "scale_a must be a number",
        ),
        ({"promote_every": 0}, ValueError, "promote_every must be 1 or more"),
        ({"promote_every": "x"}, TypeError, "promote_every must be an integer"),
        ({"factor": 0}, ValueError, "factor must be above 0"),
        ({"sample": 0}, ValueError, "sample must be 1 or more"),
        ({"alpha": "x"}, TypeError, "alpha must be a number"),
    ],
)
def test_errors(
    change: dict[str, Any], error: type[Exception], text: str, given: Given
) -> None:
    arguments: dict[str, Any] = {
        "d": given.product(), "a": given.a, "b": given.b, "unit": "H100", **change,
    }  # fmt: skip
    with pytest.raises(error, match=text):
        td.testing.check_matmul(**arguments)
