"""Run a weather model's spectral transform a thousand times forth and back.

    python examples/applications/spectral_transform.py [--quick]
                                    [--json FILE] [--plot FILE] [--read FILE]

Temperature and wind go from the grid to spherical harmonics and back (spherical.py);
the wind has coefficients of vorticity and divergence. An exact transform would change
nothing. After each power-of-two number of iterations the fields are compared with the
initial fields. Only the products of the Legendre stage have the precision of a row; all
other operations are float32. Float64 transforms with tables in float32 and tf32 show
the effect of rounding only the Legendre functions. Errors are weighted by area, over
all levels. tf32 runs for four thousand iterations, to show how its error grows.

The ratio of bf16x9's errors to float32's depends on the draw of the rounding errors.
Other truncations, with fewer iterations, are other draws. Their ratios are taken of the
whole fields, and of only their waves, without the means over all longitudes.

The fields are synthetic: four levels with the mean, the contrast of the poles and the
jets of some height, and waves whose spectra fall with the third power of the
wavenumber.

The script needs NumPy, and matplotlib to draw. It takes five to ten minutes; with
--quick, a coarser grid and fewer iterations, some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from float32_modes import COLORS, CUT, NUMPY, digits, mode
from scripts import FLOAT64, Report, figure, main, markdown, measured_on, say
from spherical import Array, Transform

import tf32dtype as td

FIELDS = ("T", "U", "V")
UNITS = {"T": "K", "U": "m/s", "V": "m/s"}
#: Per level: mean temperature and its fall from the equator to the poles in K, and the
#: wind of the jets in m/s.
LEVELS = ((288, 35, 10), (265, 35, 20), (240, 30, 35), (218, -10, 30))
#: Float64 transforms, and the dtypes that their tables are rounded to.
TABLES = {FLOAT64: None, "tables in float32": np.float32, "tables in tf32": td.tf32}
MODES = (NUMPY, "f32", "bf16x9", "tf32x3", "tf32", CUT, "bf16")
#: Other truncations, for the ratio of errors of bf16x9 and of float32.
OTHERS = range(40, 88, 6)
#: The modes whose errors at the end are drawn as a distribution.
FINE = (NUMPY, "f32", "bf16x9", "tf32x3")


def weather(order: int) -> tuple[Array, Array]:
    """Return float64 fields on the grid, and the weight of a value by its area."""
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
    name: str, fields: Array, area: Array, order: int, counts: list[int]
) -> tuple[dict[str, dict[str, list[float]]], Array]:
    """Return the errors of each field after each count, and all errors at the end."""
    if name in TABLES:
        transform = Transform(order, np.float64, tables=TABLES[name])
    else:
        transform = Transform(order, np.float32)
    grid = fields.astype(transform.dtype)
    found: dict[str, dict[str, list[float]]]
    found = {field: {"rms": [], "max": []} for field in FIELDS}
    with mode(FLOAT64 if name in TABLES else name):
        for count in range(1, counts[-1] + 1):
            grid = transform.to_grid(transform.to_spectrum(grid))
            if count in counts:
                error = grid - fields
                for field, own in zip(FIELDS, error, strict=True):
                    found[field]["rms"].append(digits(rms(own, area)))
                    found[field]["max"].append(digits(abs(own).max()))
    return found, error


def rms(error: Array, area: Array) -> float:
    return float(np.sqrt((error**2 * area).sum()))


def growth(counts: list[int], errors: list[float]) -> list[float]:
    """Return two exponents p of the growth c^p of the error with the count c.

    The first is fitted from 8 iterations to 1000, or to the last count. The second is
    that between the last two counts. Linear growth has 1 in both. Exponential growth
    starts with 1 and then has larger and larger exponents.
    """
    c, e = np.log(counts), np.log(errors)
    picked = [i for i, count in enumerate(counts) if 8 <= count <= 1000]
    whole = np.polyfit(c[picked], e[picked], 1)[0]
    last = (e[-1] - e[-2]) / (c[-1] - c[-2])
    return [round(float(whole), 2), round(float(last), 2)]


def ratios(orders: range, last: int) -> dict[str, dict[str, list[float]]]:
    """Return RMS errors of bf16x9 relative to NumPy's float32, by truncation."""
    found: dict[str, dict[str, list[float]]]
    found = {kind: {field: [] for field in FIELDS} for kind in ("whole", "waves")}
    for order in orders:
        whole, area = weather(order)
        waves = whole - whole.mean(axis=-1, keepdims=True)
        for kind, fields in (("whole", whole), ("waves", waves)):
            ours, theirs = (
                iterate(name, fields, area, order, [last])[0]
                for name in ("bf16x9", NUMPY)
            )
            for field in FIELDS:
                ratio = ours[field]["rms"][0] / theirs[field]["rms"][0]
                found[kind][field].append(digits(ratio))
        say(f"truncation {order}")
    return found


def densities(errors: dict[str, Array], area: Array) -> dict[str, Any]:
    """Return histograms of the errors of each field, as densities over shared bins."""
    found: dict[str, Any] = {}
    for i, field in enumerate(FIELDS):
        widest = max(rms(error[i], area) for error in errors.values())
        edges = np.linspace(-3 * widest, 3 * widest, 62)
        weights = np.broadcast_to(area, errors[NUMPY][i].shape)
        found[field] = {"edges": [digits(x) for x in edges]}
        for name, error in errors.items():
            shares, _ = np.histogram(error[i], edges, weights=weights)
            found[field][name] = [digits(x) for x in shares / (edges[1] - edges[0])]
    return found


def measure(quick: bool) -> Report:
    order, last = (21, 128) if quick else (95, 1000)
    others = (range(15, 19, 2), 32) if quick else (OTHERS, 256)
    counts = [2**i for i in range(10) if 2**i < last] + [last]
    fields, area = weather(order)
    results, errors = {}, {}
    for name in (*TABLES, *MODES):
        own = counts if name != "tf32" else [*counts, 2 * last, 4 * last]
        found, error = iterate(name, fields, area, order, own)
        for field in FIELDS:
            for kind in ("rms", "max"):
                law = growth(own, found[field][kind])
                found[field][f"growth of {kind}"] = law
        results[name] = found
        if name in FINE:
            errors[name] = error
        say(name)
    return {
        "order": order,
        "levels": len(LEVELS),
        "counts": counts,
        "results": results,
        "densities": densities(errors, area),
        "other orders": list(others[0]),
        "other count": others[1],
        "ratios": ratios(*others),
    }


def block(report: Report) -> str:
    """Return the results as Markdown."""
    counts = report["counts"]
    lines = [
        measured_on(report),
        f"Truncation {report['order']}, {report['levels']} levels. RMS error and"
        f" (largest error) after {counts[-1]} transforms and their inverses, in K (T)"
        " and m/s (U, V):",
        "",
    ]
    rows, laws = [], []
    for name, fields in report["results"].items():
        found = [fields[field] for field in FIELDS]
        errors = [short(x["rms"][len(counts) - 1]) for x in found]
        largest = [short(x["max"][len(counts) - 1]) for x in found]
        cells = [f"{e} ({g})" for e, g in zip(errors, largest, strict=True)]
        rows.append((name, *cells))
        laws.append((name, *(law(x) for x in found)))
    lines += [markdown(("precision", *FIELDS), rows), ""]
    lines += [
        "Exponents of the growth with the number of transforms, from 8 to"
        f" {counts[-1]}, for the RMS error and for the largest error (1 is linear"
        " growth):",
        "",
        markdown(("precision", *FIELDS), laws),
        "",
        "RMS error of bf16x9 relative to the error of NumPy float32, lower is better,"
        f" after {report['other count']} transforms at {len(report['other orders'])}"
        " other truncations: geometric mean, smallest to largest.",
        "",
        markdown(
            ("fields", *FIELDS),
            [
                (kind, *(spread(found[field]) for field in FIELDS))
                for kind, found in report["ratios"].items()
            ],
        ),
    ]
    return "\n".join([*lines, "", tf32_further(report)])


def short(x: float) -> str:
    return f"{x:.0f}" if 100 <= x < 10000 else f"{x:.2g}"


def spread(values: list[float]) -> str:
    mean = np.exp(np.mean(np.log(values)))
    return f"{mean:.2f}, {min(values):.2f} to {max(values):.2f}"


def law(found: dict[str, list[float]]) -> str:
    return ", ".join(f"{found[f'growth of {kind}'][0]:.2f}" for kind in ("rms", "max"))


def tf32_further(report: Report) -> str:
    """Describe tf32's errors after once, twice and four times the last count."""
    last = report["counts"][-1]
    found = report["results"]["tf32"]
    parts = []
    for field in FIELDS:
        errors = [short(x) for x in found[field]["rms"][-3:]]
        exponent = found[field]["growth of rms"][1]
        parts.append(
            f"{field} {', '.join(errors)} (exponent at the end {exponent:.2f})"
        )
    counts = f"{last}, {2 * last} and {4 * last}"
    return f"tf32's RMS errors after {counts} transforms: {'; '.join(parts)}."


def draw(report: Report, path: Path) -> None:
    """Draw the errors over iterations, and below them their final distributions."""
    drawing, _ = figure(path, 1, (13, 7.5))
    drawing.clear()
    axes = drawing.subplots(2, 3)
    counts = report["counts"]
    further = [*counts, 2 * counts[-1], 4 * counts[-1]]
    for (above, below), field in zip(axes.T, FIELDS, strict=True):
        for name, fields in report["results"].items():
            errors = fields[field]["rms"]
            above.loglog(further[: len(errors)], errors, label=name, **style(name))
        above.set_title(field)
        above.set_xlabel("transforms there and back")
        above.set_ylabel(f"RMS error, {UNITS[field]}")
        above.grid(alpha=0.3)
        found = report["densities"][field]
        for name in FINE:
            below.stairs(found[name], found["edges"], **style(name))
        below.locator_params(axis="x", nbins=5)
        below.set_xlabel(f"error after {counts[-1]}, {UNITS[field]}")
        below.set_ylabel("density")
    lines = axes[0][0].get_legend_handles_labels()
    drawing.legend(*lines, loc="outside right center", fontsize="small")
    drawing.savefig(path, dpi=80)


def style(name: str) -> dict[str, Any]:
    """Return the style of a mode. f32 is dashed, because it often covers float32."""
    if name == FLOAT64:
        return {"color": COLORS[name]}
    if name in TABLES:
        return {
            "color": COLORS["tf32"] if "tf32" in name else "black",
            "linestyle": ":",
        }
    return {"color": COLORS[name], "linestyle": "--" if name == "f32" else "-"}


if __name__ == "__main__":
    sys.exit(main(__doc__, {}, measure, block, draw))
