"""The two heat maps of arXiv 2605.16617, figure 11: TFLOP/s over M = N and K."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def draw(report: dict[str, Any], path: Path) -> None:
    """Native SGEMM above, bf16x9 below, with one scale of colours."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    cells = report["crossover"]["cells"]
    sides = sorted({cell["mn"] for cell in cells})
    depths = sorted({cell["k"] for cell in cells})
    speeds = {name: np.full((len(depths), len(sides)), np.nan) for name in WHO}
    for cell in cells:
        at = depths.index(cell["k"]), sides.index(cell["mn"])
        work = 2e-12 * cell["mn"] ** 2 * cell["k"]
        for name in WHO:
            speeds[name][at] = work / cell[name]
    most = max(float(np.nanmax(x)) for x in speeds.values())
    figure, axes = pyplot.subplots(2, 1, figsize=(7, 9), layout="constrained")
    for name, axis in zip(WHO, axes, strict=True):
        image = axis.imshow(speeds[name], vmin=0, vmax=most, origin="lower")
        axis.set_title(f"{WHO[name]}, TFLOP/s, {report['device']['gpu']}")
        axis.set_xticks(range(len(sides)), sides)
        axis.set_yticks(range(len(depths)), depths)
        axis.set(xlabel="M = N", ylabel="K")
        for (i, j), value in np.ndenumerate(speeds[name]):
            colour = "black" if value > most / 2 else "white"
            text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
            axis.text(j, i, text, ha="center", va="center", color=colour, fontsize=7)
    figure.colorbar(image, ax=axes)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


WHO = {"native": "SGEMM", "emulated": "bf16x9"}
