"""Products of GPU arrays: the CPU's bits for every memory layout."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, dtype
from tests.support.bits import name as format_name

# ruff: noqa: F811
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.cuda_operands import assert_same, numbers, on_gpu, on_host
from tests.support.cuda_products import by_plan
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE, KernelError, numpy_view
from tf32dtype._matmul.precisions import find_precision
from tf32dtype.cuda._arrays import ndarray
from tf32dtype.cuda._matmul import fma, split_emulation, tensor_cores
from tf32dtype.cuda._matmul.matmul import matmul
from tf32dtype.cuda._matmul.mode import Mode, current_mode, matmul_mode
from tf32dtype.cuda._matmul.numpy_products import dispatch
from tf32dtype.cuda._matmul.product_plan import plan_product
from tf32dtype.cuda._runtime import backend as backends
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda._runtime.storage import is_ours

BF16 = np.dtype(td.bfloat16)
KINDS = ("ordinary", "wide", "codes")
TILES = (fma.LARGE, fma.SMALL, fma.NARROW, fma.VECTOR)

#: k around the depths of tiles and chains, in shapes for every kernel
SHAPES = [
    (130, 300, 20), (20, 9, 67), (70, 257, 3), (3, 255, 1), (1, 1, 1), (1, 600, 1),
    (9, 8, 33), (2, 513, 40),
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


# -- formats ---------------------------------------------------------------------------


def compare(first, second, shapes=SHAPES):
    for seed, (m, k, n) in enumerate(shapes):
        kind = KINDS[seed % 3]
        a, b = numbers(kind, (m, k), first, seed), numbers(kind, (k, n), second, seed)
        x, y = on_gpu(a), on_gpu(b)
        assert_same(matmul(x, y), a @ b, (m, k, n, kind))
        sums = matmul(x, y, dtype=np.float32)
        assert_same(sums, td.matmul(a, b, dtype=np.float32), (m, k, n, kind))


#: One format of each kind; `test_all_pairs` has the others.
USUAL = {
    "tf32", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e8m0fnu", "float6_e3m2fn",
}  # fmt: skip


@pytest.mark.parametrize("f", [f for f in ALL if f.name in USUAL], ids=format_name)
def test_formats(backend, f):
    compare(dtype(f), dtype(f))


MIXED = [
    ("bfloat16", "tf32"), ("float8_e4m3fn", "float8_e5m2"), ("float16", "tf32"),
    ("float4_e2m1fn", "float8_e8m0fnu"),
]  # fmt: skip


@pytest.mark.parametrize("names", MIXED, ids="-".join)
def test_mixed_formats(backend, names):
    first, second = (np.dtype(getattr(td, x, None) or x) for x in names)
    compare(first, second, [SHAPES[0], SHAPES[2]])  # the operands are not swapped


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", ALL, ids=format_name)
def test_all_pairs(backend, first):
    for second in [*(dtype(f) for f in ALL), np.dtype(np.float16)]:
        if is_ours(np.result_type(dtype(first), second)):
            compare(dtype(first), second, SHAPES[:3])


@pytest.mark.parametrize("other", ["?", "i1", "u1", "i2", "f2", "f4", "f8"])
def test_numpys_dtypes_beside_ours(backend, other):
    rng = np.random.default_rng(0)
    a = numbers("ordinary", (5, 40), BF16)
    b = rng.integers(0, 2, (40, 3)).astype(other)
    assert_same(matmul(on_gpu(a), on_gpu(b)), a @ b)  # sums of few bits are exact
    assert_same(matmul(on_gpu(b.T), on_gpu(a.T)), b.T @ a.T)


# -- tiles, strides, stacks ------------------------------------------------------------


@pytest.mark.parametrize("descends", [False, True])
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.kernel)
def test_every_tile(backend, tile, descends):
    backend.descends = descends
    for seed, (m, k, n) in enumerate([(130, 530, 129), (64, 16, 64), (5, 9, 2)]):
        a = numbers("wide", (2, m, k), BF16, seed)
        b = numbers("codes", (2, k, n), BF16, seed)
        for out, want in (
            (ndarray.empty((2, m, n), BF16), a @ b),
            (cupy.empty((2, m, n), np.float32), np.matmul(a, b, dtype=np.float32)),
        ):
            by_plan(fma.plan, on_gpu(a), on_gpu(b), out, tile)
            assert_same(out, want, (m, k, n))


@pytest.mark.parametrize("kind", [td.bfloat16, td.tf32, td.float8_e4m3fn])
@pytest.mark.parametrize("tile", [fma.LARGE, fma.SMALL], ids=lambda tile: tile.kernel)
def test_whole_tiles(backend, tile, kind):
    """Items are in contiguous groups of four, along k or across it. Other slices of k
    are not aligned, end within a tile, or are not contiguous."""
    m, k, n = tile.rows + 4, 272, tile.columns + 8
    a, b = numbers("codes", (m, k + 8), kind), numbers("codes", (k + 8, n), kind, 1)
    x, y = on_gpu(a)[None], on_gpu(b)[None]
    for part in (slice(k), slice(1, k + 1), slice(k - 4), slice(None, None, 2)):
        want = np.matmul(a[:, part], b[part], dtype=np.float32)[None]
        p, q = x[..., part], y[:, part]
        out = cupy.empty((1, m, n), np.float32)
        by_plan(fma.plan, p, q, out, tile)
        assert_same(out, want, part)
        out = cupy.empty((1, n, m), np.float32)
        by_plan(fma.plan, q.swapaxes(1, 2), p.swapaxes(1, 2), out, tile)
        assert_same(out, want.swapaxes(1, 2), part)
        along = q.swapaxes(1, 2).copy().swapaxes(1, 2)
        out = cupy.empty((1, m, n), np.float32)
        by_plan(fma.plan, p, along, out, tile)
        assert_same(out, want, part)


def test_shapes_choose_tiles():
    assert fma.choose_tile(1, 4096, 1, 132) == fma.VECTOR
    assert fma.choose_tile(1, 4096, 8, 132) == fma.NARROW
    assert fma.choose_tile(1, 512, 512, 132) == fma.SMALL
    assert fma.choose_tile(1, 4096, 4096, 132) == fma.LARGE
    assert fma.choose_tile(64, 256, 256, 132) == fma.LARGE
    assert fma.choose_tile(1, 2048, 2048, 132) == fma.LARGE
    assert fma.choose_tile(1, 1024, 1024, 132) == fma.SMALL
    assert fma.choose_tile(1, 1536, 1536, 132) == fma.SMALL, "144 large tiles"
    assert fma.SMALL.shared <= 64 << 10, "more than Turing's block has"
    for tile in TILES:
        assert tile.shared <= 99 << 10, "more than any GPU's block has"


@pytest.mark.parametrize("kind", [td.bfloat16, td.tf32, td.float8_e4m3fn])
def test_strides(backend, kind):
    a, b = numbers("codes", (2, 20, 300), kind), numbers("codes", (2, 300, 20), kind, 1)
    x, y = on_gpu(a), on_gpu(b)
    for p, q in [
        (lambda x: x, lambda x: x[..., ::-1]),
        (lambda x: x[..., ::3], lambda x: x[..., ::3, 5:]),
        (lambda x: x[..., ::-1], lambda x: x[..., ::-1, :]),
        (lambda x: x[:, 5:9].swapaxes(1, 2)[:, :40], lambda x: x[:, :4, ::7]),
        (lambda x: x[::-1, 3:4], lambda x: x[1:]),
    ]:
        assert_same(matmul(p(x), q(y)), p(a) @ q(b))
        left, right = q(y).swapaxes(-1, -2), p(x).swapaxes(-1, -2)
        assert_same(matmul(left, right), q(b).swapaxes(-1, -2) @ p(a).swapaxes(-1, -2))


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4, 5), (5, 6)), ((4, 5), (3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)),
        ((2, 3, 4, 5), (2, 1, 5, 6)), ((5,), (3, 5, 6)), ((3, 4, 5), (5,)),
        ((5,), (5,)), ((1, 4, 5), (3, 5, 6)), ((2, 1, 2, 1, 3, 5), (1, 4, 1, 3, 5, 2)),
    ],
)  # fmt: skip
def test_stacks_and_vectors(backend, shapes):
    a, b = (numbers("ordinary", s, BF16, i) for i, s in enumerate(shapes))
    assert_same(matmul(on_gpu(a), on_gpu(b)), np.asarray(a @ b))
    assert_same(
        matmul(cupy.broadcast_to(on_gpu(a), shapes[0]), on_gpu(b), dtype=td.tf32),
        np.asarray(td.matmul(a, b, dtype=td.tf32)),
    )


@pytest.mark.parametrize("kind", [td.tf32, td.float8_e8m0fnu, td.float4_e2m1fn])
def test_nothing(backend, kind):
    for m, k, n in [(2, 0, 3), (0, 4, 3), (2, 4, 0), (0, 0, 0), (1, 0, 1)]:
        a, b = np.ones((2, m, k), kind), np.ones((2, k, n), kind)
        assert_same(matmul(on_gpu(a), on_gpu(b)), a @ b)


def test_sums_below_the_least_number(backend):
    """A sum of -0 stays -0, whatever pads the last tile of k."""
    for k in (1, 7, 8, 9, 255, 256, 257, 300):
        a = np.full((3, k), -(2.0**-100), td.bfloat16)
        a[1, 1:] = 0
        b = np.full((k, 2), 2.0**-100, td.bfloat16)
        want = np.matmul(a, b, dtype=np.float32)
        assert np.signbit(want).any()
        assert_same(matmul(on_gpu(a), on_gpu(b), dtype=np.float32), want)


def test_chains_are_256_long(backend):
    """Later chains add terms that the first chain is too large to add."""
    a = np.ones((1, 1024), np.float32)
    a[0, 0] = 2.0**24
    a = a.astype(td.tf32)
    got = matmul(on_gpu(a), on_gpu(np.ones((1024, 1), td.tf32)), dtype=np.float32)
    assert_same(got, np.array([[2.0**24 + 768]], np.float32))
    a, b = numbers("wide", (4, 5000), BF16), numbers("wide", (5000, 3), BF16, 1)
    assert_same(matmul(on_gpu(a), on_gpu(b)), a @ b)


# -- dtype and out ---------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["f4", "f2", "f8", td.bfloat16, td.float8_e5m2])
def test_dtype(backend, wanted):
    a, b = numbers("wide", (5, 40), BF16), numbers("wide", (40, 3), BF16, 1)
    got = matmul(on_gpu(a), on_gpu(b), dtype=wanted)
    assert_same(got, td.matmul(a, b, dtype=wanted))


@pytest.mark.parametrize("wanted", [td.bfloat16, td.tf32, np.float32, td.float8_e5m2])
def test_out(backend, wanted):
    a, b = numbers("ordinary", (2, 5, 40), BF16), numbers("ordinary", (40, 3), BF16, 1)
    for make in (lambda x: x, lambda x: x[:, ::2], lambda x: x[..., ::-1]):
        rows = 10 if make(np.ones((2, 10, 3))).shape[1] == 5 else 5
        out = on_gpu(np.ones((2, rows, 3), wanted))
        want = np.ones((2, rows, 3), wanted)
        found = matmul(on_gpu(a), on_gpu(b), out=make(out))
        np.matmul(a, b, out=make(want))
        assert found.data.ptr == make(out).data.ptr
        assert_same(out, want)


def test_out_that_overlaps(backend):
    a = numbers("ordinary", (40, 40), BF16)
    x = on_gpu(a)
    want = a @ a
    assert matmul(x, x, out=x) is x
    assert_same(x, want)
    x = on_gpu(a)
    matmul(x[:20], x, out=x[10:30])
    want = a.copy()
    want[10:30] = a[:20] @ a
    assert_same(x, want)


def test_out_that_is_larger(backend):
    a = numbers("ordinary", (4, 4), BF16)
    out = on_gpu(np.zeros((3, 4, 4), BF16))
    matmul(on_gpu(a), on_gpu(a), out=out)
    assert_same(out, np.broadcast_to(a @ a, (3, 4, 4)))


ERRORS = [
    (ValueError, r"got k = 5 and k = 4 \(shapes \(4, 5\) and \(4, 5\)\)",
     lambda x, y: matmul(x, x)),
    (ValueError, r"lengths must be equal or 1; got \(2,\) and \(3,\)",
     lambda x, y: matmul(cupy.broadcast_to(x, (2, 4, 5)),
                         cupy.broadcast_to(y, (3, 5, 4)))),
    (ValueError, "at least one axis", lambda x, y: matmul(x[0, 0], y)),
    (TypeError, r"array on a GPU; got numpy\.ndarray", lambda x, y: matmul(x, OUT)),
    (TypeError, r"b must .*; got builtins\.float", lambda x, y: matmul(x, 3.0)),
    (ValueError, "mode must be one of 'chain', 'model' or 'native'; got 'fast'",
     lambda x, y: matmul(x, y, mode="fast")),
    (ValueError, "device must be given with mode='model'",
     lambda x, y: matmul(x, y, mode="model")),
    (ValueError, "device must be one of .*; got 'A99'",
     lambda x, y: matmul(x, y, mode="model", device="A99")),
    (ValueError, r"instruction of A100 must be 'mma\.sync'; got 'wgmma'",
     lambda x, y: matmul(x, y, mode="model", device="A100", instruction="wgmma")),
    (ValueError, r"V100 mma\.sync cannot multiply bfloat16 x bfloat16",
     lambda x, y: matmul(x, y, mode="model", device="V100")),
    (ValueError, "device must be None unless mode is 'model'; got 'A100'",
     lambda x, y: matmul(x, y, mode="chain", device="A100")),
    (ValueError, "device='A100' must be given with mode='model'",
     lambda x, y: matmul(x, y, device="A100")),
    (ValueError, r"instruction must be None unless .*; got 'mma\.sync'",
     lambda x, y: matmul(x, y, mode="chain", instruction="mma.sync")),
    (ValueError, r"one of 'mma\.sync', 'wgmma' or None .*; got 'tcgen05'",
     lambda x, y: matmul(x, y, mode="native", instruction="tcgen05")),
    (TypeError, "float32 with precision='tf32'; got bfloat16",
     lambda x, y: matmul(x, y, precision="tf32")),
    (ValueError, "precision must be .*; got 'tf33'. Did you mean tf32",
     lambda x, y: matmul(on_gpu(OUT), on_gpu(OUT), precision="tf33")),
    (TypeError, "got float64 and float64. Cast them",
     lambda x, y: matmul(on_gpu(np.ones((2, 2))), on_gpu(np.ones((2, 2))),
                         precision="tf32")),
    (ValueError, "must not both be given",
     lambda x, y: matmul(on_gpu(OUT), on_gpu(OUT), precision="tf32", mode="native")),
    (ValueError, "strategy must be 'performant' or 'eager'; got 'lazy'",
     lambda x, y: matmul(x, y, strategy="lazy")),
    (ValueError, "scale='row' must be given with precision fp8",
     lambda x, y: matmul(x, y, scale="row")),
    (TypeError, "dtype must be a floating-point dtype; got int32",
     lambda x, y: matmul(x, y, dtype=np.int32)),
]  # fmt: skip
OUT = np.ones((4, 4), np.float32)


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(backend, case):
    kind, text, call = ERRORS[case]
    x, y = on_gpu(np.ones((4, 5), BF16)), on_gpu(np.ones((5, 4), BF16))
    with pytest.raises(kind, match=text):
        call(x, y)


def test_errors_of_out_come_before_it_is_written(backend):
    x, y = on_gpu(np.ones((4, 5), BF16)), on_gpu(np.ones((5, 4), BF16))
    for out, kind, text in [
        (np.zeros((4, 3), BF16), ValueError, r"out must .*; got \(4, 3\)"),
        (np.zeros((4,), BF16), ValueError, r"out must .*; got \(4,\)"),
        (
            np.zeros((4, 4), np.int32),
            TypeError,
            "that bfloat16 can be cast to .*; got int32",
        ),
    ]:
        there = on_gpu(out)
        with pytest.raises(kind, match=text):
            matmul(x, y, out=there)
        assert_same(there, out)
    with pytest.raises(TypeError, match="out must be a CuPy array; got ndarray"):
        matmul(x, y, out=OUT)


# -- NumPy's functions -----------------------------------------------------------------


def arrays(*shapes):
    return [numbers("ordinary", s, BF16, i) for i, s in enumerate(shapes)]


CALLS = [
    ("matmul", [(4, 5), (5, 6)], {}),
    ("matmul", [(4, 5), (5, 6)], {"dtype": np.float32}),
    ("matmul", [(4, 5), (5, 6)], {"dtype": td.float8_e5m2}),
    ("matmul", [(4, 5), (5, 6)], {"dtype": td.tf32}),
    ("matmul", [(5, 4), (5, 6)], {"axes": [(1, 0), (0, 1), (1, 0)]}),
    ("dot", [(4, 5), (5, 6)], {}),
    ("dot", [(5,), (5,)], {}),
    ("dot", [(4, 5), (5,)], {}),
    ("dot", [(2, 4, 5), (3, 5, 6)], {}),
    ("dot", [(5,), (3, 5, 6)], {}),
    ("inner", [(4, 5), (6, 5)], {}),
    ("inner", [(2, 4, 5), (3, 6, 5)], {}),
    ("inner", [(5,), (5,)], {}),
    ("inner", [(5,), (3, 5)], {}),
    ("vdot", [(4, 5), (4, 5)], {}),
    ("vdot", [(4, 5), (20,)], {}),
    ("vecdot", [(4, 5), (4, 5)], {}),
    ("vecdot", [(4, 5), (3, 1, 5)], {}),
    ("vecdot", [(4, 5), (4, 5)], {"axis": 0}),
    ("vecdot", [(4, 3, 5), (4, 3, 5)], {"axis": 1, "keepdims": True}),
    ("vecdot", [(4, 3, 5), (4, 3, 5)], {"axis": -1, "keepdims": True}),
    ("vecdot", [(4, 5), (4, 5)], {"dtype": np.float32}),
    ("matvec", [(3, 4, 5), (5,)], {}),
    ("matvec", [(4, 5), (3, 5)], {}),
    ("vecmat", [(5,), (3, 5, 4)], {}),
    ("vecmat", [(2, 1, 5), (3, 5, 4)], {"dtype": np.float32}),
    ("tensordot", [(3, 4, 5), (4, 5, 6)], {}),
    ("tensordot", [(3, 4, 5), (5, 4, 6)], {"axes": ([1, 2], [1, 0])}),
    ("tensordot", [(3, 4), (5, 6)], {"axes": 0}),
    ("tensordot", [(3, 4, 5), (6, 4)], {"axes": (1, 1)}),
    ("linalg.matmul", [(4, 5), (5, 6)], {}),
    ("linalg.vecdot", [(4, 5), (4, 5)], {"axis": 0}),
    ("linalg.tensordot", [(3, 4, 5), (4, 5, 6)], {}),
]  # fmt: skip


def numpys(name):
    found = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("case", CALLS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_numpys_functions(backend, case):
    name, shapes, keywords = case
    a = arrays(*shapes)
    got = dispatch(name, tuple(map(on_gpu, a)), dict(keywords))
    assert_same(got, numpys(name)(*a, **keywords))
    b = [a[0], a[1].astype(td.tf32)]  # another dtype
    got = dispatch(name, tuple(map(on_gpu, b)), dict(keywords))
    assert_same(got, numpys(name)(*b, **keywords))


@pytest.mark.parametrize("name", ["matmul", "dot", "vecdot", "matvec", "vecmat"])
def test_out_of_numpys_functions(backend, name):
    a, b = {
        "matvec": [(4, 5), (5,)], "vecmat": [(5,), (5, 4)], "vecdot": [(4, 5), (4, 5)],
    }.get(name, [(4, 5), (5, 4)])  # fmt: skip
    a, b = arrays(a, b)
    want = numpys(name)(a, b)
    out = on_gpu(np.zeros(want.shape, BF16))
    assert dispatch(name, (on_gpu(a), on_gpu(b)), {"out": out}) is out
    assert_same(out, want)
    if name == "dot":
        with pytest.raises(ValueError, match="C-contiguous array of dtype bfloat16"):
            dispatch(name, (on_gpu(a), on_gpu(b)), {"out": on_gpu(OUT)})


@pytest.mark.parametrize(
    "shapes",
    [
        [(4, 5), (5, 6)], [(10, 30), (30, 5), (5, 60)], [(5, 60), (60, 3), (3, 30)],
        [(8, 30), (30, 35), (35, 15), (15, 5), (5, 10)], [(5,), (5, 6), (6,)],
        [(5,), (5, 6), (6, 3), (3, 4)],
    ],
)  # fmt: skip
def test_multi_dot(backend, shapes):
    a = arrays(*shapes)
    got = dispatch("linalg.multi_dot", ([on_gpu(x) for x in a],), {})
    want = np.linalg.multi_dot(a)
    assert_same(got, want)
    out = on_gpu(np.zeros(np.shape(want), BF16))
    assert dispatch("multi_dot", ([on_gpu(x) for x in a],), {"out": out}) is out
    assert_same(out, want)


EINSUMS = [
    ("ij,jk->ik", [(4, 5), (5, 6)], {}),
    ("bij,bjk->bik", [(3, 4, 5), (3, 5, 6)], {}),
    ("bij,bjk", [(3, 4, 5), (3, 5, 6)], {"dtype": np.float32}),
    ("...ij,...kj->...ik", [(2, 4, 5), (3, 1, 6, 5)], {}),
    ("ijk,kji->", [(3, 4, 5), (5, 4, 3)], {}),
    ("ij,ij->i", [(4, 5), (4, 5)], {}),
    ("ii,ij->j", [(5, 5), (5, 6)], {}),
    ("ij,j,jk->ik", [(4, 5), (5,), (5, 6)], {}),
    ("ij,jk,kl->il", [(4, 5), (5, 6), (6, 3)], {"optimize": True}),
    ("ij,kl->il", [(4, 5), (6, 3)], {}),
    ("i,j->ij", [(4,), (5,)], {}),
    ("ij->ji", [(4, 5)], {}),
    ("ij->", [(4, 5)], {}),
    ("ij,jk->ik", [(4, 1), (5, 6)], {}),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(backend, case):
    subscripts, shapes, keywords = case
    a = arrays(*shapes)
    optimize = keywords.get("optimize", False)
    want = np.asarray(td.einsum(subscripts, *a, **{**keywords, "optimize": optimize}))
    got = dispatch("einsum", (subscripts, *map(on_gpu, a)), dict(keywords))
    assert_same(got, want)
    out = on_gpu(np.zeros(want.shape, want.dtype))
    given = (subscripts, *map(on_gpu, a))
    assert dispatch("einsum", given, {**keywords, "out": out}) is out
    assert_same(out, want)
    a[-1] = a[-1].astype(td.tf32)
    want = np.asarray(td.einsum(subscripts, *a, **{**keywords, "optimize": optimize}))
    got = dispatch("einsum", (subscripts, *map(on_gpu, a)), dict(keywords))
    assert_same(got, want)


@pytest.mark.parametrize("wanted", [None, np.float32, td.bfloat16, np.float64])
@pytest.mark.parametrize("other", [np.float16, np.int8, np.float64])
def test_einsum_sums_numpys_dtypes(backend, other, wanted):
    """Letters of only one operand are summed first, in any dtype."""
    a = np.arange(-6, 9).reshape(5, 3).astype(td.tf32)
    b = np.arange(12).reshape(3, 4).astype(other)
    want = td.einsum("ij,jk->i", a, b, dtype=wanted)
    got = dispatch("einsum", ("ij,jk->i", on_gpu(a), on_gpu(b)), {"dtype": wanted})
    assert_same(got, want)


def test_numbers_times_arrays(backend):
    a = numbers("ordinary", (4, 5), BF16)
    for name in ("dot", "inner"):
        assert_same(dispatch(name, (on_gpu(a), 3.0), {}), numpys(name)(a, 3.0))


@pytest.mark.parametrize(
    ("name", "shapes", "text"),
    [
        ("dot", [(4, 5), (4, 5)], r"not aligned: 5 \(dim 1\) != 4 \(dim 0\)"),
        ("inner", [(4, 5), (4, 6)], r"not aligned: 5 \(dim 1\) != 6 \(dim 1\)"),
        ("vdot", [(4, 5), (4,)], "same number of elements for vdot"),
        ("vecdot", [(4, 5), (4, 6)], "got k = 5 and k = 6"),
        ("vecdot", [(4, 5), (3, 5)], "must broadcast"),
        ("matvec", [(5,), (5,)], "at least 2 and 1 axes"),
        ("vecmat", [(4,), (5, 3)], "got k = 4 and k = 5"),
        ("tensordot", [(4, 5), (4, 5)], "shape-mismatch"),
    ],
)
def test_shapes_that_do_not_fit(backend, name, shapes, text):
    axes = {"axes": 1} if name == "tensordot" else {}
    with pytest.raises(ValueError, match=text):
        dispatch(name, tuple(map(on_gpu, arrays(*shapes))), axes)


def test_nothing_goes_through_the_host(backend):
    if backend is not HOST:
        pytest.skip("the host counts")
    x, y = map(on_gpu, arrays((40, 300), (300, 40)))
    z, w = map(on_gpu, arrays((3, 40, 300), (300,)))
    backend.counts.clear()
    matmul(x, y)
    matmul(x, y, dtype=np.float32, out=cupy.empty((40, 40), np.float32))
    matmul(z, y)
    dispatch("matvec", (z, w), {})
    dispatch("tensordot", (z, y), {"axes": 1})
    dispatch("einsum", ("bij,jk->bik", z, y), {})
    matmul(x, y, mode="model", device="A100")
    assert set(backend.counts) == {"launch"}


def test_turing_has_little_shared_memory(backend, monkeypatch):
    if backend is not HOST:
        pytest.skip("of another GPU")
    kernels = []
    monkeypatch.setattr(HOST, "launch", lambda kernel, *_, **__: kernels.append(kernel))
    x = ndarray.empty((1, 512, 512), BF16)
    for arch in ("sm_75", "sm_80"):
        monkeypatch.setattr(HOST, "arch", arch)
        by_plan(fma.plan, x, x, ndarray.empty((1, 512, 512), BF16))
    assert [kernel.name for kernel in kernels] == ["chain_small", "chain_large"]


def test_sizes_that_no_kernel_counts_to(backend, monkeypatch):
    if backend is not HOST:
        pytest.skip("of memory that is not there")
    tasks = []
    monkeypatch.setattr(HOST, "launch", lambda *given, **_: tasks.append(given[3]))
    one = on_gpu(np.ones((1, 1, 1), BF16))

    def product(m, k):
        x = cupy.broadcast_to(one, (1, m, k))
        out = cupy.broadcast_to(cupy.empty((1, 1, 1), np.float32), (1, m, 1))
        by_plan(fma.plan, x, cupy.broadcast_to(one, (1, k, 1)), out)

    with pytest.raises(
        ValueError, match=r"at most .* elements along an axis; got matrices of"
    ):
        product(2**31, 1)
    assert not tasks
    product(1, 2**31)  # stretches of k run in parallel
    assert sum(int(task.value["k"]) for task in tasks) == 2**31


# -- modes -----------------------------------------------------------------------------


WAYS = (
    {"mode": "native", "instruction": "mma.sync"},
    {"mode": "native"},
    {"precision": "bf16x9", "strategy": "eager"},
    {"precision": "fp8_e4m3", "scale": "row"},
)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_stacks_whose_axes_do_not_merge(backend, way):
    """The matrices of the result are then not contiguous, which not all kernels
    support."""
    dtype = np.float32 if "precision" in way else BF16
    x, y = (z.astype(dtype) for z in arrays((5, 1, 9, 24), (1, 2, 24, 7)))
    if way.get("precision") == "bf16x9":
        x[3, 0, 4, 0] = np.inf  # an element that is patched
    whole = matmul(on_gpu(x), on_gpu(y), **way)
    got = on_host(whole)
    for i, j in np.ndindex(5, 2):
        one = matmul(on_gpu(x[i, 0]), on_gpu(y[0, j]), **way)
        if backend is HOST or way != {"mode": "native"}:
            assert_same(one, got[i, j], (i, j))
        else:  # cuBLAS may add a stack in another order
            np.testing.assert_allclose(on_host(one), got[i, j], rtol=0, atol=1e-4)


@pytest.fixture
def recorded(monkeypatch):
    """Replace this GPU's own products, and yield a list of the calls."""
    calls = []

    def filled(a, b, out, value):
        backends.current().call("ndarray.fill", out, value)

    def native(a, b, c, instruction):
        calls.append(("native", a.dtype.name, b.dtype.name, a.shape, instruction))
        return functools.partial(filled, value=3)

    def emulation(a, b, c, precision, **options):
        calls.append(("emulation", a.dtype.name, precision, options))
        return functools.partial(filled, value=4)

    def choose(precision, strategy, m, n, k):
        calls.append((strategy, m, n, k))
        emulates = strategy == "eager" or "x" not in precision.lower()
        return find_precision(precision).short if emulates else "f32"

    monkeypatch.setattr(tensor_cores, "plan", native)
    monkeypatch.setattr(split_emulation, "plan", emulation)
    monkeypatch.setattr(split_emulation, "choose_precision", choose)
    plan_product.cache_clear()  # which has the functions that are replaced
    yield calls
    plan_product.cache_clear()


def test_native(backend, recorded):
    x, y = map(on_gpu, arrays((2, 4, 5), (5, 6)))
    got = matmul(x, y, mode="native")
    assert_same(got, np.full((2, 4, 6), 3, np.float32))
    assert recorded == [("native", "bfloat16", "bfloat16", (2, 4, 5), None)]
    with matmul_mode("native", instruction="mma.sync"):
        assert_same(dispatch("matmul", (x, y), {}), np.full((2, 4, 6), 3, np.float32))
        assert_same(dispatch("dot", (x, y), {}), np.full((2, 4, 6), 3, np.float32))
        got = matmul(x, y, dtype=td.tf32)
        assert_same(got, np.full((2, 4, 6), 3, td.tf32))
    assert {call[-1] for call in recorded[1:]} == {"mma.sync"}
    z = on_gpu(np.ones((4, 4), np.float32))
    matmul(z, z, mode="native")
    assert recorded[-1][1:3] == ("tf32", "tf32")


def test_precisions(backend, recorded):
    x = on_gpu(np.ones((4, 4), np.float32))
    ours = ndarray.wrap(x, np.float32)
    assert_same(matmul(x, x), np.full((4, 4), 4, np.float32))
    assert type(matmul(x, x)) is cupy.ndarray
    assert type(matmul(ours, x)) is ndarray.ndarray
    assert recorded == []
    four = np.full((4, 4), 4, np.float32)
    assert_same(matmul(x, x, precision="BF16_BF16_F32_X9", strategy="eager"), four)
    options = {"rounding": None, "scale": "tensor"}
    options["special_values"] = "propagate"
    assert recorded == [
        ("eager", 4, 4, 4),
        ("emulation", "float32", "bf16x9", options),
    ]
    recorded.clear()
    matmul(x, x, precision="bf16x9")
    assert recorded == [("performant", 4, 4, 4), ("emulation", "float32", "f32", {})]
    recorded.clear()
    with td.matmul_precision("fp8_e4m3", scale="row"):
        assert type(dispatch("matmul", (ours, ours), {})) is ndarray.ndarray
        with td.matmul_precision(None):
            matmul(x, x)
        bf16 = on_gpu(np.ones((4, 4), BF16))
        assert_same(matmul(bf16, bf16), np.full((4, 4), 4, BF16))
        matmul(x, x, mode="model", device="A100")
    options["scale"] = "row"
    assert recorded[1:] == [("emulation", "float32", "fp8_e4m3", options)]
    td.set_matmul_precision("tf32")
    try:
        matmul(x, x)
        assert recorded[-1][2] == "tf32"
    finally:
        td.set_matmul_precision(None)
    block = td.matmul_precision("bf16", device="A100")
    with (
        pytest.raises(
            ValueError, match="must not have a device on a GPU; got device='A100'"
        ),
        block,
    ):
        matmul(x, x)


def test_modes_nest(backend):
    a, b = arrays((4, 40), (40, 6))
    x, y = on_gpu(a), on_gpu(b)
    model = td.tensor_core.matmul(a, b, device="A100")
    block = matmul_mode("model", device="ampere")
    assert repr(block) == (
        "<matmul_mode('model', device='A100', instruction='mma.sync')>"
    )
    with block:
        assert_same(matmul(x, y), model)
        with block, matmul_mode("chain"):
            assert_same(matmul(x, y), a @ b)
        assert_same(dispatch("matmul", (x, y), {}), model)
        assert_same(matmul(x, y, mode="chain"), a @ b)
        found = []
        other = threading.Thread(target=lambda: found.append(current_mode()))
        other.start()
        other.join()
        assert found == [Mode()]
    assert_same(matmul(x, y), a @ b)

    @block
    def multiply():
        return matmul(x, y)

    assert_same(multiply(), model)
    assert current_mode() == Mode()
    with pytest.raises(TypeError, match="decorate a generator"):

        @block
        def later():
            yield 1

    with pytest.raises(ZeroDivisionError), block:
        raise ZeroDivisionError
    assert current_mode() == Mode()


def test_modes_of_coroutines(backend):
    """The mode holds in the coroutine's body, also while other coroutines run."""
    block = matmul_mode("model", device="A100")

    @block
    async def modes():
        before = current_mode()
        await asyncio.sleep(0)
        return [before, current_mode()]

    async def plain():
        await asyncio.sleep(0)
        return current_mode()

    async def main():
        return await asyncio.gather(modes(), plain(), modes())

    assert inspect.iscoroutinefunction(modes)
    inside = [Mode("model", "A100", "mma.sync")] * 2
    assert asyncio.run(main()) == [inside, Mode(), inside]
    assert current_mode() == Mode()


# -- faults ----------------------------------------------------------------------------


FAULTS = {
    "no barrier behind the first tile": (LINE, ""),
    "no barrier behind the next tile": (LINE, ""),
    "one tile in place of two": ("(k / DEPTH + 1) % 2 * BOTH", "k / DEPTH % 2 * BOTH"),
    "a wrong row": ("<ROWS, HIGH>(seat.y, 0)", "<ROWS, HIGH>(seat.x, 0)"),
    "swapped operands": ("of_b.begin(b, task.b,", "of_b.begin(b, task.a,"),
    "k is too short": (
        "for (int k = 0; k < depth; k += DEPTH)",
        "for (int k = 0; k < depth - 1; k += DEPTH)",
    ),
    "k ends within a tile": ("depth % DEPTH == 0 &&", "true &&"),
    "longer chains": ("(k + DEPTH) % CHAIN == 0", "(k + DEPTH) % (2 * CHAIN) == 0"),
    "+0 where there is no k": (
        "#define NOTHING_OF_A -0.0f",
        "#define NOTHING_OF_A 0.0f",
    ),
    "the first sum added to +0": ("is_first ? sum[r][s]", "false ? sum[r][s]"),
    "NaN as it comes": ("sum == sum ?", "true ?"),
    "columns beyond the last": ("column < task.n) {", "true) {"),
    "the parts' sums in the order they end": (
        "int part = 1; part < task.parts; part++",
        "int part = task.parts - 1; part > 0; part--",
    ),
}


def chain_cases():
    k = 600
    for kind in ("wide", "codes"):
        yield numbers(kind, (70, k), BF16), numbers(kind, (k, 70), BF16, 1)
        yield numbers(kind, (130, k), BF16), numbers(kind, (k, 130), BF16, 1)
        yield numbers(kind, (4, 5 * k), BF16), numbers(kind, (5 * k, 4), BF16, 1)
    yield numbers("wide", (72, k + 4), BF16), numbers("wide", (k + 4, 72), BF16, 1)
    tiny = np.full((3, 9), -(2.0**-100), td.bfloat16)
    yield tiny, -tiny.T


def chains_differ():
    """Return whether a product differs from the CPU's, in either order of threads."""
    for descends in (False, True):
        HOST.descends = descends
        for a, b in chain_cases():
            # A margin around the output shows writes out of range.
            room = cupy.empty((a.shape[0] + 2, b.shape[1] + 70), np.float32)
            numpy_view(room)[...] = 7
            out = room[1:-1, :-70]
            by_plan(fma.plan, on_gpu(a), on_gpu(b), out)
            want = np.full(room.shape, 7, np.float32)
            want[1:-1, :-70] = np.matmul(a, b, dtype=np.float32)
            if (on_host(room).view("u4") != want.view("u4")).any():
                return True
    return False


def test_chains_do_not_differ(backend):
    if backend is HOST:
        assert not chains_differ()


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are put in where the host runs kernels")
    backend.put_fault(fault, *FAULTS[fault])
    with contextlib.suppress(KernelError):
        assert chains_differ()


# -- machine code ----------------------------------------------------------------------


def kernel_of(a, b):
    common = np.result_type(a, b)
    return Kernel(fma.FILE, "chain_large", fma.options(a, b, common))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_machine_code(arch):
    found = check(kernel_of(BF16, BF16), arch, ("FFMA", "LDS.128"))
    assert found["FFMA"] >= 8 * (64 + 16 + 8 + 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("f", ALL, ids=format_name)
def test_machine_code_of_all(f, arch):
    check(kernel_of(dtype(f), dtype(f)), arch, ("FFMA", "LDS.128"))
