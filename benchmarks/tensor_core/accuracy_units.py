"""Measure the errors that matrix units add over the length of their sums, by device.

    python benchmarks/tensor_core/accuracy_units.py [--quick] [--json F] [--plot F]

The products are of 32 x K and K x 32 bfloat16 matrices. All these units multiply
bfloat16 exactly, so that the errors show how a unit adds in float32. The root mean
square of the error over the float64 product, and its mean, are divided by the root mean
square of that product. Elements are normal (both signs) or uniform in [0, 1) (one
sign).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import (
    DATA,
    Report,
    columns,
    exact,
    figure,
    legend,
    main,
    markdown,
    measured_on,
)

LENGTHS = tuple(4**i for i in range(2, 9))
SIZE = 32
CHOSEN = {"both signs": DATA["normal"], "one sign": DATA["uniform"]}
#: The devices with their line styles: NVIDIA's solid, AMD's dashed, CPUs' dotted.
UNITS = {
    "A100": "C0-",
    "H100": "C1-",
    "MI100": "C2--",
    "MI250X": "C3--",
    "MI300X": "C4--",
    "AVX512_BF16": "C5:",
    "AMX": "C6:",
    "Arm BF16": "C7:",
}


def errors(a: np.ndarray, b: np.ndarray) -> dict[str, tuple[float, float]]:
    """Return each device's root mean square error and mean error of a product."""
    import tf32dtype as td

    reference = exact(a, b)
    scale = np.sqrt(np.mean(reference**2))
    found = {}
    for device in UNITS:
        error = (td.tensor_core.matmul(a, b, device=device) - reference) / scale
        found[device] = float(np.sqrt(np.mean(error**2))), float(np.mean(error))
    return found


def measure(quick: bool) -> Report:
    """Measure all data and lengths and return them for JSON."""
    import tf32dtype as td

    lengths = LENGTHS[:3] if quick else LENGTHS
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for kind, fill in CHOSEN.items():
        found[kind] = {device: [] for device in UNITS}
        for length in lengths:
            rng = np.random.default_rng(length)
            shapes = (SIZE, length), (length, SIZE)
            a, b = (fill(rng, shape).astype(td.bfloat16) for shape in shapes)
            for device, each in errors(a, b).items():
                found[kind][device].append(each)
        print(f"  {kind}", file=sys.stderr)
    return {"size": SIZE, "lengths": list(lengths), "errors": found}


def headings(report: Report) -> tuple[str, ...]:
    """Return the table's headings: every third length of each kind of data."""
    ends = [f"K = {length}" for length in report["lengths"][::3]]
    return ("device", *(f"{kind}, {end}" for kind in report["errors"] for end in ends))


def lines(report: Report) -> list[tuple[str, ...]]:
    """Return one tuple of strings per device, under `headings`."""
    kinds = report["errors"].values()
    return [
        (
            device,
            *(f"{e:.1e} ({m:+.1e})" for kind in kinds for e, m in kind[device][::3]),
        )
        for device in UNITS
    ]


def show(report: Report) -> str:
    """Return the table for a terminal."""
    return f"Error (mean error)\n{columns(headings(report), lines(report))}"


def block(report: Report) -> str:
    """Return a Markdown table with one row per device."""
    title = (
        f"{measured_on(report)}. Root mean square error and (mean error), relative to"
        " the exact result; closer to 0 is better."
    )
    return f"{title}\n\n{markdown(headings(report), lines(report))}"


def draw(report: Report, path: Path) -> None:
    """Draw the errors over the length, one picture per kind of data."""
    drawing, axes = figure(path, 1, len(report["errors"]), (12, 4.8))
    for axis, (kind, found) in zip(axes[0], report["errors"].items(), strict=True):
        for device, style in UNITS.items():
            each = [error for error, _ in found[device]]
            axis.loglog(report["lengths"], each, style, marker=".", label=device)
        axis.set_xlabel("K")
        axis.set_title(f"bfloat16 operands of {kind}")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("root mean square error / result")
    legend(drawing, axes[0][0])
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
