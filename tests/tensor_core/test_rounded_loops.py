"""Fast loops of units that round otherwise than aligned sums, against the integers."""

from __future__ import annotations

import ctypes
from platform import machine
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run
from tests.tensor_core.test_matmul import one_by_one
from tf32dtype.tensor_core.rounded import ROUNDED

Array = np.ndarray[Any, Any]

SINGLES = [model for model in ROUNDED if model.accumulator == "float32"]
# Rows that differ in names alone have the same loops.
UNLIKE = list(
    {
        tuple(value for key, value in vars(m).items()
              if key not in ("device", "instruction", "verified")): m
        for m in SINGLES
    }.values()
)  # fmt: skip


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(td, name, None) or getattr(np, name))


def drawn(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    x = rng.standard_normal(shape)
    if kind == "wide":
        return np.ldexp(x, rng.integers(-40, 41, shape))
    if kind == "tiny":  # products and sums about float32's least normal number
        return np.ldexp(x, rng.integers(-68, -58, shape))
    if kind == "least":  # exact powers of two, and what is next to them
        return np.ldexp(
            rng.choice([-1, 1, 1.0078125], shape), rng.integers(-70, -55, shape)
        )
    if kind == "large":
        return np.ldexp(x, rng.integers(50, 64, shape))
    if kind == "sparse":
        return x * (rng.random(shape) < 0.1)
    if kind == "ties":  # few bits, far apart
        return np.ldexp(rng.integers(-3, 4, shape), 12 * rng.integers(-1, 2, shape))
    if kind == "cancel":  # pairs of k
        x[:, 1::2] = -x[:, : x.shape[1] // 2 * 2 : 2]
        return np.ldexp(x, rng.integers(-12, 13, (len(x), 1)))
    if kind in ("special", "special wide"):
        x = drawn(rng, kind[8:] or "normal", shape)
        chosen = rng.choice([np.inf, -np.inf, np.nan], shape)
        return np.where(rng.random(shape) < 0.005, chosen, x)
    assert kind == "normal"
    return x


def operand(
    rng: np.random.Generator, kind: str, shape: tuple[int, int], name: str
) -> Array:
    dtype = dtype_of(name)
    if kind == "bits":
        size = 4 if dtype == td.tf32 else dtype.itemsize
        x = rng.integers(0, 2 ** (8 * size), shape, dtype=f"u{size}")
        x[rng.random(shape) < 0.1] = 1 << (8 * size - 1)  # -0
        if size == 4:  # bits that tf32 does not have
            x &= np.uint32(0xFFFFE000 if dtype == td.tf32 else 0xFFFFFFFF)
        return x.view(dtype)
    with np.errstate(all="ignore"):
        x = drawn(rng, kind, shape).astype(dtype)
        if not kind.startswith("special"):
            x = np.where(np.isfinite(x.astype(np.float32)), x, np.ones_like(x))
    return x


def accumulators(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    if kind == "bits":
        c = operand(rng, kind, shape, "float32")
    elif kind == "tiny":
        c = np.ldexp(rng.standard_normal(shape), rng.integers(-135, -115, shape))
    elif kind == "least":
        c = np.ldexp(rng.choice([-1.0, 1.0], shape), rng.integers(-128, -124, shape))
    elif kind == "ties":
        c = rng.integers(-3, 4, shape) * 2.0**24
    else:
        c = drawn(rng, kind, shape)
    c = c.astype(np.float32)
    c[rng.random(shape) < 0.2] = 0
    c[rng.random(shape) < 0.2] = -0.0
    return c


KINDS = ["normal", "wide", "tiny", "least", "large", "sparse", "ties", "cancel",
         "special", "special wide", "bits"]  # fmt: skip


@pytest.mark.parametrize("model", UNLIKE, ids=lambda m: m.name)
def test_fast_form_equals_slow_one(model, compared):
    """Tiles of many rows and columns, with all that sends a block to the integers."""
    rng = np.random.default_rng(17)
    for number, kind in enumerate(KINDS):
        shapes = [(37, 300, 70), (7, 67, 33), (1, 1, 5), (6, 64, 16)]
        for m, k, n in shapes[:1] if number == 0 else shapes[1:]:
            a = operand(rng, kind, (m, k), model.a)
            b = operand(rng, kind, (n, k), model.b).T
            if kind == "cancel":  # products cancel, not operands
                b = np.repeat(b[: (k + 1) // 2], 2, axis=0)[:k]
            c = accumulators(rng, kind, (m, n))
            got = td.tensor_core.matmul(
                a, b, c, device=model.device, instruction=model.instruction,
                accumulator=model.accumulator,
            )  # fmt: skip
            want = one_by_one(model, a, b, c)
            unlike = got.view(np.uint32) != want.view(np.uint32)
            assert not unlike.any(), (kind, (m, k, n), np.argwhere(unlike)[:3],
                                      got[unlike][:3], want[unlike][:3])  # fmt: skip
            compared(got.size)


@pytest.mark.parametrize("model", UNLIKE, ids=lambda m: m.name)
def test_sums_that_begin_with_zero(model, compared):
    """Over several k-steps, some of which have products that are less than 2^-126."""
    rng = np.random.default_rng(21)
    row, column = np.zeros((6, 540)), np.zeros((540, 16))
    row[:, [0, 2, 300]] = 2.0**-53, 2.0**-64, 2.0**-53
    column[[0, 2, 300]] = [[-(2.0**-53)], [2.0**-64], [2.0**-53]]
    with np.errstate(all="ignore"):
        cases = [(row.astype(dtype_of(model.a)), column.astype(dtype_of(model.b)))]
    for order in (["tiny", "normal"], ["normal", "tiny"], ["sparse", "least"]):
        a = [operand(rng, kind, (16, 270), model.a) for kind in order]
        b = [operand(rng, kind, (20, 270), model.b) for kind in order]
        cases.append((np.concatenate(a, axis=1), np.concatenate(b, axis=1).T))
    for a, b in cases:
        got = td.tensor_core.matmul(
            a, b, device=model.device, instruction=model.instruction,
            accumulator=model.accumulator,
        )  # fmt: skip
        want = one_by_one(model, a, b, np.zeros(got.shape, np.float32))
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
        compared(got.size)


NEAR = 2.0**-12
A, B = 1 + 2.0**-7, 1 + 2.0**-6
#: Rows of A, columns of B and accumulators where a bound of a loop decides: a device, a
#: format, k numbers of each, c, and c + a b.
EDGES = {
    "zero lies between": (
        "MI100", "float16", [NEAR, -NEAR, -1.5 * 2.0**15, 0],
        [NEAR, NEAR / 2, 2.0**15, 0], 1.5 * 2.0**30, 2.0**-25,
    ),
    "sums of 54 bits": (
        "MI100", "float16", [2.0**15, A, -1, 0], [2, A, B, 0], (2**24 - 1) * 2.0**15,
        2.0**39 + 2.0**16,
    ),
    "a power of two lies above": (
        "MI100", "float16", [2.0**14, 1, -15 * 2.0**-13, 2.0**-13],
        [2.0**14, 2, 2.0**-14, 2.0**-14], -(2.0**28), 2 - 2.0**-23,
    ),
    "a power of two lies below": (
        "MI100", "float16", [2.0**14, -1, 15 * 2.0**-13, -(2.0**-13)],
        [2.0**14, 2, 2.0**-14, 2.0**-14], -(2.0**28), -2 + 2.0**-23,
    ),
    "two lanes leave 26 bits": (
        "MI300X", "float8_e4m3fnuz", [30] * 14 + [2.0**-10] * 2,
        [1.875] * 14 + [2.0**-7, 2.0**-10], -1024, -236.5 + 2.0**-16,
    ),
    "many products": (
        "MI100", "float16", [2.0**15] * 60 + [2.0**8, A / 8, -1 / 8, 0],
        [2.0**15] * 60 + [8, A / 8, B / 8, 0], 0, 60 * 2.0**30 + 2.0**12,
    ),
    "a subnormal number when scaled": (
        "MI300X", "bfloat16", [2.0**27] + [0] * 7, [2.0**28] + [0] * 7, -(2.0**-126),
        2.0**55 - 2.0**31,
    ),
    "Inf beside great products": (
        "MI300X", "bfloat16", [2.0**61] + [0] * 7, [2.0**61] + [0] * 7, np.inf, np.inf,
    ),
    "NaN beside great products": (
        "MI300X", "bfloat16", [2.0**61] + [0] * 7, [2.0**61] + [0] * 7, np.nan, np.nan,
    ),
    "overflow in a chain": (
        "MI300X", "tf32", [2.0**63] * 20, [2.0**61] * 20, 1, np.inf,
    ),
}  # fmt: skip

#: MI300X, an accumulator nine bits above products, whose greatest ones cancel: the
#: first rounding leaves 31 fraction bits of the sum. Other products, and c and the sum.
BELOW = {
    "the 31st bit": ((2.0**-16, 2.0**-23), 384, 384 + 2.0**-15),
    "the 32nd bit": ((2.0**-16, 2.0**-24), 384, 384),
    "the 32nd bit, of a greater sum": (
        (2.0**-14, 2.0**-23), 512 - 2.0**-15, 512
    ),
    "the 31st bit, of a smaller sum": (
        (-(2.0**-16), -(2.0**-17), 2.0**-24), 256, 256 - 2.0**-16
    ),
}  # fmt: skip


def edge_below(dtype: str, products: tuple[float, ...], c: float, want: float) -> tuple:
    lanes = 2 if dtype.startswith("float8") else 1
    row, column = [0.0] * 16, [0.0] * 16
    for i, x in enumerate((1, -1, *products)):
        row[i * lanes], column[i * lanes] = (x, 1) if i < 2 else (2.0**-12, 2.0**12 * x)
    return "MI300X", dtype, row, column, c, want


EDGES |= {
    f"{name}, {dtype}": edge_below(dtype, *case)
    for name, case in BELOW.items()
    for dtype in ("float16", "bfloat16", "float8_e5m2fnuz")
}


@pytest.mark.parametrize("special", [False, True], ids=["", "beside NaN"])
@pytest.mark.parametrize("name", EDGES)
def test_edges_of_loops(name, special):
    """In a full tile: what fills up others goes another way."""
    device, dtype, row, column, c, want = EDGES[name]
    a = np.tile(np.float32(row), (6, 1))
    if special:  # in row 1; the others have nothing that is in doubt
        a[1] = np.nan
        a[2:] = 0
    b = np.tile(np.float32(column), (64, 1)).T
    with np.errstate(all="ignore"):
        got = td.tensor_core.matmul(
            a.astype(dtype_of(dtype)), b.astype(dtype_of(dtype)),
            np.full((6, 64), c, np.float32), device=device, instruction="mfma",
        )  # fmt: skip
    np.testing.assert_array_equal(got[:1] if special else got, np.float32(want))
    assert np.isnan(got[1]).all() or not special


def cancelling(rng: np.random.Generator, a: Array, b: Array) -> Array:
    """Accumulators that take away a product, or leave the middle of two results."""
    first = a[:, :1].astype(np.float64) @ b[:1].astype(np.float64)
    away = np.ldexp(rng.integers(-2, 3, first.shape), rng.choice([-24, -23, 0], 1))
    c = (-first * (1 + away)).astype(np.float32)
    far = np.ldexp(first, -rng.integers(20, 60, first.shape)).astype(np.float32)
    return np.where(rng.random(first.shape) < 0.5, c, far)


@pytest.mark.parametrize("model", UNLIKE, ids=lambda m: m.name)
def test_products_far_apart_that_accumulators_cancel(model, compared):
    rng = np.random.default_rng(18)
    for k in (2, 4, 16, 34):
        a = operand(rng, "normal", (32, k), model.a)
        b = operand(rng, "normal", (64, k), model.b)
        span = 30 if np.dtype(a.dtype) != np.float16 else 12
        with np.errstate(all="ignore"):
            x = np.ldexp(a.astype(np.float32), -rng.integers(0, span, a.shape))
            x[:, 0] = np.ldexp(x[:, 0], span)
            # few bits: products that lie on middles
            y = np.round(b.astype(np.float32))
            a, b = x.astype(a.dtype), y.astype(b.dtype).T
            c = cancelling(rng, a, b)
        got = td.tensor_core.matmul(
            a, b, c, device=model.device, instruction=model.instruction,
            accumulator=model.accumulator,
        )  # fmt: skip
        want = one_by_one(model, a, b, c)
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
        compared(got.size)


@pytest.mark.skipif(machine() != "x86_64", reason="with the constants of x86's fenv.h")
def test_the_callers_rounding_mode_remains(compared):
    mathematics = ctypes.CDLL(None)
    x = operand(np.random.default_rng(19), "wide", (40, 70), "bfloat16")
    for device in ("Arm BF16", "MI100"):
        want = td.tensor_core.matmul(x, x.T, device=device)
        for mode in (0x400, 0x800, 0xC00):  # downward, upward, toward zero
            mathematics.fesetround(mode)
            try:
                got = td.tensor_core.matmul(x, x.T, device=device)
                found = mathematics.fegetround()
            finally:
                mathematics.fesetround(0)
            assert found == mode
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
            compared(got.size)


@pytest.mark.parametrize(
    "isa", [isa for isa in td._core.available_isas() if isa != td.isa()]
)
def test_fast_form_on_every_instruction_set(isa):
    names = [
        "test_fast_form_equals_slow_one",
        "test_edges_of_loops",
        "test_products_far_apart_that_accumulators_cancel",
    ]
    tests = [f"{__file__}::{name}" for name in names]
    printed = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests,
                  TF32DTYPE_ISA=isa, timeout=600)  # fmt: skip
    assert f"{2 * len(UNLIKE) + 2 * len(EDGES)} passed" in printed
