"""Time calls that read and write memory once, relative to a copy of as many bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gpu_arrays import normal
from measuring import Case

import tf32dtype as td

FORMATS = ("bfloat16", "tf32", "float8_e4m3fn", "float8_e5m2")

#: a call, the arrays that it reads, and the array that it writes; None if it is tiny
Stream = tuple[Callable[[], Any], list[Any], Any]


def compared(label: str, stream: Stream) -> Case:
    """Return a case with a copy on the device that reads and writes as many bytes."""
    import cupy

    from tf32dtype.cuda._runtime import backend

    call, sources, target = stream
    moved = sum(x.nbytes for x in sources) + (0 if target is None else target.nbytes)
    half = [cupy.empty(moved // 2, np.uint8) for _ in range(2)]
    copy = partial(backend.current().call, "copyto", *half)
    return Case(label, "N(0,1)", {"ours": call, "reference": copy})


def casts(elements: int) -> Iterator[Case]:
    """Yield casts from float32 and back."""
    from tf32dtype.cuda._arrays import casts

    for name in FORMATS:
        single = normal((elements,))
        made = casts.cast(single, np.dtype(getattr(td, name)))
        for label, x, y in (
            (f"float32 -> {name}", single, made),
            (f"{name} -> float32", made, single.copy()),
        ):
            yield compared(label, (partial(casts.cast_into, x, y), [x], y))


def ufuncs(elements: int) -> Iterator[Case]:
    """Yield arithmetic and functions, into an existing array."""
    for name in ("bfloat16", "tf32", "float8_e4m3fn"):
        x = normal((elements,), getattr(td, name))
        y, out = x.copy(), x.copy()
        for ufunc in (np.add, np.multiply, np.divide, np.maximum):
            call = partial(ufunc, x, y, out=out)
            yield compared(f"{ufunc.__name__} {name}", (call, [x, y], out))
        for ufunc in (np.negative, np.exp, np.sqrt, np.tanh):
            call = partial(ufunc, x, out=out)
            yield compared(f"{ufunc.__name__} {name}", (call, [x], out))


def reductions(elements: int) -> Iterator[Case]:
    """Yield reductions of all values, of columns and of rows."""
    for name in ("bfloat16", "tf32", "float8_e4m3fn"):
        x = normal((elements >> 13, 1 << 13), getattr(td, name))
        for method in ("sum", "max"):
            for axis in (None, 0, 1):
                call = partial(getattr(x, method), axis=axis)
                yield compared(f"{method}({axis}) {name}", (call, [x], None))


def block_casts(elements: int) -> Iterator[Case]:
    """Yield casts to and from blocks against a copy of the float32 array.

    The scales are those of the rule "amax", which does not search.
    """
    from tf32dtype.cuda import blocks

    x = normal((elements // 256, 256))
    for name in ("mxfp8_e4m3", "tcfp16"):
        made = blocks.quantize(x, name, scale="amax")
        out = normal(x.shape)
        to = partial(blocks.quantize, x, name, scale="amax")
        back = partial(made.dequantize, out=out)
        yield compared(f"to {name}", (to, [x], x))
        yield compared(f"from {name}", (back, [x], x))
