"""Time emulated tensor cores relative to NumPy's float32 product of the same shape.

    python benchmarks/tensor_core/tensor_core.py [--quick] [--runs 3] [--json FILE]

"x" is the time of td.tensor_core.matmul over that of np.matmul with the kernels that
NumPy's BLAS chooses. For x86-64-v3 it is OpenBLAS' Haswell kernels, which use the same
instruction set. Operands are N(0, 1) or have exponents over 40 binades, fewer if a
format has fewer. One thread is pinned to a core. Operands "in doubt" need the slower
integer code: NaN in 1 % of A's rows, or products below 2^-130 in all blocks of 1 % of
the tiles of 3 x 32 elements that the loop computes at once. Their time is relative to
the same product without such operands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import data, medians, pin
from measuring import (
    Case,
    Row,
    blocks,
    measure_rows,
    run_children,
    threads,
)

Unit = tuple[str, str, str, str]  # device, instruction, format, accumulator

A100 = [
    ("A100", "mma.sync", "bfloat16", "float32"),
    ("A100", "mma.sync", "float16", "float32"),
    ("A100", "mma.sync", "tf32", "float32"),
]
H100 = [
    ("H100", "wgmma", "bfloat16", "float32"),
    ("H100", "wgmma", "tf32", "float32"),
    ("H100", "wgmma", "float8_e4m3fn", "float32"),
]
HALVES = [
    ("V100", "mma.sync", "float16", "float16"),
    ("A100", "mma.sync", "float16", "float16"),
    ("H100", "wgmma", "float16", "float16"),
    ("H100", "wgmma", "float8_e4m3fn", "float16"),
]
OTHERS = [
    ("V100", "mma.sync", "float16", "float32"),
    ("L40S", "mma.sync", "float8_e4m3fn", "float32"),
    ("H100", "mma.sync", "float8_e4m3fn", "float32"),
    ("B200", "tcgen05", "float8_e5m2", "float32"),
]


def operands(name: str, kind: str, n: int) -> tuple[Any, Any]:
    """Return n x n matrices of a format, or arrays of blocks of two formats "a x b"."""
    import tf32dtype as td

    if " x " in name:
        x, y = data(kind, 2 * n * n, np.dtype(np.float32)).reshape(2, n, n)
        left, right = name.split(" x ")
        return td.blocks.quantize(x, left), td.blocks.quantize(y, right, axis=-2)
    dtype = np.dtype(getattr(np, name, None) or getattr(td, name))
    if kind == "binades" and name.startswith("float") and name != "float32":
        # Exponents within the format's range. Sums of e4m3 and float16 must not
        # overflow.
        least, greatest = {"float16": (-14, 5), "float8_e5m2": (-14, 10)}.get(
            name, (-6, 4)
        )
        rng = np.random.default_rng(7)
        x = np.ldexp(
            rng.uniform(1, 2, (2, n, n)) * rng.choice([-1, 1], (2, n, n)),
            rng.integers(least, greatest + 1, (2, n, n)),
        )
        a, b = x.astype(dtype)
        return a, b
    a, b = data(kind, 2 * n * n, dtype).reshape(2, n, n)
    return a, b


def multiplication(unit: Unit, a: Any, b: Any) -> Callable[[], Any]:
    import tf32dtype as td

    device, instruction, _, accumulator = unit
    return partial(
        td.tensor_core.matmul,
        a,
        b,
        device=device,
        instruction=instruction,
        accumulator=accumulator,
        out=np.empty((a.shape[0], b.shape[1]), accumulator),
    )


def named(unit: Unit, n: int) -> str:
    device, instruction, name, accumulator = unit
    return f"{device} {instruction} {name} -> {accumulator} {n}"


def against_numpy(units: list[Unit], sizes: list[int]) -> Iterator[Case]:
    for n in sizes:
        x, y = data("normal", 2 * n * n, np.dtype(np.float32)).reshape(2, n, n)
        out = np.empty_like(x)
        for unit in units:
            for kind in ("normal", "binades"):
                ours = multiplication(unit, *operands(unit[2], kind, n))
                functions = {
                    "ours": ours,
                    "reference": partial(np.matmul, x, y, out=out),
                }
                yield Case(named(unit, n), kind, functions, 2.0 * n**3)


def in_doubt(units: list[Unit], n: int) -> Iterator[Case]:
    rng = np.random.default_rng(8)
    for unit in units:
        a, b = operands(unit[2], "normal", n)
        usual = multiplication(unit, a, b)
        nan = a.copy()
        nan[rng.permutation(n)[: max(1, n // 100)], rng.integers(0, n)] = np.nan
        x, y = a.copy(), b.copy()
        across, down = 2, max(1, round(0.01 * (n // 3) * (n // 32) / 2))
        for i in rng.permutation(n // 3)[:down]:
            x[3 * i : 3 * i + 3] *= x.dtype.type(2.0**-70)
        for j in rng.permutation(n // 32)[:across]:
            y[:, 32 * j : 32 * j + 32] *= y.dtype.type(2.0**-70)
        for kind, pair in (("NaN", (nan, b)), ("tiny", (x, y))):
            ours = multiplication(unit, *pair)
            yield Case(named(unit, n), kind, {"ours": ours, "reference": usual})


def near_the_top(units: list[Unit], n: int) -> Iterator[Case]:
    """Yield products of values in [1.875, 2): the largest sums of a binade."""
    rng = np.random.default_rng(9)
    for unit in units:
        a, b = operands(unit[2], "normal", n)
        x, y = (rng.uniform(1.875, 2, (2, n, n))).astype(a.dtype)
        usual, ours = multiplication(unit, a, b), multiplication(unit, x, y)
        functions = {"ours": ours, "reference": usual}
        yield Case(named(unit, n), "near the top", functions)


def against_one_thread(units: list[Unit], n: int) -> Iterator[Case]:
    for unit in units:
        for kind in ("normal", "binades"):
            ours = multiplication(unit, *operands(unit[2], kind, n))
            functions = {"ours": threads(2, ours), "reference": threads(1, ours)}
            yield Case(named(unit, n), kind, functions)


def one_thread(sizes: list[int]) -> list[Row]:
    text = ", ".join(str(n) for n in sizes)
    return [
        Row(f"A100 bf16, fp16, tf32 @ {text}", "x", 4.2, 3.3,
            lambda: against_numpy(A100, sizes)),
        Row(f"H100 bf16, tf32, fp8 @ {text}", "x", 4.2, 3.3,
            lambda: against_numpy(H100, sizes)),
        Row(f"float16 accumulators @ {text}", "x", 10, 5,
            lambda: against_numpy(HALVES, sizes)),
        Row(f"other units @ {text}", "x", 10, 5,
            lambda: against_numpy(OTHERS, sizes)),
        Row(f"1 % in doubt @ {sizes[0]}", "x the time of N(0, 1)", 2, 1.5,
            lambda: in_doubt([A100[0], H100[0], H100[1]], sizes[0])),
        Row(f"one sign, near the top of a binade @ {sizes[0]}",
            "x the time of N(0, 1)", 2, 1.5,
            lambda: near_the_top([*A100, *H100], sizes[0])),
    ]  # fmt: skip


def two_threads(sizes: list[int]) -> list[Row]:
    return [
        Row(f"two threads @ {sizes[-1]}", "x as fast as one", 1.8, 1.95,
            lambda: against_one_thread([A100[0], *H100, HALVES[1]], sizes[-1])),
    ]  # fmt: skip


def lesser(sizes: list[int]) -> list[Row]:
    text = ", ".join(str(n) for n in sizes)
    return [
        Row(f"all of these @ {text}, x86-64-v3, relative to Haswell kernels",
            "x", 25, 15, lambda: against_numpy([*A100, *H100, *HALVES], sizes)),
    ]  # fmt: skip


ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    (["one"], ONE),
    (["two"], {"OMP_NUM_THREADS": "2"}),
    (
        ["lesser"],
        {**ONE, "TF32DTYPE_ISA": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell"},
    ),
]
Rows = dict[str, Callable[[list[int]], list[Row]]]
ROWS: Rows = {"one": one_thread, "two": two_threads, "lesser": lesser}


def main(doc: str, script: str, rows: Rows, repeats: int, budget: float) -> int:
    """Run the command line of a benchmark with rows by the name of the setting."""

    def child(setting: str, quick: bool) -> list[dict[str, Any]]:
        if setting != "two":
            pin()
        timing = blocks if setting == "two" else medians
        if quick:
            return measure_rows(rows[setting]([256]), 5, 0.2, timing)
        return measure_rows(rows[setting]([512, 1024]), repeats, budget, timing)

    return run_children(doc, "256, few repeats", script, SETTINGS, child)


if __name__ == "__main__":
    sys.exit(main(__doc__, __file__, ROWS, 15, 2.0))
