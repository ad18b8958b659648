"""Every call that uses a precision, by shapes: the results of `@` for the matrices.

Lengths of 0 and 1, stacks, vectors and strides, under every precision and keyword. The
reference is tests/reference/matmul.py, for each pair of matrices separately.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.matmul.precision_cases import (
    VARIANTS,
    Array,
    Keywords,
    assert_bits,
    bits,
    floats,
    named,
)
from tests.reference import matmul as products

pytestmark = pytest.mark.usefixtures("own_numpy")

Product = Callable[[Array, Array], Array]


def drawn(seed: int, *shape: int) -> Array:
    """Draw normal numbers; each matrix, row and column has its own magnitude."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    for axis in range(len(shape)):
        lengths = [1] * len(shape)
        lengths[axis] = shape[axis]
        x *= np.exp2(rng.integers(-9, 9, lengths))
    return x.astype(np.float32)


def layouts(x: Array) -> list[Array]:
    """Return the same numbers in other layouts."""
    wide = np.zeros([2 * n for n in x.shape], np.float32)
    step = wide[(slice(None, None, 2),) * x.ndim]
    step[...] = x
    flip = (slice(None, None, -1),) * x.ndim
    return [x, step, np.ascontiguousarray(x[flip])[flip], np.asfortranarray(x)]


class Truth:
    """Products of matrices in one precision by the reference, each computed once."""

    def __init__(self, keywords: Keywords) -> None:
        self.keywords = keywords
        self.known: dict[Any, Array] = {}

    def of_matrices(self, a: Array, b: Array) -> Array:
        key = a.shape, b.shape, a.tobytes(), b.tobytes()
        if key not in self.known:
            rows, columns = bits(a).tolist(), bits(b.T).tolist()
            result = products.product(rows, columns, **self.keywords)
            self.known[key] = floats(result).reshape(a.shape[0], b.shape[1])
        return self.known[key]

    def matmul(self, a: Array, b: Array) -> Array:
        """Return `a @ b`, as NumPy defines it for arrays of any shapes."""
        x = a[None] if a.ndim == 1 else a
        y = b[:, None] if b.ndim == 1 else b
        stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x = np.broadcast_to(x, stack + x.shape[-2:])
        y = np.broadcast_to(y, stack + y.shape[-2:])
        result = np.zeros((*stack, x.shape[-2], y.shape[-1]), np.float32)
        for i in np.ndindex(stack):
            result[i] = self.of_matrices(x[i], y[i])
        return result.squeeze((-2,) * (a.ndim == 1) + (-1,) * (b.ndim == 1))

    def dot(self, a: Array, b: Array) -> Array:
        """Multiply each matrix of a stack by each of the other, or by the vector."""
        if b.ndim < 3 or a.ndim < 2:
            return self.matmul(a, b)
        tops = a.shape[:-2], b.shape[:-2]
        shape = a.shape[:-1] + b.shape[:-2] + b.shape[-1:]
        result = np.zeros(tops[0] + tops[1] + (a.shape[-2], b.shape[-1]), np.float32)
        for i in np.ndindex(tops[0]):
            for j in np.ndindex(tops[1]):
                result[i + j] = self.of_matrices(a[i], b[j])
        return np.moveaxis(result, -2, len(tops[0])).reshape(shape)

    def vectors(self, a: Array, b: Array) -> Array:
        """Return the result of `np.vecdot`."""
        x, y = np.broadcast_arrays(a, b)
        result = np.zeros(x.shape[:-1], np.float32)
        for i in np.ndindex(result.shape):
            result[i] = self.of_matrices(x[i][None], y[i][:, None])[0, 0]
        return result


@cache
def truth_of(variant: str) -> Truth:
    """Return the products of a variant, which several tests share."""
    return Truth(next(keywords for keywords in VARIANTS if named(keywords) == variant))


MATMUL = [
    ((3,), (3,)), ((1,), (1,)), ((0,), (0,)), ((3,), (3, 2)), ((2, 3), (3,)),
    ((2, 3), (3, 2)), ((2, 1), (1, 3)), ((1, 2), (2, 1)), ((2, 0), (0, 3)),
    ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)), ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 1, 3), (2, 3, 1)), ((2, 2, 1), (1, 2)), ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)), ((1,), (2, 1, 2)), ((2, 2, 0), (2, 0, 1)),
]  # fmt: skip
DOT = [
    *[shapes for shapes in MATMUL if len(shapes[0]) < 3 and len(shapes[1]) < 3],
    ((2, 2, 3), (3,)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)), ((3,), (2, 3, 2)),
    ((2, 2, 3), (3, 3, 2)), ((2, 1, 2, 3), (2, 3, 2)), ((2, 2, 1), (2, 1, 2)),
    ((2, 2, 1), (1,)), ((1,), (2, 1, 3)), ((2, 2, 0), (0, 2)),
    ((2, 2, 3), (2, 1, 3, 1)),
]  # fmt: skip
VECTORS = [((3,), (3,)), ((2, 3), (2, 3)), ((2, 1), (2, 1)), ((2, 0), (2, 0)),
           ((2, 1, 3), (2, 3))]  # fmt: skip


def swapped(x: Array) -> Array:
    """Swap rows and columns."""
    return x if x.ndim < 2 else x.swapaxes(-1, -2)


#: Each row: shapes, the call, the reference.
CALLS: dict[str, tuple[Any, Product, Callable[[Truth], Product]]] = {
    "@": (MATMUL, lambda a, b: a @ b, lambda t: t.matmul),
    "matmul": (MATMUL, np.matmul, lambda t: t.matmul),
    "linalg.matmul": (
        [s for s in MATMUL if len(s[0]) > 1 and len(s[1]) > 1],
        np.linalg.matmul,
        lambda t: t.matmul,
    ),
    "dot": (DOT, lambda a, b: np.dot(a, b), lambda t: t.dot),
    "dot(out=)": (
        [s for s in DOT if len(s[0]) + len(s[1]) > 2],
        lambda a, b: np.dot(a, b, out=np.empty_like(np.dot(a, b), order="C")),
        lambda t: t.dot,
    ),
    "ma.dot": (
        [s for s in DOT if len(s[0]) > 1 and len(s[1]) > 1],
        lambda a, b: np.ma.dot(a, b).data,
        lambda t: t.dot,
    ),
    "inner": (
        DOT,
        lambda a, b: np.inner(a, swapped(b)),
        lambda t: t.dot,
    ),
    "vdot": (
        VECTORS[:-1],
        lambda a, b: np.vdot(a, b),
        lambda t: lambda a, b: t.vectors(a.ravel(), b.ravel()),
    ),
    "vecdot": (VECTORS, np.vecdot, lambda t: t.vectors),
    "linalg.vecdot": (VECTORS, np.linalg.vecdot, lambda t: t.vectors),
    "matvec": (
        [((2, 3), (3,)), ((2, 2, 3), (2, 3)), ((2, 1), (1,)), ((2, 0), (0,))],
        np.matvec,
        lambda t: lambda a, b: t.matmul(a, b[..., None])[..., 0],
    ),
    "vecmat": (
        [((3,), (3, 2)), ((2, 3), (2, 3, 2)), ((1,), (1, 2)), ((0,), (0, 2))],
        np.vecmat,
        lambda t: lambda a, b: t.matmul(a[..., None, :], b)[..., 0, :],
    ),
    # These make one matrix of each operand.
    "tensordot": (
        [((2, 2, 3), (3, 2)), ((2, 1), (1, 2)), ((2, 2, 1), (1, 2, 2)), ((2, 3), (3,))],
        lambda a, b: np.tensordot(a, b, 1),
        lambda t: (
            lambda a, b: t.of_matrices(
                a.reshape(-1, a.shape[-1]), b.reshape(b.shape[0], -1)
            ).reshape(a.shape[:-1] + b.shape[1:])
        ),
    ),
    "multi_dot": (
        [((2, 3), (3, 2)), ((2, 1), (1, 2)), ((3,), (3, 2))],
        lambda a, b: np.linalg.multi_dot([a, b]),
        lambda t: t.matmul,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("keywords", VARIANTS, ids=named)
def test_as_the_operator(keywords: Keywords, compared: Any) -> None:
    for call in CALLS:
        compared(check_call(keywords, call))


def check_call(keywords: Keywords, call: str) -> int:
    count = 0
    shapes, function, true = CALLS[call]
    product = true(truth_of(named(keywords)))
    for first, second in shapes:
        a, b = drawn(1, *first), drawn(2, *second)
        want = product(a, b)
        with td.matmul_precision(**keywords):
            found = [
                function(*pair)
                for pair in zip(layouts(a), layouts(b)[::-1], strict=True)
            ]
        for got in found:
            assert_bits(got, bits(want), (call, first, second))
        count += want.size * len(found)
    return count


@pytest.mark.parametrize("name", ["dot", "inner"])
@pytest.mark.parametrize(
    "keywords",
    [
        {"precision": "fp8_e4m3", "device": "H100"},
        {"precision": "fp8_e4m3", "complex64": True, "float64": True},
        {"precision": "bf16", "complex64": True, "float64": True},
    ],
    ids=str,
)
def test_stacks_of_other_dtypes_and_of_devices(name: str, keywords: Any) -> None:
    dtypes = ["f4", "f8", "c8"] if "float64" in keywords else ["f4"]
    for dtype in dtypes:
        a, b = (drawn(i, 2, 3, 40).astype(dtype) for i in (1, 2))
        if dtype == "c8":
            a, b = a + 1j * drawn(3, 2, 3, 40), b - 1j * drawn(4, 2, 3, 40)
        a, b = (x.astype(dtype) for x in (a, b))
        with td.matmul_precision(**keywords):
            got = getattr(np, name)(a, b if name == "inner" else swapped(b))
            for i, j in np.ndindex(2, 2):
                want = a[i] @ b[j].T
                assert got[i, :, j].tobytes() == want.tobytes()
            with_vector = np.dot(a, b[0, 0])
            assert with_vector.tobytes() == (a @ b[0, 0]).tobytes()


EINSUM = {
    # (m, k), (k, n), and the length of each letter.
    "ij,jk->ik": {"i": 3, "j": 1, "k": 2},
    "ij,jk->ki": {"i": 3, "j": 1, "k": 2},
    "i,i->": {"i": 1},
    "ij,ij->": {"i": 1, "j": 1},
    "ij,kj->ik": {"i": 2, "j": 3, "k": 2},
    "ijl,jlk->ik": {"i": 2, "j": 1, "l": 1, "k": 2},
    "ij,j->i": {"i": 3, "j": 1},
    "bij,bjk->bik": {"b": 2, "i": 2, "j": 1, "k": 2},
    "bij,bjk->kbi": {"b": 2, "i": 2, "j": 3, "k": 2},
    "bi,bi->b": {"b": 3, "i": 1},
    "ij,jk": {"i": 2, "j": 0, "k": 2},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("keywords", VARIANTS, ids=named)
def test_einsum(keywords: Keywords, compared: Any) -> None:
    """Sum over axes of which some or all have length 1."""
    for subscripts in EINSUM:
        compared(check_einsum(keywords, subscripts))


def check_einsum(keywords: Keywords, subscripts: str) -> int:
    lengths = EINSUM[subscripts]
    terms, arrow, result = subscripts.partition("->")
    result = result if arrow else "ik"
    first, second = terms.split(",")
    a = drawn(1, *(lengths[x] for x in first))
    b = drawn(2, *(lengths[x] for x in second))
    # Axes in this order: of both, of the first, of the second, summed.
    stack = [x for x in result if x in first and x in second]
    rows = [x for x in first if x not in second]
    columns = [x for x in second if x not in first]
    summed = [x for x in first if x in second and x not in result]

    def matrices(x: Array, letters: str, *order: list[str]) -> Array:
        axes = [letters.index(letter) for part in order for letter in part]
        shape = [int(np.prod([lengths[c] for c in part])) for part in order[1:]]
        return x.transpose(axes).reshape([lengths[c] for c in stack] + shape)

    x = matrices(a, first, stack, rows, summed)
    y = matrices(b, second, stack, summed, columns)
    # NumPy takes the second operand first, so that its scale is removed first.
    want = swapped(truth_of(named(keywords)).matmul(swapped(y), swapped(x)))
    letters = [*stack, *rows, *columns]
    want = want.reshape([lengths[c] for c in letters])
    want = want.transpose([letters.index(c) for c in result])
    out = np.empty_like(want, order="C")
    with td.matmul_precision(**keywords):
        for optimize in (True, "greedy", "optimal"):
            got = np.einsum(subscripts, a, b, optimize=optimize)
            assert_bits(got, bits(want), (subscripts, optimize))
        assert np.einsum(subscripts, a, b, optimize=True, out=out) is out
        fortran = np.einsum(subscripts, a, b, optimize=True, order="F")
    assert_bits(out, bits(want), subscripts)
    assert_bits(fortran, bits(want), subscripts)
    assert np.asarray(fortran).flags.f_contiguous, subscripts
    return 5 * want.size


def test_a_length_of_one_that_einsum_repeats(compared: Any) -> None:
    a, b = drawn(1, 2, 1), drawn(2, 3, 2)
    for x, y, subscripts in ((a, b, "ij,jk->ik"), (b.T, a.T, "ij,jk->ik")):
        repeated = np.broadcast_arrays(x[:, :, None], y[None])
        want = [np.ascontiguousarray(z) for z in (repeated[0][:, :, 0], repeated[1][0])]
        with td.matmul_precision("bf16"):
            got = np.einsum(subscripts, x, y, optimize=True)
        assert_bits(got, bits(Truth({"precision": "bf16"}).matmul(*want)))
        compared(got.size)


def test_what_einsum_does_not_sum_is_numpys() -> None:
    a, b = drawn(1, 3, 1), drawn(2, 3, 1)
    calls = [("ij,ij->ij", a, b), ("ij,kl->ijkl", a, b), ("ij,jk->ijk", a, b.T)]
    for call in calls:
        want = np.einsum(*call, optimize=True)
        with td.matmul_precision("bf16"):
            got = np.einsum(*call, optimize=True)
        assert type(got) is type(want)
        assert_bits(got, bits(want))
    with td.matmul_precision("bf16"):
        assert np.einsum("ij,kj->ik", a, b, optimize=True, dtype="f8").dtype == "f8"
