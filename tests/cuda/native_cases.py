"""Stacks of matrices in any memory layout, and their products on a GPU."""

from __future__ import annotations

import numpy as np

from tests.support.cuda import cupy
from tests.support.cuda_products import by_plan
from tf32dtype import tensor_core
from tf32dtype.cuda._arrays.ndarray import wrap
from tf32dtype.cuda._matmul import native, tensor_cores
from tf32dtype.cuda._runtime.storage import STORAGE


def numbers(rng, shape, dtype, special=False):
    """Return numbers within some binades, or with Inf, NaN, zeros and subnormal
    numbers."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape)
    if special:
        x = np.where(rng.random(shape) < 0.01, np.copysign(np.inf, x), x)
        x = np.where(rng.random(shape) < 0.02, rng.choice([0, -0.0, np.nan], shape), x)
        least = float(np.finfo(dtype).smallest_subnormal)
        x = x * rng.choice([1, least * 3], shape, p=[0.9, 0.1])
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def lay(backend, bits, layout):
    """Put a stack of matrices on the backend, with its elements in a memory layout."""
    *rest, m, n = bits.shape
    if layout == "columns":
        return backend.put(bits.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout in ("pitched", "odd"):  # whole chunks of 16 to a line, or none
        before, after = (0, -n % 16 + 16) if layout == "pitched" else (1, 2)
        wide = np.full((*rest, m, before + n + after), 0x3C, bits.dtype)
        wide[..., before : before + n] = bits
        return backend.put(wide)[..., before : before + n]
    if layout.endswith(" columns"):
        return lay(backend, bits.swapaxes(-1, -2), layout[:-8]).swapaxes(-1, -2)
    if layout == "thinned":
        return backend.put(np.repeat(bits, 2, axis=-1))[..., ::2]
    if layout == "reversed":
        return backend.put(np.ascontiguousarray(bits[..., ::-1, :]))[..., ::-1, :]
    if layout == "repeated":
        assert (bits == bits[:1]).all()
        return cupy.broadcast_to(backend.put(bits[:1]), bits.shape)
    assert layout == "rows"
    return backend.put(bits)


def ours(backend, x, layout):
    """Put x on the backend in a memory layout, as an array of x's dtype."""
    return wrap(lay(backend, x.view(STORAGE[x.dtype.itemsize]), layout), x.dtype)


def product(backend, a, b, tile=None, sums=None, c=None):
    """Return the bits of a @ b by the kernel, with c and more as `native.Sums` says."""
    if c is None:
        c = np.full((len(a), a.shape[1], b.shape[2]), np.nan, np.float32)
    out = backend.put(c)
    if tile is None and sums is None:
        by_plan(tensor_cores.plan, a, b, out, "mma.sync")
    else:
        by_plan(native.plan, a, b, out, tile, sums or native.CHAIN)
    return backend.get(out).view(np.uint32)


def model(backend, a, b, sums=None, c=None, instruction="mma.sync"):
    """Return the bits of `product`, computed by the model on the CPU."""

    def chains(a, b, **keywords):
        return tensor_core.matmul(
            a, b, device=device, instruction=instruction, **keywords
        )

    def stretch(a, b):
        if sums.promote >= 32 // a.dtype.itemsize:
            return chains(a, b, promote_every=sums.promote)
        total = np.zeros((len(a), a.shape[1], b.shape[2]), np.float32)
        for k in range(0, a.shape[2], sums.promote):  # half an instruction
            here = slice(k, k + sums.promote)
            total += chains(a[:, :, here], b[:, here])
        return total

    device = native.device_of(backend.architecture())
    with np.errstate(all="ignore"):
        if sums is None:
            return chains(a, b).view(np.uint32)
        deep = sums.stretch or max(a.shape[2], 1)
        result = np.float32(sums.beta) * c if sums.beta else np.zeros_like(c)
        for k in range(0, max(a.shape[2], 1), deep):
            here = slice(k, k + deep)
            total = stretch(a[:, :, here], b[:, here])
            result = total + result if k or sums.beta else total
    bits = result.view(np.uint32).copy()
    bits[np.isnan(result)] = 0x7FFFFFFF
    return bits


def has(backend, pair):
    eight = np.dtype(pair[0]).itemsize == 1
    return not eight or native.number(backend.architecture()) >= 89
