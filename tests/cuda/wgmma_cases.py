"""Products by wgmma on a backend, and what they are by the model."""

from __future__ import annotations

import numpy as np

import tf32dtype as td
from tests.cuda import block_cases as cases
from tests.cuda.native_cases import model, ours
from tests.support.cuda import HOST, tfc
from tests.support.cuda_operands import on_host
from tf32dtype.cuda import blocks as gpu
from tf32dtype.cuda._matmul import native, wgmma
from tf32dtype.cuda._runtime.storage import raw

E4M3, E5M2 = td.float8_e4m3fn, td.float8_e5m2


def orders(backend):
    """Of threads, in which the host runs a kernel."""
    for descends in (False, True) if backend is HOST else (False,):
        HOST.descends = descends
        yield descends
    HOST.descends = False


def product(backend, a, b, sums=native.CHAIN, c=None, layouts=("rows", "columns")):
    if c is None:
        c = np.full((len(a), a.shape[1], b.shape[2]), np.nan, np.float32)
    out = backend.put(c)
    x, y = (ours(backend, z, how) for z, how in zip((a, b), layouts, strict=True))
    wgmma.multiply(raw(x), raw(y), out, (a.dtype.name, b.dtype.name), sums)
    return backend.get(out).view(np.uint32)


def assert_right(backend, a, b, sums=native.CHAIN, c=None, **keywords):
    want = model(
        backend,
        a,
        b,
        sums if sums.promote else None,
        np.zeros(1, np.float32) if c is None else c,
        "wgmma",
    )
    for _ in orders(backend):
        got = product(backend, a, b, sums, c, **keywords)
        np.testing.assert_array_equal(got, want)


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
    """More slices than stages, more than a tile of columns, and little."""
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
