"""The bits of exact products do not depend on layouts, the order of k, or blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import Array
from tests.exact.stage_cases import DTYPES, Case, cases
from tf32dtype._exact import products, rows, stages

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: The cases in which each of the stages decides some results.
CHOSEN = (
    "normal",
    "float32",
    "canceling",
    "canceling more",
    "2^-100 to 2^100",
    "2^-1050 to 2^1000",
    "ties",
    "special",
    "2^1000 cancels",
)
SMALL, LARGE = (40, 130, 33), (70, 2100, 60)

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_case = pytest.mark.parametrize("name", CHOSEN)
each_shape = pytest.mark.parametrize(
    "shape", [SMALL, pytest.param(LARGE, marks=pytest.mark.exhaustive)], ids=str
)


def operands(name: str, shape: tuple[int, int, int]) -> tuple[Array, Array]:
    case: Case = next(case for case in cases(*shape, 5) if case.name == name)
    return case.x, np.ascontiguousarray(case.y.T)


def bits(a: Array, b: Array, dtype: Any, **keywords: Any) -> bytes:
    found = td.matmul(a, b, precision="exact", dtype=dtype, **keywords)
    return bytes(found.tobytes())


# -- layouts ---------------------------------------------------------------------------


def moved(x: Array) -> Array:
    """Return the same numbers, a byte away from an aligned address."""
    room = np.empty(x.nbytes + 1, np.uint8)
    room[1:] = np.frombuffer(x.tobytes(), np.uint8)
    return room[1:].view(x.dtype).reshape(x.shape)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "Fortran": np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "reversed rows": lambda x: np.asfortranarray(x[::-1])[::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[1::2, 2::3],
    "not aligned": moved,
    "part of a stack": lambda x: np.stack([x, -x], axis=2)[..., 0],
}


@each_shape
@each_dtype
@each_case
def test_layouts(name: str, dtype: np.dtype[Any], shape: tuple[int, int, int]) -> None:
    a, b = operands(name, shape)
    wanted = bits(a, b, dtype)
    for layout in LAYOUTS.values():
        assert bits(layout(a), b, dtype) == wanted
        assert bits(a, layout(b), dtype) == wanted
    out = np.empty((len(a), b.shape[1]), dtype, order="F")
    assert bits(a, b, dtype, out=out) == wanted
    out = np.empty((2 * len(a), b.shape[1]), dtype)[::-2]
    assert bits(a, b, dtype, out=out) == wanted


@each_shape
@each_dtype
@each_case
def test_parts_and_orders(
    name: str, dtype: np.dtype[Any], shape: tuple[int, int, int]
) -> None:
    """Other orders of k and of the operands, and products of parts of operands."""
    a, b = operands(name, shape)
    wanted = td.matmul(a, b, precision="exact", dtype=dtype)
    rng = np.random.default_rng(6)
    for order in (slice(None, None, -1), *(rng.permutation(len(b)) for _ in range(3))):
        assert bits(a[:, order], b[order], dtype) == wanted.tobytes()
    assert bits(b.T, a.T, dtype) == wanted.T.tobytes()
    for some in (slice(3, 30), slice(7, 8), slice(None, None, 7)):
        assert bits(a[some], b, dtype) == wanted[some].tobytes()
        assert bits(a, b[:, some], dtype) == wanted[:, some].tobytes()
    zeros = np.zeros((len(a), 9)), np.zeros((9, b.shape[1]))
    if np.isfinite(a).all():
        longer = np.hstack([a, zeros[0]]), np.vstack([b, zeros[1]])
        assert bits(*longer, dtype) == wanted.tobytes()


@each_dtype
@each_case
@pytest.mark.parametrize("together", [0, 1 << 60])
def test_stacks(
    name: str, dtype: np.dtype[Any], together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_SMALL", together)
    a, b = operands(name, SMALL)
    wanted = td.matmul(a, b, precision="exact", dtype=dtype)
    stacked = td.matmul(
        np.broadcast_to(a, (2, 1, *a.shape)),
        np.broadcast_to(b, (3, *b.shape)),
        precision="exact",
        dtype=dtype,
    )
    assert stacked.tobytes() == 6 * wanted.tobytes()
    by_rows = td.matmul(a[:, None], b, precision="exact", dtype=dtype)
    assert by_rows.tobytes() == wanted.tobytes()
    by_pairs = td.matmul(
        a[:, None, None], b.T[..., None], precision="exact", dtype=dtype
    )
    assert by_pairs.tobytes() == wanted.tobytes()
    row = np.broadcast_to(a[5], a.shape)
    assert bits(row, b, dtype) == len(a) * wanted[5].tobytes()


# -- blocks ----------------------------------------------------------------------------

BLOCKS: dict[str, dict[Any, dict[str, int]]] = {
    "exact sums": {stages: {"_FEW": 1 << 60}},
    "no exact sums": {stages: {"_FEW": 0, "_NARROW": 0}},
    "dot products": {stages: {"_NARROW": 1 << 60, "_FEW": 0}},
    "a few pairs": {stages: {"_NARROW": 1 << 60, "_FEW": 0}},
    "tiles of rows": {stages: {"_TILE": 1, "_LEAST_HEIGHT": 1}},
    "small tiles": {stages: {"_TILE": 700, "_LEAST_HEIGHT": 5, "_PLACES": 300}},
    "short blocks": {rows: {"_DEPTH": 31, "_MOST_BLOCKS": 50}},
    "long blocks": {rows: {"_DEPTH": 1 << 20}},
    "few slices": {stages: {"_MOST_SLICES": 2}},
    "many slices": {stages: {"_MANY": 0, "_SOME": 0, "_MOST_SLICES": 20}},
}


@each_shape
@each_dtype
@pytest.mark.parametrize("sizes", BLOCKS.values(), ids=BLOCKS)
def test_blocks(
    sizes: dict[Any, dict[str, int]],
    dtype: np.dtype[Any],
    shape: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = [operands(name, shape) for name in CHOSEN]
    wanted = [bits(a, b, dtype) for a, b in pairs]
    for module, numbers in sizes.items():
        for name, number in numbers.items():
            monkeypatch.setattr(module, name, number)
    assert [bits(a, b, dtype) for a, b in pairs] == wanted
