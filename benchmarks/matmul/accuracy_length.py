"""Measure the accuracy of products over their length, in all modes.

    python benchmarks/matmul/accuracy_length.py [--quick] [--json FILE] [--plot FILE]

For products of 160 x K and K x 160 float32 matrices it computes the signal-to-noise
ratio over the float64 product in dB, as the mean of eight draws. The elements are
normal, uniform in [0, 1), or exp(3 normal).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import (
    DATA,
    MODES,
    Report,
    columns,
    exact,
    figure,
    legend,
    line_style,
    main,
    markdown,
    measured_on,
    product,
    snr,
)

LENGTHS, SIZE, DRAWS = (160, 1024, 4096, 16384), 160, 8
ALL = (*MODES, "f16", "fp8_e4m3", "fp8_e5m2")


def measure_length(kind: str, length: int, size: int, draws: int) -> dict[str, float]:
    """Return the mean ratio of every mode."""
    rng = np.random.default_rng(length)
    found: dict[str, list[float]] = {mode: [] for mode in ALL}
    for _ in range(draws):
        a = DATA[kind](rng, (size, length)).astype(np.float32)
        b = DATA[kind](rng, (length, size)).astype(np.float32)
        reference = exact(a, b)
        for mode in ALL:
            found[mode].append(snr(product(mode, a, b), reference))
    return {mode: round(float(np.mean(ratios)), 2) for mode, ratios in found.items()}


def measure(quick: bool) -> Report:
    """Measure all data and lengths and return them for JSON."""
    size, draws = (16, 2) if quick else (SIZE, DRAWS)
    lengths = LENGTHS[:2] if quick else LENGTHS
    found: dict[str, dict[str, list[float]]] = {}
    for kind in DATA:
        ratios = [measure_length(kind, length, size, draws) for length in lengths]
        found[kind] = {mode: [one[mode] for one in ratios] for mode in ALL}
        print(f"  {kind}", file=sys.stderr)
    return {"size": size, "draws": draws, "lengths": list(lengths), "snr": found}


def headings(report: Report) -> tuple[str, ...]:
    return ("data", "mode", *(f"K = {length}" for length in report["lengths"]))


def lines(report: Report) -> list[tuple[str, ...]]:
    """Return one tuple of strings per kind of data and mode, under `headings`."""
    return [
        (kind, mode, *(f"{ratio:.1f}" for ratio in ratios))
        for kind, modes in report["snr"].items()
        for mode, ratios in modes.items()
    ]


def show(report: Report) -> str:
    """Return the table for a terminal."""
    return f"SNR in dB\n{columns(headings(report), lines(report))}"


def block(report: Report) -> str:
    """Return a Markdown table: per mode, the ratios at the smallest and largest K."""
    ends = report["lengths"][0], report["lengths"][-1]
    header = ("mode", *(f"{kind}, K = {end}" for kind in report["snr"] for end in ends))
    kinds = report["snr"].values()
    rows = [
        (mode, *(f"{kind[mode][end]:.1f}" for kind in kinds for end in (0, -1)))
        for mode in ALL
    ]
    title = (
        f"{measured_on(report)}. SNR in dB, higher is better: means of"
        f" {report['draws']} draws."
    )
    return f"{title}\n\n{markdown(header, rows)}"


def draw(report: Report, path: Path) -> None:
    """Draw the SNR over the length, one picture per kind of data."""
    drawing, axes = figure(path, 1, len(report["snr"]), (13, 4.8))
    for axis, (kind, modes) in zip(axes[0], report["snr"].items(), strict=True):
        for mode, ratios in modes.items():
            axis.semilogx(report["lengths"], ratios, **line_style(mode))
        axis.set_xlabel("K")
        axis.set_title(kind)
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("SNR in dB")
    legend(drawing, axes[0][0])
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
