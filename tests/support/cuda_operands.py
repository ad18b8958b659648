"""Copy arrays to and from the current backend, and make numbers of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.cuda import backends
from tf32dtype.cuda._arrays import ndarray
from tf32dtype.cuda._runtime.storage import STORAGE, is_ours, raw


def on_gpu(x: Any) -> Any:
    """Copy a NumPy array to the backend, as tfc.ndarray if the dtype is ours."""
    x = np.asarray(x)
    if not is_ours(x.dtype):
        return backends.current().put(x)
    items = np.ascontiguousarray(x).view(STORAGE[x.dtype.itemsize])
    return ndarray.wrap(backends.current().put(items.reshape(x.shape)), x.dtype)


def on_host(x: Any) -> Any:
    """Return a C-contiguous NumPy copy of an array of the backend."""
    ours = is_ours(x.dtype)
    plain = raw(x) if ours else x.view(x.dtype, ndarray.cupy.ndarray)
    found = np.ascontiguousarray(backends.current().get(plain)).reshape(x.shape)
    return found.view(x.dtype) if ours else found


def bits(x: Any) -> Any:
    """Return the bits of a NumPy array's elements as unsigned integers."""
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def assert_same(got: Any, want: Any, what: Any = "") -> None:
    """Check that a backend's array has the dtype, shape and bits of NumPy's result."""
    want = np.asarray(want)
    assert got.dtype == want.dtype, (got.dtype, want.dtype, what)
    assert got.shape == want.shape, (got.shape, want.shape, what)
    found = on_host(got)
    wrong = np.argwhere(bits(found) != bits(want).reshape(want.shape))
    if len(wrong):
        at = tuple(wrong[0])
        raise AssertionError(
            f"{what}: {len(wrong)} of {want.size} differ, at {at}: got {found[at]},"
            f" want {want[at]}"
        )


def numbers(kind: str, shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Return numbers of a kind: "ordinary", "wide" or "codes" (any bits)."""
    rng = np.random.default_rng([seed, len(kind)])
    dtype = np.dtype(dtype)
    if kind == "codes":
        items = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(
            f"u{dtype.itemsize}"
        )[..., 0]
        if dtype.itemsize == 4:
            items &= np.uint32(0xFFFFE000)
        return items.view(dtype)
    x = rng.standard_normal(shape)
    if kind == "wide":
        x *= np.exp2(rng.integers(-70, 40, shape))
        x[rng.random(shape) < 0.1] = 0
    with np.errstate(all="ignore"):
        return x.astype(dtype)
