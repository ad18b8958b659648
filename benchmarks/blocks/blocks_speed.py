"""Time arrays of blocks relative to memcpy, and their products relative to float32's.

    python benchmarks/blocks/blocks_speed.py [--quick] [--runs 3] [--json FILE]

The tables have ratios of times. Quantizing a float32 array, and dequantizing blocks
into an existing output, are relative to a copy of the float32 array. A block product is
relative to NumPy's float32 product of the same shape. The JSON has the inverse ratios,
under "of memcpy" and "x as fast". Searched scales, the default of tcfp8, tcfp12 and
tcfp16, are quoted in nanoseconds per value. The first run pins one thread to a core,
the second one uses all threads. NumPy's BLAS chooses its kernels, which are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import MEGABYTE, Functions, data, medians, memcpy, pin
from measuring import Case, Row, blocks, measure_rows, run_children
from report import quote

WIDTH = 4096  # of arrays
FAST = (("tcfp8", "amax"), ("mxfp8_e4m3", "floor"))
SEARCHED = ("tcfp8", "tcfp12", "tcfp16")
KINDS = ("normal", "binades")
SINGLE = np.dtype(np.float32)


@cache
def matrix(kind: str, size: int) -> np.ndarray:
    """Return a float32 matrix of `size` bytes with `WIDTH` columns."""
    return data(kind, size // 4, SINGLE).reshape(-1, WIDTH)


def made(size: int) -> Iterator[Case]:
    """Yield cases that quantize `size` bytes of float32 values."""
    import tf32dtype as td

    for kind in KINDS:
        x = matrix(kind, size)
        for name, scale in FAST:
            functions: Functions = {
                "ours": partial(td.blocks.quantize, x, name, scale=scale),
                "reference": memcpy(x.nbytes),
            }
            yield Case(name, kind, functions)


def read(size: int) -> Iterator[Case]:
    """Yield cases that dequantize blocks to `size` bytes of float32 values."""
    import tf32dtype as td

    for kind in KINDS:
        x = matrix(kind, size)
        for name, scale in FAST:
            array = td.blocks.quantize(x, name, scale=scale)
            functions: Functions = {
                "ours": partial(array.dequantize, out=np.empty_like(x)),
                "reference": memcpy(x.nbytes),
            }
            yield Case(name, kind, functions)


def products(names: tuple[str, ...], terms: int | None, n: int) -> Iterator[Case]:
    """Yield block products of n x n matrices against NumPy's float32 product."""
    import tf32dtype as td

    x, y = data("normal", 2 * n * n, SINGLE).reshape(2, n, n)
    for kind in KINDS:
        a, b = data(kind, 2 * n * n, SINGLE).reshape(2, n, n)
        for name in names:
            p = td.blocks.quantize(a, name, scale="amax")
            q = td.blocks.quantize(b, name, 0, scale="amax")
            out, out32 = np.empty_like(a), np.empty_like(a)
            functions: Functions = {
                "ours": partial(td.blocks.matmul, p, q, terms=terms, out=out),
                "reference": partial(np.matmul, x, y, out=out32),
            }
            yield Case(f"{name} {n} x {n} x {n}", kind, functions, 2.0 * n**3)


def rows(size: int, n: int) -> list[Row]:
    name, memory = f"{size // MEGABYTE} MB", "of memcpy"
    eight, faster = ("tcfp8", "mxfp8_e4m3", "mxfp8_e5m2", "mxint8"), "x as fast"
    return [
        Row(f"float32 -> tcfp8 (amax), mxfp8_e4m3, {name}", memory, 0.25, 0.4,
            lambda: made(size)),
        Row(f"tcfp8, mxfp8_e4m3 -> float32, {name}", memory, 0.4, 0.6,
            lambda: read(size)),
        Row(f"8-bit blocks @ {n}", faster, 1.5, 1.7, lambda: products(eight, None, n)),
        Row(f"tcfp16, three terms @ {n}", faster, 0.55, 0.65,
            lambda: products(("tcfp16",), 3, n)),
    ]  # fmt: skip


def searched(size: int, repeats: int, budget: float) -> list[dict[str, Any]]:
    """Measure the nanoseconds per value that searched scales take."""
    import tf32dtype as td

    found = []
    for name in SEARCHED:
        row = Row(f"float32 -> {name} (mse)", "ns per value", 200, 80, lambda: iter(()))
        for kind in KINDS:
            x = matrix(kind, size)
            call = {"ours": partial(td.blocks.quantize, x, name, scale="mse")}
            seconds = medians(call, repeats, budget)["ours"]
            row.take(name, kind, "ours", 1e9 * seconds / x.size)
        found.append(row.record())
        print(f"  {row.name}: {quote(found[-1], 'ours')}", file=sys.stderr)
    return found


ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    (["one"], ONE),
    (["usual"], {}),
]


def child(setting: str, quick: bool) -> list[dict[str, Any]]:
    size, n, repeats, budget = 64 * MEGABYTE, 1024, 15, 1.0
    if quick:
        size, n, repeats, budget = MEGABYTE, 128, 3, 0.1
    if setting == "usual":
        return measure_rows(rows(size, n), repeats, budget, blocks)
    pin()
    few = min(size, 2 * MEGABYTE)
    measured = measure_rows(rows(size, n), repeats, budget)
    return [*measured, *searched(few, 5, budget)]


def main() -> int:
    return run_children(__doc__, "1 MB and 128, few repeats", __file__, SETTINGS, child)


if __name__ == "__main__":
    sys.exit(main())
