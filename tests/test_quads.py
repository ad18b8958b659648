"""Products of small integers: any sum of theirs in reach of float32 is exact."""

from __future__ import annotations

import numpy as np
import pytest

import tf32dtype as td

NAMES = ("float4_e2m1fn", "float6_e2m3fn")
DEPTHS = (1, 2, 5, 63, 64, 65, 255, 256, 257, 1023, 1025, 4660)


def items(rng: np.random.Generator, shape: tuple[int, int], name: str) -> np.ndarray:
    """All bytes, so that bits that do not count are set too."""
    drawn = rng.integers(0, 256, shape, dtype=np.uint8)
    return drawn.view(td.formats[name].dtype)


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_sums_are_exact(first, second):
    rng = np.random.default_rng(3)
    for i, k in enumerate(DEPTHS):
        m, n = (int(x) for x in rng.integers(2, 150, 2))
        a = items(rng, (m, k), first) if i % 2 else items(rng, (k, m), first).T
        b = items(rng, (k, n), second) if i % 3 else items(rng, (n, k), second).T
        wanted = (a.astype(float) @ b.astype(float)).astype(np.float32) + np.float32(0)
        found = np.matmul(a, b, dtype=np.float32)
        assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32))
