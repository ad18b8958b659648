"""Random and adversarial products, in all ways in which a unit may add."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tf32dtype as td
from tf32dtype._checks.unit_bounds import LEAST_PART, PARTS
from tf32dtype._formats.table import find_dtype

Array = NDArray[Any]

KINDS = (
    "normal", "positive", "spread", "cancel", "integers", "outliers", "tiny", "huge",
    "ascending", "codes", "near subnormal", "one larger",
)  # fmt: skip


class Operands(NamedTuple):
    """Operands of a product, and its addend."""

    a: Array
    b: Array
    c: Array | None


def operands(
    kind: str, names: tuple[str, str], m: int, k: int, n: int, rng: np.random.Generator
) -> Operands:
    """Return random operands of a kind in two formats."""
    a, b = (_numbers(kind, shape, rng) for shape in ((m, k), (k, n)))
    if kind == "cancel":
        half = k // 2
        a[:, half : 2 * half] = -a[:, :half] * (
            1 + 2.0**-12 * rng.standard_normal((m, 1))
        )
        b[half : 2 * half] = b[:half]
    if kind == "ascending":  # positive products first, then negative ones
        order = np.argsort(-(a[0] * b[:, 0]))
        a, b = a[:, order], b[order]
    c = None if rng.integers(2) else _numbers(kind, (m, n), rng)
    with np.errstate(all="ignore"):
        x, y = (
            _finite(z.astype(find_dtype(name)), rng)
            for z, name in zip((a, b), names, strict=True)
        )
    return Operands(x, y, c)


def _numbers(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    x = rng.standard_normal(shape)
    if kind == "positive":
        return np.abs(x)
    if kind == "spread":
        return np.ldexp(x, rng.integers(-12, 12, shape))
    if kind == "integers":
        return np.rint(4 * x)
    if kind == "outliers":
        return np.where(rng.random(shape) < 0.02, 64 * x, x / 16)
    if kind == "tiny":
        return np.ldexp(x, rng.integers(-140, -60, shape))
    if kind == "huge":
        return np.ldexp(x, rng.integers(0, 60, shape))
    if kind in ("near subnormal", "one larger"):  # sums near 2^-14 or 2^-126
        least = -14 if rng.integers(2) else -126
        scale = (least - int(rng.integers(-4, 30))) // 2
        x = np.ldexp(np.abs(x) + 1, scale)
        if kind == "one larger" and x.size:
            x.reshape(-1)[0] = np.ldexp(1.0, scale + int(rng.integers(1, 8)))
        return x
    if kind == "codes":
        return np.ldexp(x, rng.integers(-40, 40))
    return x


def _finite(x: Array, rng: np.random.Generator) -> Array:
    return np.where(np.isfinite(x.astype(np.float64)), x, x.dtype.type(1)).astype(
        x.dtype
    )


def in_some_order(
    model: Any, given: Operands, rng: np.random.Generator
) -> tuple[Array, int | None]:
    """Multiply as a unit in a random order of k and a random division into parts."""
    a, b, c = given
    k = a.shape[1]
    order = np.arange(k)
    if rng.integers(2):
        order = rng.permutation(k)
    parts = int(rng.integers(1, 5))
    depth = model.instruction_depth
    cuts = np.sort(rng.integers(0, k // depth + 1, parts - 1)) * depth
    if rng.integers(2):  # within groups
        lengths = rng.integers(LEAST_PART, max(k, LEAST_PART) + 1, PARTS)
        cuts = np.cumsum(lengths)
        cuts = cuts[cuts < k]
    dtype = np.dtype(model.accumulator)
    wide = np.promote_types(dtype, np.float32)
    where = rng.choice(["first", "sum", "end"])
    total: Array | None = None
    with np.errstate(all="ignore"):
        start = None if c is None else c.astype(dtype)
        if start is not None and where == "sum":
            total = start.astype(wide)
        for part in np.split(order, cuts):
            initial = start if where == "first" and part is not None else None
            found = td.tensor_core.matmul(
                np.ascontiguousarray(a[:, part]),
                np.ascontiguousarray(b[part]),
                initial,
                device=model.device,
                instruction=model.instruction,
                accumulator=dtype,
            ).astype(wide)
            if where == "first":
                start = None
            total = found if total is None else total + found
        assert total is not None
        if where == "end" and c is not None:
            total = total + c.astype(dtype).astype(wide)
    return total, None
