"""Operands for the fast loops of units that round otherwise than aligned sums.

A process with another instruction set computes them too. This file therefore does not
import pytest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td
from tf32dtype.tensor_core.rounded import ROUNDED

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """Operands of a matrix product, with their name."""

    name: object
    a: Array
    b: Array
    c: Array


SINGLES = [model for model in ROUNDED if model.accumulator == "float32"]
# Rows that differ only in names have the same loops.
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
    if kind == "tiny":  # products and sums about float32's smallest normal
        return np.ldexp(x, rng.integers(-68, -58, shape))
    if kind == "least":  # exact powers of two and neighbors
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
        if size == 4:  # clear the bits that tf32 ignores
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


def products(model: Any) -> Iterator[Case]:
    """Yield tiles of many rows and columns, with all reasons to compute by integers."""
    rng = np.random.default_rng(17)
    for number, kind in enumerate(KINDS):
        shapes = [(13, 300, 70), (7, 67, 33), (1, 1, 5), (6, 64, 16)]
        for m, k, n in shapes[:1] if number == 0 else shapes[1:]:
            a = operand(rng, kind, (m, k), model.a)
            b = operand(rng, kind, (n, k), model.b).T
            if kind == "cancel":  # products cancel, not operands
                b = np.repeat(b[: (k + 1) // 2], 2, axis=0)[:k]
            yield Case((kind, (m, k, n)), a, b, accumulators(rng, kind, (m, n)))


def canceling(rng: np.random.Generator, a: Array, b: Array) -> Array:
    """Return a c that cancels a product, or makes a sum near a rounding boundary."""
    first = a[:, :1].astype(np.float64) @ b[:1].astype(np.float64)
    away = np.ldexp(rng.integers(-2, 3, first.shape), rng.choice([-24, -23, 0], 1))
    c = (-first * (1 + away)).astype(np.float32)
    far = np.ldexp(first, -rng.integers(20, 60, first.shape)).astype(np.float32)
    return np.where(rng.random(first.shape) < 0.5, c, far)


def far_apart(model: Any) -> Iterator[Case]:
    """Yield products whose exponents differ much, and accumulators that cancel some."""
    rng = np.random.default_rng(18)
    for k in (2, 4, 16, 34):
        a = operand(rng, "normal", (32, k), model.a)
        b = operand(rng, "normal", (64, k), model.b)
        span = 30 if np.dtype(a.dtype) != np.float16 else 12
        with np.errstate(all="ignore"):
            x = np.ldexp(a.astype(np.float32), -rng.integers(0, span, a.shape))
            x[:, 0] = np.ldexp(x[:, 0], span)
            # few bits: products that are at midpoints
            y = np.round(b.astype(np.float32))
            a, b = x.astype(a.dtype), y.astype(b.dtype).T
            yield Case(f"far apart, k = {k}", a, b, canceling(rng, a, b))


def multiply(model: Any, case: Case) -> Array:
    return td.tensor_core.matmul(
        case.a, case.b, case.c, device=model.device, instruction=model.instruction,
        accumulator=model.accumulator,
    )  # fmt: skip


NEAR = 2.0**-12
A, B = 1 + 2.0**-7, 1 + 2.0**-6
#: Rows of A, columns of B and accumulators at bounds of a loop. The values are a
#: device, a format, k numbers of A and of B, c, and c + a b.
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

#: MI300X, with an accumulator nine bits above products whose largest ones cancel. The
#: first rounding leaves 31 fraction bits of the sum. The values are other products, c,
#: and the sum.
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


def product_at_edge(name: str, *, special: bool) -> Array:
    """Return the product of a full tile, as the padding of partial ones is separate."""
    device, dtype, row, column, c, _ = EDGES[name]
    a = np.tile(np.float32(row), (6, 1))
    if special:  # in row 1; the zeros below are certain
        a[1] = np.nan
        a[2:] = 0
    b = np.tile(np.float32(column), (64, 1)).T
    with np.errstate(all="ignore"):
        return td.tensor_core.matmul(
            a.astype(dtype_of(dtype)), b.astype(dtype_of(dtype)),
            np.full((6, 64), c, np.float32), device=device, instruction="mfma",
        )  # fmt: skip


def digests() -> Iterator[tuple[str, str]]:
    """Yield the name of each product, and a digest of its bits."""

    def digest(x: Array) -> str:
        return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()

    for model in UNLIKE:
        for case in (*products(model), *far_apart(model)):
            yield f"{model.name}, {case.name}", digest(multiply(model, case))
    for name in EDGES:
        for special in (False, True):
            found = product_at_edge(name, special=special)
            yield f"{name}, special: {special}", digest(found)
