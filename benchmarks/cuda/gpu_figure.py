"""Draw figures 2, 11 and 12 of arXiv 2605.16617 from the measurements of gpu.py.

    python benchmarks/cuda/gpu_figure.py REPORT.json FIGURE

On the left are TFLOP/s over M = N and K of SGEMM and of bf16x9. On the right are the
speeds of both over n = M = N = K and, if energy was measured, GFLOP/s per watt.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

Report = dict[str, Any]
#: the keys of a crossover case's seconds, and the products that they time
WHO = {"native": "SGEMM", "emulated": "bf16x9"}


def tflops(case: Report, name: str) -> float:
    """Return the TFLOP/s of the product `name` in a crossover case."""
    speed: float = 2e-12 * case["mn"] ** 2 * case["k"] / case[name]
    return speed


def draw(report: Report, path: Path) -> None:
    """Draw the figure into `path`, unless the report has no crossover."""
    cases = report.get("crossover", {}).get("cases")
    if not cases:
        return
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    energy = report.get("energy")
    layout = [["native", "speed"], ["emulated", "energy" if energy else "speed"]]
    figure, axes = pyplot.subplot_mosaic(
        layout, figsize=(13, 9), width_ratios=(3, 2), layout="constrained"
    )
    maps = [axes["native"], axes["emulated"]]
    figure.colorbar(draw_maps(maps, cases), ax=maps)
    cubes = [case for case in cases if case["mn"] == case["k"]]
    for name, who in WHO.items():
        sizes = [case["k"] for case in cubes]
        speeds = [tflops(case, name) for case in cubes]
        axes["speed"].semilogx(sizes, speeds, marker="o", label=who)
    axes["speed"].set(title="M = N = K = n", ylabel="TFLOP/s", ylim=(0, None))
    if energy:
        for who in WHO.values():
            used = [line[f"{who} GFLOP/J"] for line in energy]
            sizes = [line["n"] for line in energy]
            axes["energy"].semilogx(sizes, used, marker="o", label=who)
        axes["energy"].set(ylabel="GFLOP/s per watt", ylim=(0, None))
    for name in {*axes} - {*WHO}:
        sizes = sorted({int(x) for line in axes[name].lines for x in line.get_xdata()})
        axes[name].set_xticks(sizes, sizes, rotation=45)
        axes[name].minorticks_off()
        axes[name].set_xlabel("n")
        axes[name].grid(alpha=0.3)
        axes[name].legend()
    figure.suptitle(report["device"]["gpu"])
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def draw_maps(axes: list[Any], cases: list[Report]) -> Any:
    """Draw both heat maps with the same color scale and return an image for its bar."""
    sides = sorted({case["mn"] for case in cases})
    depths = sorted({case["k"] for case in cases})
    speeds = {name: np.full((len(depths), len(sides)), np.nan) for name in WHO}
    for case in cases:
        at = depths.index(case["k"]), sides.index(case["mn"])
        for name in WHO:
            speeds[name][at] = tflops(case, name)
    most = max(float(np.nanmax(x)) for x in speeds.values())
    for name, axis in zip(WHO, axes, strict=True):
        image = axis.imshow(
            speeds[name], vmin=0, vmax=most, origin="lower", aspect="auto"
        )
        axis.set_title(f"{WHO[name]}, TFLOP/s")
        axis.set_xticks(range(len(sides)), sides)
        axis.set_yticks(range(len(depths)), depths)
        axis.set(xlabel="M = N", ylabel="K")
        for (i, j), value in np.ndenumerate(speeds[name]):
            color = "black" if value > most / 2 else "white"
            text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
            axis.text(j, i, text, ha="center", va="center", color=color, fontsize=8)
    return image


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
