"""Make arrays on the device for benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

import tf32dtype as td


def normal(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """Return N(0, 1) values on the device; after 2^22 drawn values they repeat."""
    from tf32dtype import cuda as tfc
    from tf32dtype.cuda._runtime import backend

    count = int(np.prod(shape))
    block = np.random.default_rng(2024).standard_normal(min(count, 1 << 22), np.float32)
    machine = backend.current()
    x = machine.call("resize", machine.put(block), shape)
    return tfc.asarray(x, dtype=dtype)


def operands(n: int, name: str) -> tuple[Any, Any]:
    """Return two n x n matrices of a format.

    FP8 matrices are contiguous along k, the only layout that cublasLt accepts.
    """
    if name == "float16":
        import cupy

        from tf32dtype.cuda._runtime import backend

        wide = [normal((n, n)).view(np.float32, cupy.ndarray) for _ in range(2)]
        x, y = (backend.current().call("ndarray.astype", z, np.float16) for z in wide)
        return x, y
    dtype = getattr(td, name)
    a, b = normal((n, n), dtype), normal((n, n), dtype)
    return a, b.T if name.startswith("float8") else b
