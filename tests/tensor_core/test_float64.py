"""Chains of float64 fused multiply-adds: all bits against `reference.float64_chain`."""

from __future__ import annotations

import math
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.float64_chain import chain, fma
from tests.support.interpreters import run
from tests.tensor_core.test_explain import check_text
from tf32dtype import _core
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.steps import steps

Array = np.ndarray[Any, Any]
matmul = td.tensor_core.matmul

ROWS = [model for model in MODELS if model.accumulator == "float64"]
NAN = 0x7FF8000000000000
LEAST, NORMAL, LARGEST = 2.0**-1074, 2.0**-1022, sys.float_info.max
EDGES = (0.0, LEAST, NORMAL - LEAST, NORMAL, 2.0**-537, 1 - 2.0**-53, 1.0, 1 + 2.0**-52,
         2.0**512, LARGEST, math.inf, math.nan)  # fmt: skip

#: x, y, z and fma(x, y, z), computed by hand.
FACTS = [
    (1 + 2.0**-52, 1 - 2.0**-52, -1.0, -(2.0**-104)),
    (2.0**-537, 2.0**-537, LEAST, 2 * LEAST),
    (2.0**-538, 2.0**-537, 0.0, 0.0),  # a tie, to even
    (-(2.0**-538), 2.0**-537, 0.0, -0.0),
    (1.5 * 2.0**-538, 2.0**-537, 0.0, LEAST),
    (2.0**-538, 2.0**-537, LEAST, 2 * LEAST),  # a tie, to even
    (2.0**-53, 1.0, 1.0, 1.0),
    (2.0**-53, 1.0, 1 + 2.0**-52, 1 + 2.0**-51),
    (LARGEST, 2.0, -LARGEST, LARGEST),  # no intermediate Inf
    (LARGEST, -2.0, math.inf, math.inf),
    (2.0**969, 1.0, LARGEST, LARGEST),
    (2.0**970, 1.0, LARGEST, math.inf),
    (-1.0, 0.0, -0.0, -0.0),
    (1.0, 0.0, -0.0, 0.0),
    (1.0, -1.0, 1.0, 0.0),
    (math.inf, 0.0, 1.0, math.nan),
    (math.inf, 1.0, -math.inf, math.nan),
]


def signed(numbers: Any) -> list[float]:
    return [sign * x for x in numbers for sign in (1.0, -1.0)]


def bits(x: Any) -> Array:
    """Return the bits of float64 numbers, and for every NaN the bits of our NaN."""
    x = np.asarray(x, np.float64)
    return np.where(np.isnan(x), np.uint64(NAN), x.view(np.uint64))


def expected(a: Array, b: Array, c: Array, depth: int = 4) -> Array:
    found = [
        chain(row, column, start, depth)
        for row, starts in zip(a.tolist(), c.tolist(), strict=True)
        for column, start in zip(b.T.tolist(), starts, strict=True)
    ]
    return bits(found).reshape(c.shape)


def assert_product(a: Array, b: Array, c: Array, **keywords: Any) -> int:
    got = matmul(a, b, c, **{"device": "A100"} | keywords)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got.view(np.uint64), expected(a, b, c))
    return got.size


def drawn(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if kind == "bits":
        return rng.integers(0, 1 << 64, shape, np.uint64).view(np.float64)
    if kind == "few":
        return rng.integers(-3, 4, shape) * 2.0 ** rng.integers(-53, 2, shape)
    if kind == "edges":
        return rng.choice(signed(EDGES[:-2]), shape)
    x = rng.standard_normal(shape)
    center, width = {
        "normal": (0, 1), "wide": (0, 300), "tiny": (-525, 20), "large": (511, 4),
    }[kind]  # fmt: skip
    return np.ldexp(x, rng.integers(center - width, center + width, shape))


KINDS = ("normal", "wide", "tiny", "large", "few", "edges", "bits")


def test_the_reference_itself():
    for x, y, z, want in FACTS:
        assert bits(fma(x, y, z)) == bits(want), (x, y, z)
        assert bits(fma(y, x, z)) == bits(want), (x, y, z)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="math.fma is of Python 3.13")
def test_the_reference_against_pythons_fma():
    rng = np.random.default_rng(3)
    for kind in KINDS:
        for x, y, z in drawn(kind, (3000, 3), rng).tolist():
            try:
                want = math.fma(x, y, z)
            except OverflowError:
                want = math.copysign(math.inf, fma(x, y, z))
            except ValueError:  # an invalid operation
                want = math.nan
            assert bits(fma(x, y, z)) == bits(want), (x, y, z)


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_of_explain(kind, compared):
    rng = np.random.default_rng(7)
    model = next(model for model in ROWS if model.device == "H100")
    for k in (1, 3, 4, 21):
        cases = drawn(kind, (12, 2 * k + 1), rng)
        for x, y, z in zip(cases[:, :k], cases[:, k:-1], cases[:, -1], strict=True):
            a, b, c = x.tolist(), y.tolist(), float(z)
            *_, last = steps(model, a, b, c)
            assert bits(last.result) == bits(chain(a, b, c, 4)), (a, b, c)
            text = td.tensor_core.explain(x, y, z, device="H100")
            check_text(text, matmul(x, y, z, device="H100"))
        compared(len(cases))


def test_explain_side_by_side():
    a, b = np.random.default_rng(8).standard_normal((2, 30))
    text = td.tensor_core.explain(a, b, device=["H100", "MI300X"])
    assert "The accumulators are equal after all k" in text
    assert max(map(len, text.splitlines())) <= 88


def test_rows_and_what_they_are():
    boards = {"A100", "L40S", "H100", "B200", "RTX Blackwell", "MI250X", "MI300X"}
    assert {model.device for model in ROWS} == boards
    for model in ROWS:
        assert (model.a, model.b, model.instruction_depth) == ("float64", "float64", 4)


def test_edges(compared):
    triples = list(product(signed(EDGES), repeat=3))
    x, y, z = np.array(triples).T[..., np.newaxis, np.newaxis]
    got = matmul(x, y, z, device="A100")
    want = bits([chain([p], [q], r, 4) for p, q, r in triples])
    np.testing.assert_array_equal(got.ravel().view(np.uint64), want)
    compared(want.size)


def test_what_fills_an_instruction_makes_minus_zero_plus_zero():
    for k in range(1, 9):
        a, b, c = np.full((1, k), -1.0), np.zeros((k, 1)), np.full((1, 1), -0.0)
        got = matmul(a, b, c, device="H100")
        assert np.signbit(got).item() is (k % 4 == 0), k


def test_no_k_leaves_c():
    c = np.array([[0xFFF0000000000001, 1 << 63]], np.uint64).view(np.float64)
    got = matmul(np.empty((1, 0)), np.empty((0, 2)), c, device="A100")
    np.testing.assert_array_equal(got.view(np.uint64), c.view(np.uint64))


SHAPES = [(1, 1, 1), (7, 5, 9), (13, 9, 33), (1, 40, 17), (17, 40, 1), (5, 4, 2)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind, compared):
    rng = np.random.default_rng(5)
    for m, k, n in SHAPES:
        a, b, c = (drawn(kind, s, rng) for s in ((m, k), (k, n), (m, n)))
        compared(assert_product(a, b, c))
        compared(assert_product(a, b, np.zeros((m, n))))
        # c is the exact negative of the first product.
        c = -matmul(a[:, :1], b[:1], device="A100")
        compared(assert_product(a, b, c))


@pytest.mark.exhaustive
def test_products_beyond_what_is_packed_at_a_time(compared):
    rng = np.random.default_rng(6)
    for m, k, n in [(194, 4, 20), (7, 4, 520), (3, 401, 4), (195, 197, 2)]:
        a, b, c = (drawn("wide", s, rng) for s in ((m, k), (k, n), (m, n)))
        compared(assert_product(a, b, c))


def test_every_device_computes_the_same():
    rng = np.random.default_rng(7)
    a, b, c = (drawn("normal", s, rng) for s in ((9, 30), (30, 8), (9, 8)))
    want = expected(a, b, c)
    for model in ROWS:
        got = matmul(a, b, c, device=model.device, instruction=model.instruction)
        np.testing.assert_array_equal(got.view(np.uint64), want)


def test_layouts_and_stacks(compared):
    rng = np.random.default_rng(8)
    x, y = drawn("wide", (2, 1, 14, 22), rng), drawn("wide", (3, 22, 18), rng)
    a, b = x[..., ::2, ::-2], y[:, ::-2, 1::2]
    c = drawn("wide", (9,), rng)
    want = np.array([[expected(p, q, np.tile(c, (7, 1))) for q in b] for p in a[:, 0]])
    unaligned = np.empty(a.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(a.shape)
    unaligned[...] = a
    across = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
    for left in (a, a.copy(), np.asfortranarray(a), unaligned, a.astype(">f8")):
        for right in (b, b.copy(), across):
            got = matmul(left, right, c, device="A100")
            np.testing.assert_array_equal(got.view(np.uint64), want)
            compared(got.size)
    out = np.empty((2, 3, 9, 7)).swapaxes(2, 3)
    assert matmul(a, b, c, device="A100", out=out) is out
    np.testing.assert_array_equal(bits(out), want)
    np.testing.assert_array_equal(bits(matmul(a[0, 0, 0], b, c, device="A100")),
                                  want[0][:, 0])  # fmt: skip
    row = matmul(a[0, 0], b[0, :, 0], c[0], device="A100")
    np.testing.assert_array_equal(bits(row), want[0, 0, :, 0])
    assert isinstance(matmul(a[0, 0, 0], b[0, :, 0], device="A100"), np.float64)
    square = drawn("normal", (6, 6), rng)
    same = expected(square, square, square)
    matmul(square, square, square, device="A100", out=square)
    np.testing.assert_array_equal(bits(square), same)
    assert matmul(np.ones((0, 3)), np.ones((3, 2)), device="A100").shape == (0, 2)


def test_into_any_strides():
    """The function of `_core` adds to the numbers in `out`."""
    rng = np.random.default_rng(9)
    a, b, c = (drawn("wide", s, rng) for s in ((1, 7, 9), (1, 9, 40), (1, 7, 40)))
    want = expected(a[0], b[0], c[0])
    apart, across = np.empty((1, 14, 80)), np.empty((1, 40, 7))
    for out in (apart[:, ::-2, ::2], across.swapaxes(1, 2)):
        out[...] = c
        _core.fma_matmul(ROWS[0], a, b, out)
        np.testing.assert_array_equal(bits(out[0]), want)


def test_nothing_is_reported_and_nan_is_ours():
    with np.errstate(all="raise"):
        got = matmul([[LARGEST, 1.0]], [[LARGEST], [1.0]], device="A100")
        assert np.isposinf(got).all()
        inf, minus = np.full((1, 1), math.inf), np.full((1, 1), -math.inf)
        for c in (
            minus,
            np.full((1, 1), 0xFFF0000000000001, np.uint64).view(np.float64),
        ):
            got = matmul(inf, np.ones((1, 1)), c, device="A100")
            assert got.view(np.uint64) == NAN


def test_arguments():
    x = np.ones((2, 4))

    def rejects(kind: type[Exception], message: str, *args: Any, **more: Any) -> None:
        with pytest.raises(kind, match=message):
            matmul(*args, **{"device": "A100"} | more)

    rejects(ValueError, "accumulator is float32", x, x.T, promote_every=4)
    rejects(ValueError, "rounding must be None", x, x.T, rounding="ties_to_even")
    rejects(TypeError, "got a of float64 and b of float32", x, x.T.astype(np.float32))
    rejects(TypeError, "got b of float64 and a of float32", x.astype(np.float32), x.T)
    rejects(ValueError, "float64 x float64 -> float32", x, x.T, accumulator=np.float32)
    half = x.astype(np.float16)
    rejects(ValueError, "float16 x float16 -> float64", half, half.T, accumulator="f8")
    rejects(
        ValueError, "V100 mma.sync cannot multiply .*float64", x, x.T, device="V100"
    )
    rejects(TypeError, "c must .* float64; got float32", x, x.T,
            np.ones((2, 2), np.float32))  # fmt: skip
    rejects(
        TypeError, "out must .*; got float32", x, x.T, out=np.empty((2, 2), np.float32)
    )
    assert matmul(x, x.T, device="H100", accumulator=np.float64).dtype == np.float64
    model = next(m for m in MODELS if m.a == "float32")
    with pytest.raises(ValueError, match="model must be a chain of float64"):
        _core.fma_matmul(model, x[None], x.T[None], np.ones((1, 2, 2)))
    with pytest.raises(TypeError, match="must be float64; got float32"):
        _core.fma_matmul(ROWS[0], x[None].astype(np.float32), x.T[None],
                         np.ones((1, 2, 2)))  # fmt: skip


def test_identify():
    rng = np.random.default_rng(10)
    a, b, c = (rng.standard_normal(s) for s in ((5, 50), (50, 6), (5, 6)))
    d = matmul(a, b, c, device="A100")
    assert [one.model for one in td.tensor_core.identify(a, b, c, d)] == [*ROWS]
    d[0, 0] = np.nextafter(d[0, 0], 2)
    assert not td.tensor_core.identify(a, b, c, d)
    with pytest.raises(ValueError, match="formats that a model multiplies"):
        td.tensor_core.identify(a, b, None, d.astype(np.float32))


CODE = """
import hashlib, numpy as np, tf32dtype as td
rng = np.random.default_rng(5)
x, y = (np.ldexp(rng.standard_normal((n, 210)), rng.integers(-40, 40, (n, 210)))
        for n in (260, 210))
print(hashlib.sha256(td.tensor_core.matmul(x, y, device="A100").tobytes()).hexdigest())
"""


def test_neither_threads_nor_instruction_sets_change_a_bit():
    each = enumerate(["", *_core.available_isas()], start=1)  # the best one first
    found = {
        run("-c", CODE, OMP_NUM_THREADS=str(threads), TF32DTYPE_ISA=isa)
        for threads, isa in each
    }
    assert len(found) == 1
