"""Products under a precision: the cases, their data, and reference results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import matmul
from tests.reference.codec import INVALID, OVER
from tests.support.bits import raised

Array = np.ndarray[Any, Any]
Keywords = dict[str, str]

#: The presets and their short names.
PRESETS = {
    "F32_F32_F32": "f32",
    "TF32_TF32_F32": "tf32",
    "BF16_BF16_F32": "bf16",
    "F16_F16_F32": "f16",
    "F8E4M3FN_F8E4M3FN_F32": "fp8_e4m3",
    "F8E5M2_F8E5M2_F32": "fp8_e5m2",
    "BF16_BF16_F32_X3": "bf16x3",
    "BF16_BF16_F32_X6": "bf16x6",
    "BF16_BF16_F32_X9": "bf16x9",
    "TF32_TF32_F32_X3": "tf32x3",
}
SPLIT = ["bf16x3", "bf16x6", "bf16x9", "tf32x3"]
FP8 = ["fp8_e4m3", "fp8_e5m2"]


def variants() -> Iterator[Keywords]:
    """Yield every precision with every keyword that it takes."""
    choices = {"tf32": ("rounding", ["ties_to_even", "ties_to_away", "toward_zero"])}
    choices |= dict.fromkeys(FP8, ("scale", ["tensor", "row"]))
    choices |= dict.fromkeys(SPLIT, ("special_values", ["propagate", "saturate"]))
    for precision in PRESETS.values():
        keyword, chosen = choices.get(precision, ("", []))
        for value in chosen:
            yield {"precision": precision, keyword: value}
        if not chosen:
            yield {"precision": precision}


VARIANTS = list(variants())


def named(keywords: Keywords) -> str:
    return "-".join(keywords.values())


each_variant = pytest.mark.parametrize("keywords", VARIANTS, ids=named)
each_precision = pytest.mark.parametrize("precision", PRESETS.values())
each_split = pytest.mark.parametrize("precision", SPLIT)


# -- comparing -----------------------------------------------------------------


def bits(x: Any) -> Array:
    x = np.asarray(x)
    assert x.dtype == np.float32
    return np.ascontiguousarray(x).view(np.uint32).reshape(x.shape)


def floats(items: Any) -> Array:
    return np.asarray(items, np.uint32).view(np.float32)


def truth(a: Array, b: Array, **keywords: str) -> tuple[Array, int]:
    """Return the bits of the product of two matrices, and the flags it raises."""
    rows, columns = bits(a).tolist(), bits(b.T).tolist()
    result = matmul.product(rows, columns, **keywords)
    want = np.array(result, np.uint32).reshape(a.shape[0], b.shape[1])
    return want, flags_of(a, b, floats(want))


def flags_of(a: Array, b: Array, c: Array) -> int:
    """Return the flags of the product c: for an Inf or NaN that no operand has."""
    special = ~np.isfinite(a).all(1)[:, None] | ~np.isfinite(b).all(0)
    nan = np.isnan(a).any(1)[:, None] | np.isnan(b).any(0)
    raised = OVER if np.any(np.isinf(c) & ~special) else 0
    return raised | (INVALID if np.any(np.isnan(c) & ~nan) else 0)


def assert_bits(got: Any, want: Array, what: object = "") -> None:
    """Check equal bits, also of NaN; show the first different elements."""
    got = bits(got)
    assert got.shape == want.shape, what
    wrong = np.argwhere(got != want)
    shown = [
        f"{tuple(map(int, i))}: got {got[tuple(i)]:#010x} = {floats(got[tuple(i)])}, "
        f"want {want[tuple(i)]:#010x} = {floats(want[tuple(i)])}"
        for i in wrong[:5]
    ]
    lines = "\n".join(shown)
    assert not shown, f"{what}: {len(wrong)} of {want.size} differ\n{lines}"


def check(a: Array, b: Array, **keywords: str) -> int:
    """Compare a product with the reference, and return the number of elements."""
    want, flags = truth(a, b, **keywords)
    got, seen = raised(partial(td.matmul, **keywords), a, b)
    assert_bits(got, want)
    assert seen == flags, f"flags {seen}, not {flags}"
    return want.size


# -- data ----------------------------------------------------------------------

Fill = Callable[[np.random.Generator, tuple[int, int]], Array]


def around(exponent: int, octaves: int) -> Fill:
    """Draw normal numbers times powers of two on both sides of 2**exponent."""

    def fill(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        powers = exponent + rng.integers(-octaves, octaves + 1, shape)
        return np.ldexp(rng.standard_normal(shape), powers).astype(np.float32)

    return fill


def with_sign(rng: np.random.Generator, magnitudes: Array) -> Array:
    signs = rng.integers(0, 2, magnitudes.shape, dtype=np.uint32) << 31
    return floats(magnitudes.astype(np.uint32) | signs)


def codes(low: int, high: int) -> Fill:
    """Draw magnitudes from low to high - 1, with either sign."""

    def fill(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return with_sign(rng, rng.integers(low, high, shape, dtype=np.uint32))

    return fill


def some(*numbers: float) -> Fill:
    """Draw some of the numbers, with either sign."""
    magnitudes = bits(np.array(numbers, np.float32))

    def fill(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return with_sign(rng, magnitudes[rng.integers(0, len(numbers), shape)])

    return fill


def sprinkled(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Draw normal numbers, with an Inf or a NaN in half of the rows or columns."""
    x = rng.standard_normal(shape).astype(np.float32)
    if x.size:
        count = max(1, min(shape) // 2)
        specials = floats([0x7F800000, 0xFF800000, 0x7FC00000, 0xFF812345])
        x.flat[rng.integers(0, x.size, count)] = rng.choice(specials, count)
    return x


LARGEST = float.fromhex("0x1.fffffep127")
BFLOAT16_LARGEST = float.fromhex("0x1.fep127")

#: Name -> functions that draw the first and the second factor.
KINDS: dict[str, tuple[Fill, Fill]] = {
    "normal": (around(0, 0), around(0, 0)),
    "spread": (around(0, 40), around(0, 40)),
    "subnormal": (codes(0, 0x800000), around(2, 4)),
    "small": (around(-72, 6), around(-72, 6)),
    "vanishing": (codes(0, 0x1000000), codes(0, 0x10000)),
    "large": (around(62, 2), around(61, 2)),
    "edge": (
        some(BFLOAT16_LARGEST, LARGEST, 2.0**120, 2.0**120 - 2.0**112, 2.0**103, 0),
        some(1, 1, 1, 0.5, 0),
    ),
    "sprinkled": (sprinkled, sprinkled),
    "zeros": (some(0, 0, 0, 1, 1e-45), some(0, 0, 1, 1e-40, 1e-45)),
    "top": (codes(0x7F7F0000, 0x7F800000), around(-6, 4)),
    "half": (around(14, 3), around(-16, 8)),
    "any": (codes(0, 1 << 31), codes(0, 1 << 31)),
}


def drawn(kind: str, shape: tuple[int, int, int], seed: int) -> tuple[Array, Array]:
    """Draw m x k and k x n numbers of a kind."""
    m, k, n = shape
    rng = np.random.default_rng(seed)
    left, right = KINDS[kind]
    return left(rng, (m, k)), right(rng, (k, n))
