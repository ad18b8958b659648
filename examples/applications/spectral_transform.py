"""A weather model's spectral transform, there and back a thousand times.

    python examples/applications/spectral_transform.py [--quick]
                                    [--json FILE] [--figure FILE] [--read FILE]

Temperature and wind go from the grid to spherical harmonics and back (spherical.py), as
vorticity and divergence for the wind; exactly, nothing would change. After each
power-of-two number of iterations the fields are held against those at the start. The
products of the Legendre stage have the precision of each row, all else is float32. What
the rounding of the Legendre functions alone does is shown by float64 transforms with
tables in float32 and in tf32. Errors are weighted by area and are of all levels.

The fields are made up, as those of the weather are not to be had here: four levels with
the mean, the contrast of the poles and the jets of some height, and waves whose spectra
fall with the third power of the wavenumber.

Needs NumPy, and matplotlib to draw. About five minutes on two cores; --quick, a coarser
grid and fewer iterations, takes some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import COLOURS, NUMPY, Report, figure, main, precision, progress
from spherical import Array, Transform

import tf32dtype as td

FIELDS = ("T", "U", "V")
UNITS = {"T": "K", "U": "m/s", "V": "m/s"}
#: Mean temperature, the poles' below the equator's, wind of the jets.
LEVELS = ((288, 35, 10), (265, 35, 20), (240, 30, 35), (218, -10, 30))
#: Float64 transforms, with tables rounded to a type.
TABLES = {"float64": None, "tables in float32": np.float32, "tables in tf32": td.tf32}
MODES = (NUMPY, "f32", "bf16x9", "tf32x3", "tf32", "tf32, cut", "bf16")
#: Whose errors at the end are drawn as a distribution.
FINE = (NUMPY, "f32", "bf16x9", "tf32x3")


def weather(order: int) -> tuple[Array, Array]:
    """Fields of float64 on the grid, and the share of the area of each latitude."""
    transform = Transform(order, np.float64)
    rng = np.random.default_rng(2026)
    m, n = np.mgrid[: order + 1, : order + 2]
    inside = (n >= m) & (n <= order) & (n > 0)
    wave = n / 8
    energy = np.where(inside, wave / (1 + wave**4) / (2 * n + 1), 0)
    shape = *n.shape, 3, len(LEVELS)
    spectrum = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    spectrum[0] = spectrum[0].real
    spectrum[:, :, 0] *= np.sqrt(energy)[..., None]
    spectrum[:, :, 1] *= (n * np.sqrt(energy))[..., None]
    spectrum[:, :, 2] *= (n * np.sqrt(energy) * 0.2)[..., None]
    grid = transform.to_grid(spectrum)
    spread = grid.std(axis=(-2, -1), keepdims=True)
    grid[0] *= 5 / spread[0]
    grid[1:] *= 10 / spread[1]
    latitude = np.arcsin(transform.sine)[:, None]
    for level, (mean, contrast, jet) in enumerate(LEVELS):
        grid[0, level] += mean + contrast * (1 / 3 - np.sin(latitude) ** 2)
        grid[1, level] += jet * np.sin(2 * latitude) ** 2 * np.cos(latitude)
    area = np.polynomial.legendre.leggauss(transform.latitudes)[1]
    exact = transform.to_grid(transform.to_spectrum(grid))
    return exact, area[:, None] / (2 * transform.longitudes * len(LEVELS))


def iterate(
    mode: str, fields: Array, area: Array, order: int, counts: list[int]
) -> tuple[dict[str, dict[str, list[float]]], Array]:
    """Errors of each field after each count, and all errors at the end."""
    if mode in TABLES:
        transform = Transform(order, np.float64, tables=TABLES[mode])
    else:
        transform = Transform(order, np.float32)
    grid = fields.astype(transform.dtype)
    found = {name: {"rms": [], "max": []} for name in FIELDS}
    with precision("float64" if mode in TABLES else mode):
        for count in range(1, counts[-1] + 1):
            grid = transform.to_grid(transform.to_spectrum(grid))
            if count in counts:
                error = grid - fields
                for name, own in zip(FIELDS, error, strict=True):
                    found[name]["rms"].append(digits(np.sqrt((own**2 * area).sum())))
                    found[name]["max"].append(digits(abs(own).max()))
    return found, error


def digits(x: Any) -> float:
    """Four significant digits, for JSON."""
    return float(f"{x:.3e}")


def growth(counts: list[int], errors: list[float]) -> dict[str, float]:
    """How the error grows with the count c: the exponent p in c^p, by doubling.

    `early` is the fit from 8 iterations to 128, `late` the exponent from the last count
    but one to the last. A law that is linear has 1 in both; an exponential one starts at
    1 and then has more and more.
    """
    c, e = np.log(counts), np.log(errors)
    picked = [i for i, count in enumerate(counts) if 8 <= count <= 128]
    early = np.polyfit(c[picked], e[picked], 1)[0]
    late = (e[-1] - e[-2]) / (c[-1] - c[-2])
    return {"early": round(float(early), 2), "late": round(float(late), 2)}


def densities(errors: dict[str, Array], area: Array) -> dict[str, Any]:
    """Histograms of the errors of each field, as densities over shared bins."""
    found: dict[str, Any] = {}
    for i, name in enumerate(FIELDS):
        widest = max(np.sqrt((error[i] ** 2 * area).sum()) for error in errors.values())
        edges = np.linspace(-3 * widest, 3 * widest, 62)
        weights = np.broadcast_to(area, errors[NUMPY][i].shape)
        found[name] = {"edges": [digits(x) for x in edges]}
        for mode, error in errors.items():
            shares, _ = np.histogram(error[i], edges, weights=weights)
            found[name][mode] = [digits(x) for x in shares / (edges[1] - edges[0])]
    return found


def measure(quick: bool) -> Report:
    order, last = (21, 256) if quick else (127, 1000)
    counts = [2**i for i in range(10) if 2**i < last] + [last]
    fields, area = weather(order)
    results, errors = {}, {}
    for mode in (*TABLES, *MODES):
        found, error = iterate(mode, fields, area, order, counts)
        for name in FIELDS:
            found[name]["growth"] = growth(counts, found[name]["rms"])
        results[mode] = found
        if mode in FINE:
            errors[mode] = error
        progress(mode)
    return {
        "order": order,
        "levels": len(LEVELS),
        "counts": counts,
        "results": results,
        "densities": densities(errors, area),
    }


def show(report: Report) -> str:
    last = report["counts"][-1]
    lines = [
        f"Truncation {report['order']}, {report['levels']} levels, after {last} iterations",
        f"{'':18} field  {'RMS error':>10} {'greatest':>10}   growth early, late",
    ]
    for mode, fields in report["results"].items():
        for name, found in fields.items():
            law = found["growth"]
            lines.append(
                f"{mode:18} {name:5}  {found['rms'][-1]:10.2e} {found['max'][-1]:10.2e}"
                f"   c^{law['early']:.2f}, c^{law['late']:.2f}"
            )
    return "\n".join(lines)


def draw(report: Report, path: Path) -> None:
    """Above, errors over iterations; below, how they are distributed at the end."""
    drawing, axes = figure(path, 2, 3, (13, 8))
    styles = {name: {"color": "black", "linestyle": ":"} for name in TABLES}
    styles["float64"]["linestyle"] = "-"
    styles["tables in tf32"]["color"] = COLOURS["tf32"]
    for mode in MODES:
        styles[mode] = {"color": COLOURS[mode]}
    for (above, below), name in zip(axes.T, FIELDS, strict=True):
        for mode, fields in report["results"].items():
            above.loglog(report["counts"], fields[name]["rms"], label=mode, **styles[mode])
        above.set_title(name)
        above.set_xlabel("transforms there and back")
        above.set_ylabel(f"RMS error, {UNITS[name]}")
        above.grid(alpha=0.3)
        found = report["densities"][name]
        for mode in FINE:
            below.stairs(found[mode], found["edges"], color=COLOURS[mode], label=mode)
        below.set_xlabel(f"error after {report['counts'][-1]}, {UNITS[name]}")
        below.set_ylabel("density")
    for row in axes:
        drawing.legend(*row[0].get_legend_handles_labels(), loc="outside right upper" if
                       row is axes[0] else "outside right lower", fontsize="small")
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
