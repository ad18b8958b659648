"""Block-scaled instructions: operands, and what they give by each way to compute."""

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

KINDS = ("normal", "wide", "extreme", "cancelling", "sparse", "special")
POWERS = "float8_e8m0fnu"


class Cases(NamedTuple):
    """Elements as float32's bits, (n, k); codes of scales, (n, blocks); c as bits."""

    a: Array
    scales_a: Array
    b: Array
    scales_b: Array
    c: Array


@dataclass
class Blocks:
    """What a product uses of an array of blocks."""

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
    """The bits of float32 numbers."""
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(np.asarray(x).astype(np.float32)).view(np.uint32)


def elements(rng: Generator, name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Numbers of a format, as float32's bits."""
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
    return words(x)


def scales(rng: Generator, name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Codes of scales."""
    powers = name == POWERS
    nan = 0xFF if powers else 0x7F
    if kind in ("wide", "sparse"):
        codes = rng.integers(0, nan, shape)
    elif kind == "extreme":
        ends = (0, 1, 2, 125, 129, 252, 253, 254) if powers else (0, 1, 3, 7, 8, 126)
        codes = rng.choice(ends, shape)
    else:
        middle = 127 if powers else 56
        spread = 6 if powers else 40
        codes = rng.integers(middle - spread, middle + spread, shape)
    if kind == "special":
        codes = np.where(rng.random(shape) < 0.02, nan, codes)
    if not powers:  # the sign of a scale is not looked at
        codes = codes | np.where(rng.random(shape) < 0.1, 0x80, 0)
    return codes.astype(np.uint8)


def accumulators(rng: Generator, n: int, kind: str) -> Array:
    """Bits of float32 numbers, a third of them zero."""
    reach = {"wide": 140, "extreme": 140, "cancelling": 60}.get(kind, 30)
    x = np.ldexp(rng.standard_normal(n), rng.integers(-reach, min(reach, 126), n))
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    x[rng.random(n) < 0.3] = 0
    if kind == "special":
        at = rng.random(n) < 0.1
        x[at] = rng.choice([np.inf, -np.inf, np.nan], at.sum())
    return words(x)


def cases(model: Any, kind: str, n: int, k: int, seed: int) -> Cases:
    """Cases of a model, the same for the same arguments."""
    rng = np.random.default_rng([seed, KINDS.index(kind), n, k])
    blocks = -(-k // model.block_size)
    drawn = [
        (elements(rng, name, (n, k), kind), scales(rng, model.scale, (n, blocks), kind))
        for name in (model.a, model.b)
    ]
    (a, s), (b, t) = drawn
    if kind == "cancelling" and model.a == model.b:
        # Of each two products one is the other with its sign changed, but for some.
        for x, sign in ((a, 0), (b, 0x80000000)):
            odd = x[:, 1::2]
            kept = rng.random(odd.shape) < 0.1
            odd[...] = np.where(kept, odd, x[:, : 2 * odd.shape[1] : 2] ^ sign)
    return Cases(a, s, b, t, accumulators(rng, n, kind))


def as_blocks(model: Any, which: str, bits: Array, codes: Array) -> Blocks:
    """Rows of a or columns of b as an array of blocks."""
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
    """The model with these elements, scales and block size."""
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
    """Each row of a times the same row of b, plus its c."""
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
    """All rows times all columns; c of row i is c[i], in all columns."""
    a = as_blocks(model, "a", case.a, case.scales_a)
    b = as_blocks(model, "b", case.b, case.scales_b)
    c = np.repeat(case.c.view(np.float32)[:, np.newaxis], len(case.b), 1)
    keywords = {"device": model.device, "instruction": model.instruction} | keywords
    got = td.tensor_core.matmul(a, b, c, **keywords)
    assert got.dtype == np.float32
    return got.view(np.uint32)
