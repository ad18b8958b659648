"""Block-scaled instructions on the CPU against NumPy's float32 product of that shape.

    python benchmarks/tensor_core/block_scaled.py [--quick] [--runs 3] [--json FILE]

"x" is the time of td.tensor_core.matmul, of arrays of blocks as they are, over that of
np.matmul with the kernels that NumPy's BLAS chooses. What was quantized is N(0, 1) or
has exponents spread over 40 octaves. One thread is pinned to a core.
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
from promises import Case, Row, blocks, measure_rows, run_children, threads

Unit = tuple[str, str, str]  # of B200: the kind, and both formats

UNITS = [
    ("mxf8f6f4", "mxfp8_e4m3", "mxfp8_e4m3"),
    ("mxf8f6f4", "mxfp8_e5m2", "mxfp8_e5m2"),
    ("mxf8f6f4", "mxfp6_e2m3", "mxfp8_e4m3"),
    ("mxf4", "mxfp4", "mxfp4"),
    ("mxf4nvf4", "nvfp4", "nvfp4"),
]


def multiplication(unit: Unit, kind: str, n: int) -> Callable[[], Any]:
    import tf32dtype as td

    name, *formats = unit
    x, y = data(kind, 2 * n * n, np.dtype(np.float32)).reshape(2, n, n)
    return partial(
        td.tensor_core.matmul,
        td.blocks.quantize(x, formats[0]),
        td.blocks.quantize(y, formats[1], axis=-2),
        device="B200",
        instruction=f"tcgen05.{name}",
        out=np.empty((n, n), np.float32),
    )


def named(unit: Unit, n: int) -> str:
    name, a, b = unit
    return f"{name} {a if a == b else f'{a} x {b}'} {n}"


def against_numpy(units: list[Unit], sizes: list[int]) -> Iterator[Case]:
    for n in sizes:
        x, y = data("normal", 2 * n * n, np.dtype(np.float32)).reshape(2, n, n)
        reference = partial(np.matmul, x, y, out=np.empty_like(x))
        for unit in units:
            for kind in ("normal", "octaves"):
                ours = multiplication(unit, kind, n)
                functions = {"ours": ours, "reference": reference}
                yield Case(named(unit, n), kind, functions, 2.0 * n**3)


def against_one_thread(units: list[Unit], n: int) -> Iterator[Case]:
    for unit in units:
        ours = multiplication(unit, "normal", n)
        functions = {"ours": threads(2, ours), "reference": threads(1, ours)}
        yield Case(named(unit, n), "normal", functions)


def one_thread(sizes: list[int]) -> list[Row]:
    text = ", ".join(str(n) for n in sizes)
    kinds = {unit[0]: [x for x in UNITS if x[0] == unit[0]] for unit in UNITS}
    return [
        Row(f"{kind} @ {text}", "x", 8, 5, partial(against_numpy, units, sizes))
        for kind, units in kinds.items()
    ]


def two_threads(sizes: list[int]) -> list[Row]:
    return [
        Row(f"two threads @ {sizes[-1]}", "x as fast as one", 1.8, 1.95,
            lambda: against_one_thread([UNITS[0], *UNITS[3:]], sizes[-1])),
    ]  # fmt: skip


SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    (["one"], {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}),
    (["two"], {"OMP_NUM_THREADS": "2"}),
]
ROWS = {"one": one_thread, "two": two_threads}


def child(setting: str, quick: bool) -> list[dict[str, Any]]:
    if setting != "two":
        pin()
    sizes, repeats, budget = ([256], 5, 0.2) if quick else ([512, 1024], 9, 1.5)
    timing = blocks if setting == "two" else medians
    return measure_rows(ROWS[setting](sizes), repeats, budget, timing)


def main() -> int:
    return run_children(__doc__, "256, few repeats", __file__, SETTINGS, child)


if __name__ == "__main__":
    sys.exit(main())
