"""Products by wgmma on a backend, and by its model."""

from __future__ import annotations

import numpy as np

import tf32dtype as td
from tests.cuda import block_cases as cases
from tests.cuda.native_cases import model, ours
from tests.support.cuda import HOST, tfc
from tests.support.cuda_operands import on_host
from tests.support.cuda_products import by_plan
from tf32dtype.cuda import blocks as gpu
from tf32dtype.cuda._matmul import wgmma
from tf32dtype.cuda._matmul.tile_options import Matrices

E4M3, E5M2 = td.float8_e4m3fn, td.float8_e5m2


def orders(backend):
    """Set each order of threads in which the host runs a kernel, and yield it."""
    for descends in (False, True) if backend is HOST else (False,):
        HOST.descends = descends
        yield descends
    HOST.descends = False


def product(backend, a, b, layouts=("rows", "columns")):
    """Return the bits of a product in one chain of all k."""
    shape = len(a), a.shape[1], b.shape[2]
    out = backend.put(np.full(shape, np.nan, np.float32))
    x, y = (ours(backend, z, how) for z, how in zip((a, b), layouts, strict=True))
    by_plan(wgmma.plan, x, y, out)
    return backend.get(out).view(np.uint32)


def assert_right(backend, a, b, **keywords):
    want = model(backend, a, b, instruction="wgmma")
    for _ in orders(backend):
        np.testing.assert_array_equal(product(backend, a, b, **keywords), want)


# -- products of components ------------------------------------------------------------


def padded(x):
    """Return x with zeros after k, up to whole slices."""
    return np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, -x.shape[-1] % in_slice(x.dtype))])


def in_slice(dtype):
    return wgmma.SLICE // dtype.itemsize


def sums_of_parts(backend, a, b, parts, count):
    """Return the bits of the pieces' sums, (count * s, m, n), by the kernel. a is
    (parts, s, m, k), and b is (parts, s, n, k)."""
    (_, s, m, _), n = a.shape, b.shape[2]
    out = backend.put(np.full((count * s, m, n), np.nan, np.float32))
    a, b = (np.concatenate([*map(padded, x)], -1) for x in (a, b[::-1]))
    x, y = (ours(backend, z, "rows") for z in (a, b))
    layouts = Matrices.of(x), Matrices.of(y).flipped, Matrices.of(out)
    plan = wgmma.plan(*layouts, parts, count)
    plan(*(i.view(z.data) for i, z in zip(layouts, (x, y, out), strict=True)))
    return backend.get(out).view(np.uint32)


def sums_by_model(a, b, parts, count):
    """Return the bits of `sums_of_parts` by the model, as `wgmma.Parts` says."""
    a, b = padded(a), padded(b).swapaxes(2, 3)
    deep, step = in_slice(a.dtype), wgmma.STEP // a.dtype.itemsize

    def chain(x, y, c=None):
        return td.tensor_core.matmul(x, y, c, device="H100", instruction="wgmma")

    def promoted(total, x, y):
        found = None
        for first in range(0, x.shape[-1], step):
            if first and first % (parts.stretch * deep) == 0:
                found = total if found is None else found + total
                total = np.zeros_like(total)
            here = slice(first, first + step)
            total = total + chain(x[..., here], y[:, here])
        return total if found is None else found + total

    def of_piece(piece):
        total = np.zeros((a.shape[1], a.shape[2], b.shape[3]), np.float32)
        for order in reversed(range(parts.orders)):
            pairs = [(i, order - i) for i in range(parts.parts)]
            pairs = [(i, j) for i, j in pairs if 0 <= j < parts.parts]
            x = np.concatenate([a[i] for i, _ in pairs], 2)
            y = np.concatenate([b[j] for _, j in pairs], 1)
            slices = x.shape[2] // deep
            here = slice(*(slices * (piece + i) // count * deep for i in (0, 1)))
            x, y = x[..., here], y[:, here]
            if order == 0:
                return promoted(total, x, y)
            total = chain(x, y, total) * np.float32(parts.between)
        raise AssertionError(parts)

    with np.errstate(all="ignore"):
        found = np.concatenate([of_piece(piece) for piece in range(count)])
    bits = found.view(np.uint32).copy()
    bits[np.isnan(found)] = 0x7FFFFFFF
    return bits


def with_one_nan(bits):
    """Replace the NaN of additions by the NaN of the instruction."""
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, np.uint32(0x7FFFFFFF), bits)


# -- products of blocks ----------------------------------------------------------------


def by_model(a, b, terms, instruction="wgmma"):
    def chain(p, q):
        e5m2 = [x.format == "mxfp8_e5m2" for x in (a, b)]
        dtypes = [E5M2 if x else E4M3 for x in e5m2]
        p, q = p.astype(dtypes[0]), q.astype(dtypes[1])
        return td.tensor_core.matmul(p, q.T, device="H100", instruction=instruction)

    return cases.product(a, b, terms, chain)


def block_operands(rng, m, k, n, first, second, size):
    x, y = cases.numbers(rng, (m, k)), cases.numbers(rng, (n, k)).T
    given = ((x, first, 1), (y, second, 0))
    return [
        cases.both(z, name, axis, scale="amax", block_size=size)
        for z, name, axis in given
    ]


def blocks_are_right(
    backend, first, second, terms, size, model="wgmma", instruction="wgmma"
):
    """Return whether products have the model's bits: for more slices than stages and
    more than a tile of columns, and for a small shape."""
    rng = np.random.default_rng(9)
    right = True
    for m, k, n in ((65, 460, 130), (3, 33, 5)):
        (a, p), (b, q) = block_operands(rng, m, k, n, first, second, size)
        want = by_model(a, b, terms, model)
        for _ in orders(backend):
            with tfc.matmul_mode("native", instruction=instruction):
                got = on_host(gpu.matmul(p, q, terms=terms))
            right = right and bool((got.view("u4") == want.view("u4")).all())
    return right
