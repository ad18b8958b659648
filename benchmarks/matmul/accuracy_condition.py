"""Measure the relative error of products whose dot products are ill-conditioned.

    python benchmarks/matmul/accuracy_condition.py [--quick] [--json FILE] [--plot FILE]

The matrices are made backwards, as in section 5 and figure 4 of arXiv 2605.16617. C has
random signs and magnitudes uniform in [.9, 1.1] / delta. One random element of each
column is delta times larger. A is a random orthonormal matrix (not scaled) and
B = A^T C, in float64; both are then rounded to float32. The condition of a dot product,
sum |a| |b| / |sum a b|, is then about delta on average. The reference is the float64
product of the float32 matrices.

mean, max    relative error of a pair's elements, averaged over the pairs
nearer       share of all elements that are nearer to the reference than the elements of
             NumPy's float32 product; "ties" is the share of equally near elements
pairs        share of the pairs with a smaller mean error than NumPy's
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import (
    MODES,
    NUMPY,
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
    span,
)

SIZE, PAIRS, STACK = 160, 2000, 50
DELTAS = (1e1, 1e2, 1e3, 1e4, 1e5, 1e6)


def matrices(
    rng: np.random.Generator, delta: float, count: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return stacks of `count` float32 matrices A and B."""
    shape = (count, size, size)
    c = rng.uniform(0.9, 1.1, shape) / delta * rng.choice((-1.0, 1.0), shape)
    place = rng.integers(0, size, (count, 1, size))
    c *= np.where(np.arange(size)[:, None] == place, delta, 1.0)
    a, r = np.linalg.qr(rng.standard_normal(shape))
    # With the signs of R's diagonal, A is uniformly random.
    a *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    b = np.swapaxes(a, 1, 2) @ c
    return a.astype(np.float32), b.astype(np.float32)


def relative_errors(
    a: np.ndarray, b: np.ndarray, reference: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the relative error of every element in every mode."""
    return {
        mode: np.abs((product(mode, a, b) - reference) / reference) for mode in MODES
    }


def statistics(errors: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Return averages of the errors over the pairs of a stack."""
    numpy = errors[NUMPY]
    return {
        mode: {
            "mean": float(np.mean(error)),
            "max": float(np.mean(error.max(axis=(1, 2)))),
            "nearer": float(np.mean(error < numpy)),
            "ties": float(np.mean(error == numpy)),
            "pairs": float(np.mean(error.mean((1, 2)) < numpy.mean((1, 2)))),
        }
        for mode, error in errors.items()
    }


def measure_condition(delta: float, pairs: int, stack: int, size: int) -> Report:
    """Measure one point of the figure."""
    rng = np.random.default_rng(int(delta))
    conditions, found = [], []
    for _ in range(pairs // stack):
        a, b = matrices(rng, delta, stack, size)
        reference = exact(a, b)
        conditions.append(np.mean(exact(np.abs(a), np.abs(b)) / np.abs(reference)))
        found.append(statistics(relative_errors(a, b, reference)))
    modes = {
        mode: {key: float(np.mean([one[mode][key] for one in found])) for key in keys}
        for mode, keys in found[0].items()
    }
    return {"delta": delta, "condition": float(np.mean(conditions)), "modes": modes}


def measure(quick: bool) -> Report:
    """Measure all points and return them for JSON."""
    size, pairs, stack = (48, 20, 10) if quick else (SIZE, PAIRS, STACK)
    points = []
    for delta in DELTAS:
        points.append(measure_condition(delta, pairs, stack, size))
        print(f"  condition {delta:.0e}", file=sys.stderr)
    return {"size": size, "pairs": pairs, "points": points}


HEADINGS = ("condition", "mode", "mean", "max", "nearer", "ties", "pairs")


def lines(report: Report) -> list[tuple[str, ...]]:
    """Return one tuple of strings per point and mode, under `HEADINGS`."""
    return [
        (
            f"{point['condition']:.3g}",
            mode,
            f"{found['mean']:.2e}",
            f"{found['max']:.2e}",
            *(f"{found[key]:.1%}" for key in ("nearer", "ties", "pairs")),
        )
        for point in report["points"]
        for mode, found in point["modes"].items()
    ]


def show(report: Report) -> str:
    """Return the table for a terminal."""
    title = f"{report['pairs']} pairs of {report['size']} x {report['size']} matrices"
    return f"{title}\n{columns(HEADINGS, lines(report))}"


def block(report: Report) -> str:
    """Return a Markdown table of errors relative to NumPy's, and a text on bf16x9."""
    points, others = report["points"], MODES[1:]
    rows = []
    for point in points:
        base = point["modes"][NUMPY]["mean"]
        over = (f"{point['modes'][mode]['mean'] / base:.3g}" for mode in others)
        rows.append((f"{point['condition']:.3g}", f"{base:.2e}", *over))
    nine = [point["modes"]["bf16x9"] for point in points]
    plain = [point["modes"][NUMPY] for point in points]
    shares = ([100 * x[key] for x in nine] for key in ("nearer", "ties", "pairs"))
    nearer, ties, pairs = (span(share, ".0f") for share in shares)
    largest = [x["max"] / y["max"] for x, y in zip(nine, plain, strict=True)]
    return "\n".join([
        f"{measured_on(report)}; {report['pairs']} pairs of matrices per row. Mean"
        f" relative error of {NUMPY}, and the errors of the other modes relative to it,"
        " lower is better:",
        "",
        markdown(("condition", f"mean error of {NUMPY}", *others), rows),
        "",
        f"Depending on the condition, bf16x9 is closer to float64 than {NUMPY} in",
        f"{nearer} % of all elements, and equally close in {ties} %. Its mean error is",
        f"smaller in {pairs} % of the pairs. Its largest error of a pair is on average",
        f"{span(largest, '.2f')} times that of {NUMPY}.",
    ])  # fmt: skip


def draw(report: Report, path: Path) -> None:
    """Draw the mean and the largest errors over the condition."""
    drawing, axes = figure(path, 1, 2, (11, 4.2))
    x = [point["condition"] for point in report["points"]]
    for axis, key in zip(axes[0], ("mean", "max"), strict=True):
        for mode in MODES:
            y = [point["modes"][mode][key] for point in report["points"]]
            axis.loglog(x, y, **line_style(mode))
        axis.set_xlabel("average condition of the dot products")
        axis.set_title(f"{key} relative error of {report['size']} x {report['size']}")
        axis.grid(alpha=0.3)
    legend(drawing, axes[0][0])
    drawing.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
