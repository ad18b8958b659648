"""Names, numbers and checks that the tests of arrays of blocks share."""

from typing import Any

import numpy as np

from tf32dtype import blocks

Array = np.ndarray[Any, Any]

NAMES = list(blocks.formats)
FACTS = "format shape axis block_size scale_format tensor_scale".split()

#: Bits per number: its codes, and its share of the block's scales (32 or 16 numbers).
BITS = {
    "tcfp8": 8.25,
    "tcfp12": 12.5,
    "tcfp16": 16.5,
    "mxfp8_e4m3": 8.25,
    "mxfp8_e5m2": 8.25,
    "mxfp6_e2m3": 6.25,
    "mxfp6_e3m2": 6.25,
    "mxfp4": 4.25,
    "mxint8": 8.25,
    "nvfp4": 4.5,
    "int8": 8.25,
    "int12": 12.25,
    "int16": 16.25,
}


def normal(shape: int | tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same(a: Array, b: Array) -> None:
    """Check that two arrays have equal shapes, dtypes and bits."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert a.tobytes() == b.tobytes()
