"""Arrays of blocks for tests, and their products by NumPy's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

import tf32dtype as td
from tests.support.cuda_operands import on_gpu
from tf32dtype.cuda import blocks as gpu

NAMES = tuple(td.blocks.formats)


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return float32 numbers in all kinds of blocks: ordinary, wide, zero, nearly
    constant, and mostly zero."""
    x = rng.standard_normal(shape).astype(np.float32)
    kind = rng.integers(0, 12, (*shape[:-1], -(-shape[-1] // 16)))
    kind = np.repeat(kind, 16, axis=-1)[..., : shape[-1]]
    with np.errstate(all="ignore"):
        wide = x * np.exp2(rng.integers(-40, 40, shape)).astype(np.float32)
    x = np.where(kind == 1, wide, x)
    x = np.where(kind == 2, np.copysign(np.float32(0), x), x)
    x = np.where(kind == 3, np.float32(1) + x / 64, x)
    x = np.where(kind == 4, np.where(x > 1, x, np.float32(-0.0)), x)
    return x.astype(np.float32)


def extreme(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return blocks that are subnormal, or that reach the largest number."""
    x = numbers(rng, shape)
    scale = np.float32(2) ** rng.choice([-149, -130, -120, 0, 100, 125], shape[:-1])
    with np.errstate(all="ignore"):
        x = x * scale[..., np.newaxis].astype(np.float32)
    most = np.finfo(np.float32).max
    return np.clip(x, -most, most).astype(np.float32)


def both(x: Any, *arguments: Any, **keywords: Any) -> tuple[Any, Any]:
    """Quantize on the CPU and on the backend, and return both arrays of blocks."""
    made = td.blocks.quantize(x, *arguments, **keywords)
    return made, gpu.quantize(on_gpu(x), *arguments, **keywords)


# -- products, by NumPy ----------------------------------------------------------------


def fma(x: Any, y: Any, z: Any) -> Any:
    """Return float32 x * y + z, rounded once, by a float64 sum rounded to odd."""
    with np.errstate(all="ignore"):
        product = np.asarray(x, np.float64) * np.asarray(y, np.float64)
        z = np.asarray(z, np.float64)
        total = product + z
        part = total - product
        rest = (product - (total - part)) + (z - part)
        bits = np.asarray(total).view(np.int64)
        below = (rest < 0) != (total < 0)
        change = np.isfinite(total) & (rest != 0) & (bits & 1 == 0)
        odd = np.where(change, np.where(below, bits - 1, bits + 1), bits)
        return odd.view(np.float64).astype(np.float32)


def levels_of(x: Any, axis: int) -> list[tuple[Any, Any]]:
    """Return float32 values and scales of each level of an operand, with k along
    `axis`."""
    if not isinstance(x, td.blocks.BlockArray):
        values = np.asarray(x).astype(np.float32)
        return [(np.moveaxis(values, axis, -1), None)]
    found = []
    scales = x.block_scales
    for level, elements in enumerate((x.elements, x.residual_elements)):
        if elements is None:
            continue
        with np.errstate(all="ignore"):
            values = np.moveaxis(elements.astype(np.float32), axis, -1)
            if x.format == "mxint8":
                values = values / np.float32(64)
            if level:
                name = {"int4": 2}.get(td.blocks.formats[x.format].residual, -3)
                scales = scales * residual_scales(x, name)
        found.append((values, scales.astype(np.float32)))
    return found


def residual_scales(x: Any, exponent: int) -> Any:
    """Return R of every block, scaled below 2**exponent."""
    from tf32dtype._core import scale_values

    worth = scale_values(x.scale_format)[x.scales[..., 1]]
    if x.scale_format == "float8_e8m0fnu":
        return worth
    greatest = {"ue4m3": 448.0}.get(x.scale_format, 0)
    if not greatest:
        greatest = scale_values(x.scale_format)[255]
    shift = exponent - np.frexp(greatest)[1]
    return np.ldexp(worth, shift).astype(np.float32)


def product(a: Any, b: Any, terms: int | None = None, chain: Any = None) -> Any:
    """Return (m, k) times (k, n) as `blocks.matmul` defines it. `chain(p, q)` returns
    the (m, n) product of the elements of one block."""
    left, right = levels_of(a, -1), levels_of(b, -2)
    some = a if isinstance(a, td.blocks.BlockArray) else b
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    pairs = pairs[:1] if terms == 1 else pairs
    pairs = [x for x in pairs if terms != 3 or x != (1, 1)]
    m, n, k = left[0][0].shape[0], right[0][0].shape[0], left[0][0].shape[1]
    total = np.zeros((m, n), np.float32)
    for block, first in enumerate(range(0, k, some.block_size)):
        here = slice(first, first + some.block_size)
        for i, j in pairs:
            (p, s), (q, t) = left[i], right[j]
            one = np.ones(1, np.float32)
            of_a = one if s is None else s[:, block]
            of_b = one if t is None else t[:, block]
            sums = (chain or chained)(p[:, here], q[:, here])
            with np.errstate(all="ignore"):
                scale = of_a[:, np.newaxis] * of_b[np.newaxis]
            total = fma(scale, sums, total)
    return np.where(np.isnan(total), np.float32(np.nan), total)


def chained(p: Any, q: Any) -> Any:
    """Return the sums of a chain of fused multiply-adds from +0."""
    sums = np.zeros((len(p), len(q)), np.float32)
    for k in range(p.shape[1]):
        sums = fma(p[:, np.newaxis, k], q[np.newaxis, :, k], sums)
    return sums
