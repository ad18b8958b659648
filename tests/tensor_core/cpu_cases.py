"""Rows for the dot products of CPUs, which flush subnormal numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.tensor_core.arrays import floats
from tests.tensor_core.cases import Array, Cases, random_cases
from tests.tensor_core.edge_cases import edges
from tf32dtype.tensor_core.look_up import find_model

MOST = 50_000  # rows per array
LENGTHS = 1, 2, 16, 33
NAN, SIGN, INF, LEAST = map(np.uint32, (0x7FFFFFFF, 1 << 31, 0x7F800000, 1 << 23))

#: GPU models of the same formats. Their cases reach all exponents, and have long rows.
OTHER = {
    name: find_model("A100", "mma.sync", name, name, "float32")
    for name in ("bfloat16", "float16")
}


def canonical(bits: Array) -> Array:
    """Replace every NaN by one NaN, as tests do not compare payloads."""
    return np.where((bits & ~SIGN) > INF, NAN, bits)


def numbers(rng: np.random.Generator, exponents: Array) -> Array:
    """Return bfloat16 numbers of either sign. Exponents are clipped to those of
    subnormal and of finite numbers."""
    fields = np.clip(exponents + 127, 0, 254).astype(np.uint32) << 23
    shape = exponents.shape
    rest = rng.integers(0, 1 << 7, shape, np.uint32) << 16
    rest *= rng.random(shape) < 0.7
    return fields | rest | rng.integers(0, 2, shape, np.uint32) << 31


def around(rng: np.random.Generator, rows: int, k: int, low: int, high: int) -> Cases:
    """Return products, and c, with exponents near a center between low and high."""
    center = rng.integers(low, high + 1, (rows, 1))
    exponents = center + rng.integers(-12, 13, (rows, k))
    of_a = rng.integers(-126, 128, (rows, k))
    of_a = np.clip(of_a, exponents - 127, exponents + 126)
    a, b = numbers(rng, of_a), numbers(rng, exponents - of_a)
    c = numbers(rng, center[:, 0] + rng.integers(-26, 27, rows))
    c |= rng.integers(0, 1 << 16, rows, np.uint32)
    return Cases(a, b, np.where(rng.random(rows) < 0.2, c & SIGN, c))


def any_bits(rng: np.random.Generator, rows: int, k: int) -> Cases:
    a, b = (rng.integers(0, 1 << 16, (rows, k), np.uint32) << 16 for _ in range(2))
    return Cases(a, b, rng.integers(0, 1 << 32, rows, np.uint32))


def specials(rng: np.random.Generator, rows: int, k: int) -> Cases:
    """Return rows with few Inf, NaN, zeros, largest and smallest numbers."""
    a, b, c = around(rng, rows, k, -120, 120)
    items = [0, 1, 0x7F, 0x80, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x3F80]
    codes = np.array(items, np.uint32) << 16
    for x in (a, b, c):
        drawn = (
            rng.choice(codes, x.shape) | rng.integers(0, 2, x.shape, np.uint32) << 31
        )
        here = rng.random(x.shape) < (0.5 / k if x.ndim == 2 else 0.3)
        x[here] = drawn[here]
    return Cases(a, b, c)


def canceling(rng: np.random.Generator, rows: int, k: int) -> Cases:
    """Return rows whose c is the negative of one product, or next to it."""
    a, b, _ = around(rng, rows, k, -135, 120)
    which = np.arange(rows), rng.integers(0, k, rows)
    with np.errstate(all="ignore"):
        c = -(floats(a[which]) * floats(b[which]))
    return Cases(a, b, c.view(np.uint32) + rng.integers(-2, 3, rows).astype(np.uint32))


def least_normal(rng: np.random.Generator, rows: int, k: int) -> Cases:
    """Return rows whose c is about 2^-126, and whose sum may be just below 2^-126."""
    a, b, _ = around(rng, rows, k, -156, -140)
    keep = rng.random((rows, k)) < 1.5 / k
    c = LEAST + rng.integers(-2, 3, rows).astype(np.uint32)
    return Cases(a * keep, b, c | rng.integers(0, 2, rows, np.uint32) << 31)


Kind = Callable[[np.random.Generator, int, int], Cases]
KINDS: tuple[Kind, ...] = (
    any_bits,
    specials,
    canceling,
    least_normal,
    lambda rng, rows, k: around(rng, rows, k, -250, 120),
    lambda rng, rows, k: around(rng, rows, k, -135, -115),
    lambda rng, rows, k: around(rng, rows, k, 115, 130),
)


def adversarial(count: int, seed: int) -> Iterator[Cases]:
    """Yield at least `count` rows of all kinds and some lengths; few of the longest."""
    lengths = 1, 2, 3, 8
    each = -(-count // (len(KINDS) * len(lengths)))
    for number, kind in enumerate(KINDS):
        for k, rows in [*((k, each) for k in lengths), (34, each // 8)]:
            rng = np.random.default_rng([seed, number, k])
            for first in range(0, rows, MOST):
                yield kind(rng, min(MOST, rows - first), k)


def all_rows(model: Any, count: int, most: int | None = None) -> Iterator[Cases]:
    """Yield rows with all edges, or with at most `most` edges of each length."""
    other = OTHER[model.a]
    yield from edges(other, most)
    narrow = model.a == "float16"
    for k in LENGTHS:
        yield random_cases(other, count // 5 if narrow else 2000, k, 3)
    if not narrow:
        yield from adversarial(count, 4)


def many_rows(model: Any, count: int, seed: int) -> Iterator[Cases]:
    """Yield at least `count` rows, without the edges."""
    if model.a == "bfloat16":
        yield from adversarial(count, seed)
        return
    for first in range(0, count, MOST * len(LENGTHS)):
        for k in LENGTHS:
            yield random_cases(OTHER[model.a], MOST, k, seed + first)
