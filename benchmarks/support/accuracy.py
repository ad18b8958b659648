"""Share code of the accuracy benchmarks: errors of float32 products against float64."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, restart_as_usual
from report import numpy_of

NUMPY = "NumPy float32"
SHORT_SUMS = "float32 by 32"  # float32 products summed in the order of the split modes
SPLIT = ("bf16x9", "bf16x6", "bf16x3", "tf32x3")
MODES = (NUMPY, SHORT_SUMS, "f32", *SPLIT, "tf32", "bf16")
LOST = 0.0  # the SNR in dB of a result of zeros, and of a result with Inf or NaN

Report = dict[str, Any]
#: Functions that draw the elements of matrices, by the name of the data.
DATA: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "exp(3 normal)": lambda rng, shape: np.exp(3 * rng.standard_normal(shape)),
}


def product(mode: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the float32 product of float32 matrices or stacks in a mode."""
    import tf32dtype as td

    with np.errstate(all="ignore"):
        if mode == NUMPY:
            return np.matmul(a, b)
        if mode == SHORT_SUMS:
            return short_sums(a, b)
        return td.matmul(a, b, precision=mode)


def short_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply 32 columns by 32 rows in NumPy; sum to 256 k, then 4096 k, then all."""
    starts = range(0, a.shape[-1], 32)
    sums = [a[..., i : i + 32] @ b[..., i : i + 32, :] for i in starts]
    for group in (8, 16, len(sums)):
        groups = range(0, len(sums), group)
        sums = [reduce(np.add, sums[i : i + group]) for i in groups]
    return sums[0]


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the float64 product of the same values, the reference."""
    return np.matmul(a.astype(np.float64), b.astype(np.float64))


def snr(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the signal-to-noise ratio in dB, by the root mean square of the error.

    It is `LOST` at least, and for a result with Inf or NaN.
    """
    if not np.all(np.isfinite(result)):
        return LOST
    signal = np.linalg.norm(reference)
    noise = np.linalg.norm(result - reference)
    with np.errstate(divide="ignore"):
        return float(max(LOST, -20 * np.log10(noise / signal)))


def columns(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format rows of strings as aligned columns."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format rows of strings as a Markdown table."""
    head, *body = ("| " + " | ".join(row) + " |" for row in (header, *rows))
    return "\n".join([head, "|" + "---|" * len(header), *body])


def span(values: Iterable[float], form: str) -> str:
    """Format the smallest and the largest of some values."""
    found = list(values)
    least, greatest = format(min(found), form), format(max(found), form)
    return least if least == greatest else f"{least} to {greatest}"


def measured_on(report: Report) -> str:
    """Name the processor, NumPy and its BLAS, on which NumPy's products depend."""
    facts = report["machine"]
    return f"Measured on {facts['cpu']}, {numpy_of(facts)}, {facts['date']}"


COLORS = {
    NUMPY: "black",
    SHORT_SUMS: "tab:gray",
    "f32": "gold",
    "bf16x9": "tab:blue",
    "bf16x6": "tab:cyan",
    "bf16x3": "tab:orange",
    "tf32x3": "tab:green",
    "tf32": "tab:red",
    "bf16": "tab:brown",
    "f16": "tab:purple",
    "fp8_e4m3": "tab:pink",
    "fp8_e5m2": "tab:olive",
}


def line_style(mode: str) -> dict[str, Any]:
    """Return the style in which every figure draws a mode."""
    styles = {NUMPY: "--", SHORT_SUMS: ":", "f32": ":", "bf16x6": "--", "f16": "--"}
    return {
        "color": COLORS[mode],
        "linestyle": styles.get(mode, "-"),
        "linewidth": 4 if mode == "bf16x9" else 1.5,  # bf16x6 is drawn on top of it
        "marker": ".",
        "label": mode,
    }


def figure(path: Path, rows: int, columns: int, size: tuple[float, float]) -> Any:
    """Return an empty figure, whose folder exists, and its axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    drawing = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing, drawing.subplots(rows, columns, squeeze=False)


def legend(drawing: Any, axis: Any) -> None:
    """Draw the legend of one of the axes on the right of a figure."""
    handles, labels = axis.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside right center", fontsize="small")


def main(
    doc: str,
    measure: Callable[[bool], Report],
    show: Callable[[Report], str],
    draw: Callable[[Report, Path], None] | None = None,
) -> int:
    """Run the command line of an accuracy benchmark."""
    restart_as_usual()
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="use few and small matrices"
    )
    parser.add_argument(
        "--read", type=Path, help="read this JSON file instead of measuring"
    )
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    if draw is not None:
        parser.add_argument("--plot", type=Path, help="draw the errors into this file")
    options = parser.parse_args()
    if options.read:
        report = json.loads(options.read.read_text())
    else:
        report = {"machine": machine(), **measure(options.quick)}
    print(measured_on(report))
    print(show(report))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if draw is not None and options.plot:
        draw(report, options.plot)
    return 0
