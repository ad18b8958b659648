"""Products of small integers: sums within float32's exact range are exact."""

from __future__ import annotations

import numpy as np
import pytest

import tf32dtype as td

NAMES = ("float4_e2m1fn", "float6_e2m3fn")
DEPTHS = (1, 2, 5, 63, 64, 65, 255, 256, 257, 1023, 1025, 4660)


def items(rng: np.random.Generator, shape: tuple[int, int], name: str) -> np.ndarray:
    """Draw all bytes, so that unused bits are also set."""
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


SMALL = [(2, 3, 2), (7, 90, 3), (16, 16, 256), (64, 64, 64), (20, 20, 200), (64, 2, 63)]


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_small_matrices(first, second):
    rng = np.random.default_rng(4)
    for m, n, k in SMALL:
        a, b = items(rng, (m, k), first), items(rng, (k, n), second)
        wanted = (a.astype(float) @ b.astype(float)).astype(np.float32) + np.float32(0)
        for x in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2]):
            for y in (b, np.asfortranarray(b), b[:, ::-1][:, ::-1]):
                found = np.matmul(x, y, dtype=np.float32)
                assert found.tobytes() == wanted.tobytes()
                turned = np.matmul(y.T, x.T, dtype=np.float32)
                assert turned.tobytes() == wanted.T.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_lines(name):
    rng = np.random.default_rng(5)
    for k in DEPTHS:
        a, b = items(rng, (35, k), name), items(rng, (35, k), name)
        x, y = a.astype(float), b.astype(float)
        for p, q in ((a, b), (np.repeat(a, 2, 1)[:, ::2], b), (a[:, ::-1], b[:, ::-1])):
            found = np.vecdot(p, q, dtype=np.float32)
            assert np.array_equal(found, (x * y).sum(1).astype(np.float32))
            for v in (q[0], np.repeat(q[0], 2)[::2]):
                wanted = (p.astype(float) @ v.astype(float)).astype(np.float32)
                assert np.array_equal(np.matvec(p, v, dtype=np.float32), wanted)
                assert np.array_equal(np.vecmat(v, p.T, dtype=np.float32), wanted)
        with np.errstate(over="ignore"):
            wanted = np.array((x[0] * y[0]).sum()).astype(a.dtype)
            assert np.dot(a[0], b[0]) == wanted
