"""Operands of block-scaled instructions, and their results by each implementation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td
from tests.reference import tensor_core_scaled as reference
from tf32dtype import _core
from tf32dtype.tensor_core import BLOCK_SCALED

Array = np.ndarray[Any, Any]
Generator = np.random.Generator

KINDS = (
    "normal", "wide", "extreme", "canceling", "sparse", "special", "zeros", "above",
    "against", "subnormal", "least",
)  # fmt: skip
POWERS = "float8_e8m0fnu"


class Cases(NamedTuple):
    """float32's bits of elements, (n, k), and of c; codes of scales, (n, blocks)."""

    a: Array
    scales_a: Array
    b: Array
    scales_b: Array
    c: Array


@dataclass
class Blocks:
    """The attributes of an array of blocks that a matrix product uses."""

    format: str
    elements: Array
    scales: Array
    axis: int
    block_size: int
    scale_format: str
    tensor_scale: Any = 1
    residual_elements: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.elements.shape


def words(x: Any) -> Array:
    """Return the bits of float32 numbers."""
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(np.asarray(x).astype(np.float32)).view(np.uint32)


def elements(rng: Generator, name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Return numbers of a format, as float32's bits."""
    dtype = getattr(td, name)
    count = 1 << td.formats[name].bits
    codes = rng.integers(0, count, shape).astype(np.uint8)
    x = td.from_bits(codes, dtype).astype(np.float32)
    if kind != "special":
        x[~np.isfinite(x)] = 1
    else:
        x[~np.isfinite(x) & (rng.random(shape) < 0.8)] = 1
    if kind == "sparse":
        x *= rng.random(shape) < 0.05
    if kind == "subnormal":
        least = np.abs(x[x != 0]).min()
        x = np.where(rng.random(shape) < 0.5, np.sign(x) * least, x)
        x *= rng.random(shape) < 0.05
    if kind == "zeros":  # groups of 16 are often zero, or nearly
        kept = rng.choice([0, 0.1, 1], (shape[0], -(-shape[1] // 16)))
        x *= rng.random(shape) < np.repeat(kept, 16, 1)[:, : shape[1]]
    return words(x)


def scales(rng: Generator, name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Return codes of scales."""
    powers = name == POWERS
    nan = 0xFF if powers else 0x7F
    if kind in ("wide", "sparse", "zeros"):
        codes = rng.integers(0, nan, shape)
    elif kind == "extreme" or (kind in ("against", "canceling") and not powers):
        ends = (0, 1, 2, 125, 129, 252, 253, 254) if powers else (0, 1, 3, 7, 8, 126)
        codes = rng.choice(ends, shape)
    else:
        middle = 127 if powers else 56
        spread = 6 if powers else 40
        codes = rng.integers(middle - spread, middle + spread, shape)
    if kind == "special":
        codes = np.where(rng.random(shape) < 0.02, nan, codes)
    if not powers:  # instructions ignore the sign of a scale
        codes = codes | np.where(rng.random(shape) < 0.1, 0x80, 0)
    return codes.astype(np.uint8)


def accumulators(rng: Generator, n: int, kind: str) -> Array:
    """Return the bits of float32 numbers, a third of them zero."""
    reach = {"wide": 140, "extreme": 140, "canceling": 60}.get(kind, 30)
    x = np.ldexp(rng.standard_normal(n), rng.integers(-reach, min(reach, 126), n))
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    x[rng.random(n) < 0.3] = 0
    if kind == "special":
        at = rng.random(n) < 0.1
        x[at] = rng.choice([np.inf, -np.inf, np.nan], at.sum())
    return words(x)


def cases(model: Any, kind: str, n: int, k: int, seed: int) -> Cases:
    """Return cases of a model, the same for the same arguments."""
    rng = np.random.default_rng([seed, KINDS.index(kind), n, k])
    blocks = -(-k // model.block_size)
    drawn = [
        (elements(rng, name, (n, k), kind), scales(rng, model.scale, (n, blocks), kind))
        for name in (model.a, model.b)
    ]
    (a, s), (b, t) = drawn
    c = accumulators(rng, n, kind)
    if kind == "least" and model.scale == POWERS:
        return Cases(*_least_sums(model, rng, n, k))
    if kind in ("against", "subnormal"):
        # c cancels the first instruction's largest term, or is near its negative.
        terms = _terms(model, a, s, b, t)[:, : max(1, model.depth // model.group)]
        x = -np.take_along_axis(terms, np.abs(terms).argmax(1)[:, np.newaxis], 1)[:, 0]
        if kind == "subnormal":
            x = np.ldexp(x * rng.uniform(0.5, 1, n), rng.integers(-9, 1, n))
        c = words(x)
    if kind == "above":
        # An accumulator with the largest exponent, near the last bits of the products.
        up = model.fraction - 4 + rng.integers(-12, 6, n)
        mean = s.astype(int).mean(1) + t.astype(int).mean(1) - 2 * 127
        up += np.rint(mean).astype(int) if model.scale == POWERS else 0
        sign = rng.choice([-1, 1], n)
        c = words(np.ldexp(sign * rng.uniform(1, 2, n), np.clip(up, -140, 126)))
    if kind == "canceling":
        # In each pair, the second product is the negative of the first, with a few
        # exceptions.
        for x, sign in ((a, 0), (b, 0x80000000)):
            odd = x[:, 1::2]
            kept = rng.random(odd.shape) < rng.choice([0, 0.1], (n, 1))
            odd[...] = np.where(kept, odd, x[:, : 2 * odd.shape[1] : 2] ^ sign)
    return Cases(a, s, b, t, c)


def _terms(model: Any, a: Array, s: Array, b: Array, t: Array) -> Array:
    """Return the terms of rows, in float64."""
    values = _core.scale_values(model.scale).astype(np.float64)
    mask = 0xFF if model.scale == POWERS else 0x7F
    x, y = (
        z.view(np.float32)
        * np.repeat(values[u & mask], model.block_size, 1)[:, : z.shape[1]]
        for z, u in ((a, s), (b, t))
    )
    products = x * y
    firsts = np.arange(0, products.shape[1], model.group)
    return np.add.reduceat(products, firsts, 1)


def _least_sums(
    model: Any, rng: Generator, n: int, k: int
) -> tuple[Array, Array, Array, Array, Array]:
    """Return rows whose sum is about float32's smallest number minus a product near the
    last bit above the floor."""
    blocks = -(-k // model.block_size)
    a, b = np.zeros((2, n, k), np.float32)
    s, t = np.full((2, n, blocks), 127, np.uint8)
    x, y = (_positive(name) for name in (model.a, model.b))
    products = np.outer(x, y)
    order = np.argsort(products, None)
    ordered = products.flat[order]
    for row in range(n):
        i, j = divmod(int(order[rng.integers(0, 1 + len(order) // 50)]), len(y))
        alone = rng.random() < 0.25
        at = k - 1 if alone else 0
        a[row, at], b[row, at] = -x[i], y[j]
        last = int(np.frexp(products[i, j])[1]) - 1
        down = model.floor - model.fraction + int(rng.integers(-3, 3)) - last
        s[row], t[row] = _split(rng, down)
        if alone:
            continue
        place, rest = 1, 2.0 ** (-149 - down) * rng.choice([1, 1, 3])
        if model.group > 1 and blocks > 1:  # in a block with larger scales
            place, rest = model.block_size, 1.0
            s[row, 1:], t[row, 1:] = _split(rng, -149)
        while place < k and rest >= ordered[0]:
            at = int(np.searchsorted(ordered, rest, "right")) - 1
            i, j = divmod(int(order[at]), len(y))
            a[row, place], b[row, place] = x[i], y[j]
            rest -= x[i] * y[j]
            place += 1
    flips = rng.choice([-1, 1], (n, 1)).astype(np.float32)
    return words(a * flips), s, words(b), t, np.zeros(n, np.uint32)


def _split(rng: Generator, exponent: int) -> tuple[int, int]:
    """Return codes of two powers of two whose product is 2**exponent."""
    first = int(rng.integers(max(0, exponent), min(254, exponent + 254) + 1))
    return first, exponent + 2 * 127 - first


def _positive(name: str) -> Array:
    codes = np.arange(1 << td.formats[name].bits, dtype=np.uint8)
    x = td.from_bits(codes, getattr(td, name)).astype(np.float64)
    return np.unique(x[np.isfinite(x) & (x > 0)])


def as_blocks(model: Any, which: str, bits: Array, codes: Array) -> Blocks:
    """Return rows of a or columns of b as an array of blocks."""
    name = model.a if which == "a" else model.b
    with np.errstate(invalid="ignore"):
        x = bits.view(np.float32).astype(getattr(td, name))
    rows = which == "a"
    return Blocks(
        f"{name} in blocks",
        x if rows else x.T,
        codes,
        1 if rows else 0,
        model.block_size,
        model.scale,
    )


# -- results ------------------------------------------------------------------


DISTINCT = list(
    {(m.a, m.b, m.scale, m.block_size, m.depth): m for m in BLOCK_SCALED}.values()
)


def found(device: str, instruction: str, *facts: Any) -> Any:
    """Return the model with these elements, scales and block size."""
    (model,) = (
        m
        for m in BLOCK_SCALED
        if (m.device, m.instruction, m.a, m.b, m.scale, m.block_size)
        == (device, instruction, *facts)
    )
    return model


FP4, E4M3, E5M2 = "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2"
MXF8 = found("B200", "tcgen05.mxf8f6f4", E4M3, E4M3, POWERS, 32)
MXF8_E5M2 = found("B200", "tcgen05.mxf8f6f4", E5M2, E5M2, POWERS, 32)
MXF4 = found("B200", "tcgen05.mxf4", FP4, FP4, POWERS, 32)
NVF4 = found("B200", "tcgen05.mxf4nvf4", FP4, FP4, "ue4m3", 16)


def truth(model: Any, case: Cases, mutation: Any = reference.RIGHT) -> Array:
    dot = reference.ScaledUnit(model, mutation).dot
    lines = zip(*(x.tolist() for x in case), strict=True)
    return np.array([dot(*line) for line in lines], np.uint32)


def in_c(model: Any, case: Cases) -> Array:
    """Return rows of a times the same rows of b, plus their c, by the integer C."""
    sums = case.c.copy().view(np.float32).reshape(-1, 1, 1)
    lines = zip(
        _codes(case.a, model.a), case.scales_a, _codes(case.b, model.b), case.scales_b,
        strict=True,
    )  # fmt: skip
    for line, row in zip(lines, sums, strict=True):
        _core.scaled_mma_matmul(model, *(x[np.newaxis] for x in line), row)
    return sums.reshape(-1).view(np.uint32)


def _codes(bits: Array, name: str) -> Array:
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(getattr(td, name)).view(np.uint8)


def assert_bits(got: Array, want: Array) -> None:
    wrong = np.flatnonzero(got != want)
    assert got.shape == want.shape
    assert not wrong.size, (wrong[:5], got[wrong[:5]], want[wrong[:5]])


def product(model: Any, case: Cases, **keywords: Any) -> Array:
    """Return all rows times all columns; c of row i is c[i], in all columns."""
    a = as_blocks(model, "a", case.a, case.scales_a)
    b = as_blocks(model, "b", case.b, case.scales_b)
    c = np.repeat(case.c.view(np.float32)[:, np.newaxis], len(case.b), 1)
    keywords = {"device": model.device, "instruction": model.instruction} | keywords
    got = td.tensor_core.matmul(a, b, c, **keywords)
    assert got.dtype == np.float32
    return got.view(np.uint32)
