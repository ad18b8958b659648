"""The picture of docs/benchmarks/speed.md: mean times of calls over float32's."""

from __future__ import annotations

import json
import math
from pathlib import Path

from surface_limits import LIMITS
from surface_report import GROUPS, group, mean, measured_cells
from svg import GROUPS as GROUP_COLORS
from svg import box, dot, page, text

RESULTS = Path(__file__).resolve().parents[1] / "results" / "surface.json"
#: Where the axis, which is logarithmic, has lines.
LINES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
LEFT, WIDTH, ROW = 270, 560, 24


def place(value: float) -> float:
    """Where a ratio is drawn."""
    first, last = math.log(LINES[0]), math.log(LINES[-1])
    share = (math.log(value) - first) / (last - first)
    return round(LEFT + WIDTH * min(max(share, 0), 1), 1)


def picture() -> str:
    """Return the file."""
    cases = measured_cells(json.loads(RESULTS.read_text()))
    kinds = [kind for kind in LIMITS if any(case.kind == kind for case in cases)]
    bottom = 82 + ROW * len(kinds)
    title = "Time of a call over that of float32: left of 1 is faster"
    drawn = [text(0, 22, title, "ink", "title")]
    for at, name in enumerate(GROUPS):
        drawn.append(dot(LEFT + 160 * at + 5, 48, GROUP_COLORS[at]))
        drawn.append(text(LEFT + 160 * at + 16, 53, name))
    for value in LINES:
        line = 2 if value == 1 else 1
        drawn.append(box(place(value) - line / 2, 66, line, bottom - 66, "faint"))
        label = f"{value:g}" if value >= 1 else f"1/{1 / value:g}"
        drawn.append(text(place(value), bottom + 20, label, "ink", "middle"))
    for row, kind in enumerate(kinds):
        y = 84 + ROW * row
        drawn.append(text(0, y + 5, kind))
        for at, name in enumerate(GROUPS):
            own = [case for case in cases if case.kind == kind and group(case) == name]
            if own:
                drawn.append(dot(place(mean(own)), y, GROUP_COLORS[at]))
    return page(880, bottom + 30, drawn)
