"""Measure the accuracy of products on devices and of this package over their length.

    python benchmarks/matmul/accuracy_devices.py [--quick] [--json FILE] [--plot FILE]

For products of 160 x K and K x 160 float32 matrices it computes the signal-to-noise
ratio over the float64 product in dB, as the mean of four draws. The elements are
normal, or uniform in [0, 1). A tensor core truncates toward zero, and these errors add
up if all products have the same sign.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import (
    DATA,
    NUMPY,
    Report,
    columns,
    exact,
    figure,
    legend,
    main,
    markdown,
    measured_on,
    snr,
)

LENGTHS, SIZE, DRAWS = (256, 1024, 4096, 16384), 160, 4
CHOSEN = {kind: DATA[kind] for kind in ("normal", "uniform")}
DEVICES = ("V100", "A100", "L40S", "H100", "B200")
HERE = "this package"
PRECISIONS = {
    "bf16x9": (HERE, "A100", "H100", "B200"),
    "tf32x3": (HERE, "A100", "H100", "B200"),
    "bf16x3": (HERE, "A100", "H100"),
    "tf32": (HERE, "A100", "H100"),
    "f16": (HERE, "V100", "A100", "H100"),
    "bf16": (HERE, "A100", "H100"),
    "fp8_e4m3": (HERE, "L40S", "H100", "B200"),
}
COLORS = dict(zip((HERE, *DEVICES), ("k", "C0", "C1", "C2", "C3", "C4"), strict=True))


def ratios(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Return the SNR of every precision and device, by the name "precision, device"."""
    import tf32dtype as td

    reference = exact(a, b)
    found = {NUMPY: snr(a @ b, reference)}
    for precision, devices in PRECISIONS.items():
        for device in devices:
            on = None if device == HERE else device
            result = td.matmul(a, b, precision=precision, device=on)
            found[f"{precision}, {device}"] = snr(result, reference)
    return found


def measure(quick: bool) -> Report:
    """Measure all data and lengths and return them for JSON."""
    size, draws = (16, 2) if quick else (SIZE, DRAWS)
    lengths = LENGTHS[:2] if quick else LENGTHS
    found: dict[str, dict[str, list[float]]] = {}
    for kind, fill in CHOSEN.items():
        found[kind] = {}
        for length in lengths:
            rng = np.random.default_rng(length)
            pairs = [
                (fill(rng, (size, length)), fill(rng, (length, size)))
                for _ in range(draws)
            ]
            each = [ratios(*(x.astype(np.float32) for x in pair)) for pair in pairs]
            for name in each[0]:
                mean = float(np.mean([one[name] for one in each]))
                found[kind].setdefault(name, []).append(round(mean, 2))
        print(f"  {kind}", file=sys.stderr)
    return {"size": size, "draws": draws, "lengths": list(lengths), "snr": found}


def headings(report: Report) -> tuple[str, ...]:
    ends = [f"K = {length}" for length in report["lengths"]]
    return ("precision", *(f"{kind}, {end}" for kind in report["snr"] for end in ends))


def lines(report: Report) -> list[tuple[str, ...]]:
    """Return one tuple of strings per precision and device, under `headings`."""
    kinds = report["snr"].values()
    names = next(iter(kinds))
    return [
        (name, *(f"{ratio:.1f}" for kind in kinds for ratio in kind[name]))
        for name in names
    ]


def show(report: Report) -> str:
    """Return the table for a terminal."""
    return f"SNR in dB\n{columns(headings(report), lines(report))}"


def block(report: Report) -> str:
    """Return a Markdown table with one row per precision and device."""
    title = (
        f"{measured_on(report)}. SNR in dB, higher is better: means of"
        f" {report['draws']} draws."
    )
    return f"{title}\n\n{markdown(headings(report), lines(report))}"


def draw(report: Report, path: Path) -> None:
    """Draw the SNR over the length, one picture per kind of data."""
    chosen = ("bf16x9", "tf32x3", "tf32", "fp8_e4m3")
    drawing, axes = figure(path, 1, len(report["snr"]), (12, 4.8))
    for axis, (kind, found) in zip(axes[0], report["snr"].items(), strict=True):
        axis.semilogx(report["lengths"], found[NUMPY], "k--", label=NUMPY)
        for precision, style in zip(chosen, ("-", "--", "-.", ":"), strict=True):
            for device in PRECISIONS[precision]:
                name = f"{precision}, {device}"
                color = COLORS[device]
                axis.semilogx(
                    report["lengths"], found[name], style, color=color, label=name
                )
        axis.set_xlabel("K")
        axis.set_title(kind)
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("SNR in dB")
    legend(drawing, axes[0][0])
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
