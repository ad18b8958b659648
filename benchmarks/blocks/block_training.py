"""Time a training step of an MLP with block-scaled weights, relative to bfloat16.

    python benchmarks/blocks/block_training.py [--quick] [--runs 3] [--json FILE]

The step is forward and backward of Linear(1024, 4096), GELU and Linear(4096, 1024) over
4096 rows, with bfloat16 parameters and inputs and torch's own matrix products. A row is
the time of the converted model over the time of the plain model, measured in turns, on
all cores and on one. On all cores, idle threads sleep, so that other processes disturb
less. TCFP's publication has 1.05, 2.02 and 2.53 for tcfp8, tcfp12, tcfp16, on a GPU.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import Functions, pin
from measuring import Case, Row, measure_rows, run_children

ROWS = 4096

# Per format: the published ratio of times, the largest acceptable one, and the target.
PUBLISHED = (
    ("tcfp8", 1.05, 1.10, 1.05),
    ("tcfp12", 2.02, 1.60, 1.40),
    ("tcfp16", 2.53, 2.00, 1.60),
)


def step(model: Any, x: Any, slope: Any) -> Callable[[], None]:
    """Return a call that drops the last gradients, then runs forward and backward."""

    def run() -> None:
        model.zero_grad(set_to_none=True)
        model(x).backward(slope)

    return run


def steps(name: str, rows: int, width: int) -> Iterator[Case]:
    """Yield the converted model against the plain one, without and with feedback."""
    import torch
    from torch import nn

    from tf32dtype.interop.torch import convert

    torch.manual_seed(0)
    plain = nn.Sequential(
        nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
    ).bfloat16()
    x, slope = (torch.randn(rows, width).bfloat16() for _ in range(2))
    for feedback in (False, True):
        converted = convert(copy.deepcopy(plain), name, error_feedback=feedback)
        functions: Functions = {
            "fed" if feedback else "ours": step(converted, x, slope),
            "reference": step(plain, x, slope),
        }
        yield Case(name, "feedback" if feedback else "", functions)


def child(setting: str, quick: bool) -> list[dict[str, Any]]:
    if setting == "one":
        pin()
    rows, width, repeats, budget = ROWS, 1024, 11, 20.0
    if quick:
        rows, width, repeats, budget = 64, 64, 3, 0.2
    rows_of_formats = [
        Row(f"{name}, published {published:g}", "x", minimum, target,
            partial(steps, name, rows, width))
        for name, published, minimum, target in PUBLISHED
    ]  # fmt: skip
    return measure_rows(rows_of_formats, repeats, budget)


SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    (["all"], {"OMP_WAIT_POLICY": "passive"}),
    (["one"], {"OMP_NUM_THREADS": "1"}),
]


def main() -> int:
    return run_children(
        __doc__ or "", "64 rows of 64, few repeats", __file__, SETTINGS, child
    )


if __name__ == "__main__":
    sys.exit(main())
