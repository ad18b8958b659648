"""What the tests of arrays of blocks share."""

from typing import Any

import numpy as np

from tf32dtype import blocks

Array = np.ndarray[Any, Any]

NAMES = list(blocks.formats)
FACTS = "format shape axis block_size scale_format tensor_scale".split()


def normal(shape: int | tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same(a: Array, b: Array) -> None:
    """Equal shapes, dtypes and bits."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert a.tobytes() == b.tobytes()
