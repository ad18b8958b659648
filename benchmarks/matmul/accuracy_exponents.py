"""Measure the accuracy of products over all exponents of float32, with subnormals.

    python benchmarks/matmul/accuracy_exponents.py [--quick] [--json FILE] [--plot FILE]

The script reproduces figures 5 and 6 of arXiv 2605.16617. A is 512 x 1024, B is 1024 x
2048. The elements have random signs, significands uniform in [1, 2), and uniform
exponents from four below the given exponent up to it. All pairs of exponents have the
same elements but for the scale. Below 2^-126 they are rounded to float32's subnormal
numbers. The signal-to-noise ratio in dB over the float64 product is that of equations 6
and 7. A case has no ratio if the float64 product, rounded to float32, has an Inf or
only zeros. A ratio of 0 dB means that nothing is left: the result is zeros, Inf or NaN.

"all" is a grid over the exponents of A and B from -149 to 127. "border" has normal and
subnormal A that give normal and subnormal results. Subnormal A and B together give
zeros.

unscaled x6  float32 products as compilers compute them on bfloat16 units: components
             that are not scaled, hi = bf16(a), mid = bf16(a - hi),
             lo = bf16(a - hi - mid), and six products of them, smallest first. This
             script widens the components to float32 and multiplies them by NumPy.
best         the float64 product rounded to float32.

If all elements of a matrix have the same exponent, sums of products of the leading
components need so few bits that float32 is exact, and unscaled x6 is nearly the best.
The JSON has this case under "equal", at the exponent 0.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import (
    LOST,
    NUMPY,
    Report,
    columns,
    exact,
    figure,
    main,
    markdown,
    measured_on,
    product,
    snr,
    span,
)

SHAPE = (512, 1024, 2048)
SMALLEST_NORMAL = -126
BAND = 4  # the binades below the given exponent
UNSCALED, BEST = "unscaled x6", "best"
DRAWN = (NUMPY, "bf16x9", "bf16x6", UNSCALED)


class Operand:
    """One random matrix, scaled to any exponent."""

    def __init__(
        self, rng: np.random.Generator, shape: tuple[int, int], band: int
    ) -> None:
        numbers = rng.uniform(1, 2, shape) * rng.choice((-1.0, 1.0), shape)
        numbers = np.ldexp(numbers, rng.integers(-band, 1, shape))
        # Rounded before they are scaled: normal matrices differ only by a power of two.
        self.numbers = numbers.astype(np.float32).astype(np.float64)

    def __call__(self, exponent: int) -> np.ndarray:
        return np.ldexp(self.numbers, exponent).astype(np.float32)


def has_subnormal(exponent: int) -> bool:
    """Return whether a matrix of that exponent has subnormal numbers."""
    return exponent - BAND < SMALLEST_NORMAL


class Reference:
    """The float64 product for any exponents."""

    def __init__(self, a: Operand, b: Operand) -> None:
        self.a, self.b = a, b
        self.kept: dict[tuple[int, int], np.ndarray] = {}

    def __call__(self, exponent_a: int, exponent_b: int) -> np.ndarray:
        # Normal matrices equal the matrix of the exponent 0 times a power of two.
        i, j = (e if has_subnormal(e) else 0 for e in (exponent_a, exponent_b))
        if (i, j) not in self.kept:
            self.kept[i, j] = exact(self.a(i), self.b(j))
        return np.ldexp(self.kept[i, j], exponent_a - i + exponent_b - j)


def unscaled(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Add six products of bfloat16 components that are not scaled."""
    import tf32dtype as td

    def components(x: np.ndarray) -> list[np.ndarray]:
        found = []
        for _ in range(3):
            found.append(x.astype(td.bfloat16).astype(np.float32))
            x = x - found[-1]
        return found

    with np.errstate(all="ignore"):
        (a0, a1, a2), (b0, b1, b2) = components(a), components(b)
        small = a1 @ b1 + a2 @ b0 + a0 @ b2
        return small + (a1 @ b0 + a0 @ b1) + a0 @ b0


def measure_case(a: np.ndarray, b: np.ndarray, reference: np.ndarray) -> Report | None:
    """Return the SNR of every method, or None if float32 cannot hold the result."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(np.float32)
    if np.any(np.isinf(rounded)) or not np.any(rounded):
        return None
    results = {mode: product(mode, a, b) for mode in (NUMPY, "bf16x9", "bf16x6")}
    results |= {UNSCALED: unscaled(a, b), BEST: rounded}
    return {name: round(snr(x, reference), 2) for name, x in results.items()}


def measure_map(
    a: Operand, b: Operand, reference: Reference, exponents: tuple[range, range]
) -> Report:
    """Return every method's SNR in a grid, a row per exponent of A; None: no ratio."""
    first, second = exponents
    names = (*DRAWN, BEST)
    found: dict[str, list[list[float | None]]] = {name: [] for name in names}
    magnitudes: list[list[float]] = []
    for i in first:
        row = []
        magnitudes.append([])
        for j in second:
            wanted = reference(i, j)
            row.append(measure_case(a(i), b(j), wanted))
            root = float(np.log2(np.sqrt(np.mean(wanted**2))))
            magnitudes[-1].append(round(root, 1))
        for name in names:
            found[name].append([case[name] if case else None for case in row])
        print(f"  exponent {i} of A", file=sys.stderr)
    return {
        "a": list(first),
        "b": list(second),
        "result": magnitudes,  # the binary exponent of the results' root mean square
        "snr": found,
    }


def measure(quick: bool) -> Report:
    """Measure both grids and the case of one exponent, and return them for JSON."""
    m, k, n = (16, 64, 32) if quick else SHAPE
    rng = np.random.default_rng(5)
    a, b = Operand(rng, (m, k), BAND), Operand(rng, (k, n), BAND)
    reference = Reference(a, b)
    started = time.monotonic()
    step = 46 if quick else 12
    every = range(-149, 128, step)
    border = range(-149, -100, 16 if quick else 4), range(-40, 41, 20 if quick else 4)
    maps = {
        "all": measure_map(a, b, reference, (every, every)),
        "border": measure_map(a, b, reference, border),
    }
    x, y = Operand(rng, (m, k), 0)(0), Operand(rng, (k, n), 0)(0)
    return {
        "shape": [m, k, n],
        "maps": maps,
        "equal": measure_case(x, y, exact(x, y)),
        "seconds": round(time.monotonic() - started),
    }


# -- what is shown -----------------------------------------------------------------

Case = dict[str, Any]


def cases(report: Report) -> list[Case]:
    """Return the cases that have a ratio, with their exponents and their ratios."""
    return [
        {"a": i, "b": j, "result": grid["result"][x][y]}
        | {name: rows[x][y] for name, rows in grid["snr"].items()}
        for grid in report["maps"].values()
        for x, i in enumerate(grid["a"])
        for y, j in enumerate(grid["b"])
        if grid["snr"][BEST][x][y] is not None
    ]


def normal_operands(case: Case) -> bool:
    return not (has_subnormal(case["a"]) or has_subnormal(case["b"]))


def normal_result(case: Case) -> bool:
    return case["result"] >= SMALLEST_NORMAL


KINDS: dict[str, Callable[[Case], bool]] = {
    "normal, normal": lambda c: normal_operands(c) and normal_result(c),
    "subnormal, normal": lambda c: not normal_operands(c) and normal_result(c),
    "normal, subnormal": lambda c: normal_operands(c) and not normal_result(c),
    "subnormal, subnormal": lambda c: not (normal_operands(c) or normal_result(c)),
}
HEADINGS = ("operands, result", "cases", *DRAWN, BEST)


def lines(report: Report) -> list[tuple[str, ...]]:
    """Return the median and lowest ratio of each kind of case, under `HEADINGS`."""
    rows = []
    for kind, belongs in KINDS.items():
        chosen = [case for case in cases(report) if belongs(case)]
        ratios = []
        for name in HEADINGS[2:]:
            found = [case[name] for case in chosen]
            ratios.append(f"{median(found):.1f} ({min(found):.1f})" if found else "-")
        rows.append((kind, str(len(chosen)), *ratios))
    return rows


def show(report: Report) -> str:
    """Return the table for a terminal."""
    m, k, n = report["shape"]
    title = f"SNR in dB of {m} x {k} x {n}, median (lowest); {report['seconds']} s"
    return f"{title}\n{columns(HEADINGS, lines(report))}"


def block(report: Report) -> str:
    """Return a Markdown table of the kinds of cases, and a comparison."""
    found = cases(report)
    ahead = [c["bf16x9"] - c[NUMPY] for c in found]
    behind = [case for case, more in zip(found, ahead, strict=True) if more < 0]
    subnormal = sum(not normal_result(case) for case in behind)
    lost = sum(case[UNSCALED] < case[NUMPY] - 20 for case in found)
    equal = ", ".join(f"{n} {report['equal'][n]:.1f}" for n in (*DRAWN, BEST))
    return "\n".join([
        f"{measured_on(report)}. SNR in dB, higher is better: median and (the"
        " lowest) case.",
        "",
        markdown(HEADINGS, lines(report)),
        "",
        f"bf16x9 differs from {NUMPY} by {span(ahead, '+.1f')} dB. Of the {len(found)}",
        f"cases it is lower in {len(behind)} ({subnormal} with subnormal results),",
        f"unscaled x6 by more than 20 dB in {lost}.",
        "",
        f"With one exponent in all of A and one in all of B: {equal} dB.",
    ])  # fmt: skip


def draw(report: Report, path: Path) -> None:
    """Draw heat maps: all exponents above, the border of subnormal numbers below."""
    drawing, axes = figure(path, len(report["maps"]), len(DRAWN), (14, 7))
    for row, grid in zip(axes, report["maps"].values(), strict=True):
        for axis, name in zip(row, DRAWN, strict=True):
            values = np.array(grid["snr"][name], dtype=float)  # None becomes NaN
            image = axis.pcolormesh(
                grid["b"], grid["a"], values, vmin=LOST, vmax=150, cmap="viridis"
            )
            axis.axhline(SMALLEST_NORMAL, color="black", linewidth=0.5)
            if grid["b"][0] < SMALLEST_NORMAL:
                axis.axvline(SMALLEST_NORMAL, color="black", linewidth=0.5)
            axis.set_title(name)
            axis.set_xlabel("exponent of B")
        row[0].set_ylabel("exponent of A")
        drawing.colorbar(image, ax=list(row), label="SNR in dB")
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
