"""Measure the errors of block formats: by the published rule and by searched scales.

    python benchmarks/blocks/blocks_quality.py [--quick] [--json FILE] [--plot FILE]

The first table has the mean square error, the signal-to-noise ratio (SNR) and the
largest error of 4096 x 4096 normal numbers. "Published" is the table of TCFP's first
description. "Its rule" is measured with the rule of the format's description,
`scale="published"` for TCFP and "floor" for MX and NVFP4. "Best" is measured with the
searched scale, `scale="mse"`. The second table has data at which TCFP's rules fail, and
products of 512 x 512 matrices compared with the float64 product.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import Report, columns, exact, figure, main, markdown, snr

SHAPE, QUICK_SHAPE = (4096, 4096), (64, 1024)
STEPS, PRODUCT, QUICK_PRODUCT = 200, 512, 128

# Published mean square error, SNR in dB and largest error of each format. `MINIMUM` has
# the SNR in dB that our searched scales must reach.
PUBLISHED: dict[str, tuple[float, float, float]] = {
    "bfloat16": (2.76e-06, 55.6, 1.56e-02),
    "naive FP8": (7.02e-04, 31.5, 1.90e-01),
    "tcfp8": (7.24e-04, 31.4, 1.38),
    "tcfp12": (2.48e-05, 46.0, 3.12e-02),
    "tcfp16": (3.93e-07, 64.1, 7.81e-03),
}
MINIMUM = {"tcfp8": 34.5, "tcfp12": 57, "tcfp16": 71, "int8": 45.5, "int12": 68.5,
        "int16": 92}  # fmt: skip
STORED = ("int8", "int12", "int16")  # formats that no unit multiplies as they are
DESCRIBED = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8",
             "nvfp4")  # fmt: skip

Errors = dict[str, float]


def errors(x: np.ndarray, rounded: np.ndarray) -> Errors:
    """Return the mean square error, SNR in dB and largest error of rounded numbers."""
    total = power = largest = 0.0
    for numbers, became in zip(x, rounded, strict=True):
        exactly = numbers.astype(np.float64)
        error = became.astype(np.float64) - exactly
        total += float(error @ error)
        power += float(exactly @ exactly)
        largest = max(largest, float(np.abs(error).max()))
    ratio = 10 * math.log10(power / total)
    return {"mse": total / x.size, "snr": ratio, "max": largest}


def naive(x: np.ndarray) -> np.ndarray:
    """Round to E4M3 with one float32 scale: 448 over the largest magnitude."""
    import tf32dtype as td

    scale = np.float32(448) / np.abs(x).max()
    return (x * scale).astype(td.float8_e4m3fn).astype(np.float32) / scale


# -- normal numbers ------------------------------------------------------------------


def normal(shape: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Yield a row for each format: bits per value, and errors of normal numbers."""
    import tf32dtype as td

    x = np.random.default_rng(0).standard_normal(shape, np.float32)

    def kept(name: str, scale: str | None) -> tuple[Errors, float]:
        array = td.blocks.quantize(x, name, scale=scale)
        return errors(x, array.dequantize()), array.bits_per_value

    def row(name: str, bits: float, rule: Errors | None, best: Errors | None) -> Report:
        print(f"  {name}", file=sys.stderr)
        published = PUBLISHED.get(name)
        return {
            "format": name,
            "bits": bits,
            "published": published
            and dict(zip(("mse", "snr", "max"), published, strict=True)),
            "rule": rule,
            "best": best,
            "minimum": MINIMUM.get(name),
        }

    yield row("bfloat16", 16, errors(x, x.astype(td.bfloat16)), None)
    yield row("naive FP8", 8, errors(x, naive(x)), None)
    for name in ("tcfp8", "tcfp12", "tcfp16"):
        best, bits = kept(name, "mse")
        yield row(name, bits, kept(name, "published")[0], best)
    for name in STORED:
        best, bits = kept(name, "mse")
        yield row(name, bits, None, best)
    for name in DESCRIBED:
        best, bits = kept(name, "mse")
        yield row(name, bits, kept(name, "floor")[0], best)


def holds(row: dict[str, Any]) -> bool:
    """Return whether a row of normal numbers is as published and reaches its minimum.

    The published rule must give the published MSE within 1 % and SNR within 0.1 dB.
    """
    good = row["minimum"] is None or row["best"]["snr"] >= row["minimum"]
    if row["published"] is not None:
        rule, published = row["rule"], row["published"]
        good &= abs(rule["mse"] / published["mse"] - 1) <= 0.01
        good &= abs(rule["snr"] - published["snr"]) <= 0.1
    return bool(good)


# -- where TCFP fails ----------------------------------------------------------------


def ratio(x: np.ndarray, scale: str) -> float:
    """Return the SNR in dB of numbers in tcfp8 with scales by a rule."""
    import tf32dtype as td

    return errors(x, td.blocks.quantize(x, "tcfp8", scale=scale).dequantize())["snr"]


def mean_error(x: np.ndarray, steps: int) -> float:
    """Return the RMS of tcfp8's mean error over steps with `ErrorFeedback`."""
    import tf32dtype as td

    feedback = td.blocks.ErrorFeedback("tcfp8")
    total = np.zeros(x.shape)
    for _ in range(steps):
        total += feedback.quantize(x).dequantize()
    return float(np.sqrt(np.mean(np.square(total / steps - x))))


def published_mean_error(x: np.ndarray, steps: int) -> float:
    """Return the RMS of tcfp8's mean error over steps with the published feedback.

    That rule adds only the error of the step before and forgets all earlier errors.
    """
    import tf32dtype as td

    error, total = np.zeros_like(x), np.zeros(x.shape)
    for _ in range(steps):
        array = td.blocks.quantize(x + error, "tcfp8", scale="published")
        became = array.dequantize()
        error = x - became
        total += became
    return float(np.sqrt(np.mean(np.square(total / steps - x))))


def published_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply as TCFP-16's publication: round both components again, with own scales.

    The components are multiplied in float64, so that only this rounding loses bits.
    """
    import tf32dtype as td

    def components(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        array = td.blocks.quantize(x, "tcfp16", scale="published")
        scales = np.repeat(array.block_scales, array.block_size, axis=-1)
        high = array.elements.astype(np.float32) * scales
        low = array.dequantize() - high
        return naive(high).astype(np.float64), naive(low).astype(np.float64)

    (high, low), (right, below) = components(a), components(np.ascontiguousarray(b.T))
    return high @ right.T + high @ below.T + low @ right.T


def failures(shape: tuple[int, int], steps: int, size: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each case: published, by its rule, best, and the limit."""
    rng = np.random.default_rng(1)
    weights = (1 + 0.02 * rng.standard_normal(shape)).astype(np.float32)
    heavy = rng.standard_t(2, shape).astype(np.float32)
    x = rng.standard_normal((64, shape[1]), np.float32)

    def row(case: str, unit: str, *figures: float | None) -> dict[str, Any]:
        names = ("published", "rule", "best", "minimum")
        print(f"  {case}", file=sys.stderr)
        return {"case": case, "unit": unit, **dict(zip(names, figures, strict=True))}

    for case, numbers, published, minimum in (
        ("tcfp8, weights 1 +- 0.02", weights, 0.84, 34),
        ("tcfp8, Student's t with 2 degrees", heavy, 11.1, 32),
    ):
        both = ratio(numbers, "published"), ratio(numbers, "mse")
        yield row(case, "dB", published, *both, minimum)
    yield row(
        f"tcfp8, mean error of {steps} steps with feedback",
        "rms",
        1.3e-2,
        published_mean_error(x, steps),
        mean_error(x, steps),
        2e-4,
    )
    a, b = rng.standard_normal((2, size, size), np.float32)
    yield from products(a, b, row)


def products(a: np.ndarray, b: np.ndarray, row: Any) -> Iterator[dict[str, Any]]:
    """Yield the SNR of block products over the float64 product of float32 sources."""
    import tf32dtype as td

    truth, size = exact(a, b), len(a)
    quantize = td.blocks.quantize
    for name in ("tcfp8", "tcfp12"):
        p, q = quantize(a, name), quantize(b, name, axis=0)
        ours = snr(td.blocks.matmul(p, q).astype(np.float64), truth)
        exactly = snr(exact(p.dequantize(), q.dequantize()), truth)
        yield row(f"{name}, product {size}^3", "dB", None, None, ours, None)
        lost = max(exactly - ours, 0.0)
        case = f"{name}, SNR lost by float32 sums"
        yield row(case, "dB less", None, None, lost, 0.5)
    p, q = quantize(a, "tcfp16"), quantize(b, "tcfp16", axis=0)
    three, four = (
        snr(td.blocks.matmul(p, q, terms=terms).astype(np.float64), truth)
        for terms in (3, 4)
    )
    rule = snr(published_product(a, b), truth)
    yield row(f"tcfp16, product {size}^3, three terms", "dB", 27.7, rule, three, 58.5)
    yield row(f"tcfp16, product {size}^3, four terms", "dB", None, None, four, 60.5)


def passes(row: dict[str, Any]) -> bool:
    """Return whether a case keeps its limit: a minimum in dB, or a maximum."""
    best, minimum = row["best"], row["minimum"]
    if minimum is None:
        return True
    return bool(best >= minimum if row["unit"] == "dB" else best <= minimum)


# -- the report ----------------------------------------------------------------------


def measure(quick: bool) -> Report:
    """Measure both tables and return them for JSON."""
    shape = QUICK_SHAPE if quick else SHAPE
    few = (shape[0] // 8, shape[1])
    size = QUICK_PRODUCT if quick else PRODUCT
    return {
        "shape": list(shape),
        "normal": list(normal(shape)),
        "failures": list(failures(few, STEPS // 4 if quick else STEPS, size)),
    }


NORMAL = ("format", "bits per value",
          *(f"{figure}, {who}" for who in ("published", "rule of the format", "best")
            for figure in ("MSE", "SNR", "max")))  # fmt: skip
FAILURES = ("case", "published", "rule of the format", "best", "required")


def normal_lines(report: Report) -> list[tuple[str, ...]]:
    """Return the rows of the table of normal numbers, under the headings `NORMAL`."""

    def figures_of(found: Errors | None) -> tuple[str, ...]:
        if found is None:
            return ("-", "-", "-")
        return f"{found['mse']:.2e}", f"{found['snr']:.1f}", f"{found['max']:.2e}"

    return [
        (row["format"], f"{row['bits']:.4g}", *figures_of(row["published"]),
         *figures_of(row["rule"]), *figures_of(row["best"]))
        for row in report["normal"]
    ]  # fmt: skip


def failure_lines(report: Report) -> list[tuple[str, ...]]:
    """Return the rows of the table of other data, under the headings `FAILURES`."""

    def figure_of(row: dict[str, Any], name: str, sign: str = "") -> str:
        value = row[name]
        if value is None:
            return "-"
        if row["unit"] == "rms":
            return f"{sign}{value:.1e}"
        return f"{sign}{value:.4g} dB" if sign else f"{value:.2f} dB"

    return [
        (
            row["case"],
            *(figure_of(row, name) for name in ("published", "rule", "best")),
            figure_of(row, "minimum", ">= " if row["unit"] == "dB" else "<= "),
        )
        for row in report["failures"]
    ]


def show(report: Report) -> str:
    """Return both tables as text for a terminal."""
    shape = " x ".join(map(str, report["shape"]))
    lines = [
        f"Normal numbers, {shape}; SNR in dB",
        columns(NORMAL, normal_lines(report)),
        "",
        columns(FAILURES, failure_lines(report)),
    ]
    if report["shape"] == list(SHAPE):
        lines += ["", f"missed: {'; '.join(missed(report)) or 'nothing'}"]
    return "\n".join(lines)


def missed(report: Report) -> list[str]:
    """Return the rows that differ from the publication or miss their limits."""
    wrong = [row["format"] for row in report["normal"] if not holds(row)]
    return wrong + [row["case"] for row in report["failures"] if not passes(row)]


def block(report: Report) -> str:
    """Return both tables in Markdown."""
    return "\n\n".join(
        [
            "Errors of normal values. SNR is in dB, higher is better; for MSE and max,"
            " lower is better:",
            markdown(NORMAL, normal_lines(report)),
            "Data for which the published rules fail, and matrix products of normal"
            " values. SNR in dB (higher is better), or an error (lower is better):",
            markdown(FAILURES, failure_lines(report)),
        ]
    )


def draw(report: Report, path: Path) -> None:
    """Draw the SNR over bits per value, and the rate-distortion bound."""
    drawing, axes = figure(path, 1, 1, (8, 5.5))
    axis = axes[0][0]
    rows = report["normal"]
    for who, marker, label in (
        ("rule", "o", "by the rule of its description"),
        ("best", "^", "searched scales"),
    ):
        found = [(row["bits"], row[who]["snr"]) for row in rows if row[who]]
        axis.plot(*zip(*found, strict=True), marker, label=label)
    for row in rows:
        at = row["bits"], (row["best"] or row["rule"])["snr"]
        place: dict[str, Any] = {"xytext": (5, 3), "ha": "left"}
        if row["format"] in ("naive FP8", "mxint8", "bfloat16"):
            place = {"xytext": (-5, -9), "ha": "right"}
        axis.annotate(
            row["format"], at, textcoords="offset points", fontsize="x-small", **place
        )
    ends = np.array([4, 17])
    axis.plot(ends, 20 * math.log10(2) * ends, "k:", label="rate-distortion bound")
    axis.set_xlabel("bits per value")
    axis.set_ylabel("SNR in dB, normal numbers")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
