"""Format measurements as a table, with the slowest measurement of each row."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

# Units in which a larger ratio is better.
MORE = (
    *("of memcpy", "x as fast", "x as fast as one", "of peak"),
    *("x as fast as torch", "x as fast as jax"),
    *("of a copy", "of cuBLAS", "of FP8", "of SGEMM", "TMAC/s"),
)


#: Units whose measured ratio is a speed, and their reference. Tables show the ratio of
#: times instead, ours over the reference's, as for all other units: below 1 is faster.
SPEEDS = {
    "of memcpy": "memcpy",
    "x as fast": "NumPy float32",
    "x as fast as one": "one thread",
    "x as fast as torch": "torch",
    "x as fast as jax": "jax",
    "of a copy": "a copy",
    "of cuBLAS": "cuBLAS",
    "of SGEMM": "SGEMM",
    "of FP8": "one FP8 product",
}


def as_shown(unit: str, ratio: float) -> float:
    """Return a measured ratio as tables show it: speeds as times."""
    return 1 / ratio if unit in SPEEDS else ratio


def said(unit: str) -> str:
    """Return the words that follow a figure of this unit in a table."""
    return f"x the time of {SPEEDS[unit]}" if unit in SPEEDS else unit


def worst(row: dict[str, Any], who: str) -> dict[str, Any] | None:
    """Return the slowest measurement of a row by `who`, or None."""
    mine = [m for m in row["measured"] if m["who"] == who]
    pick = min if row["unit"] in MORE else max
    return pick(mine, key=lambda m: m["ratio"]) if mine else None


def quote(row: dict[str, Any], who: str) -> str:
    found = worst(row, who)
    if found is None:
        return "-"
    ratio = as_shown(row["unit"], found["ratio"])
    digits = 0 if ratio >= 100 else 1 if row["unit"] == "ms" or ratio >= 10 else 2
    return f"{ratio:.{digits}f}"


def merge(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the measurements of all runs, row by row, into the first run."""
    merged = runs[0]
    for run in runs[1:]:
        for row, more in zip(merged["rows"], run["rows"], strict=True):
            row["measured"] += more["measured"]
    return merged


def numpy_of(facts: dict[str, str]) -> str:
    """Return NumPy's version, and the kernels that its BLAS chose."""
    kernels = f" with {facts['blas']} kernels" if "blas" in facts else ""
    return f"NumPy {facts['numpy']}{kernels}"


def runs_said(count: int) -> str:
    """Describe a figure that is the worst of `count` runs."""
    said = {1: "one run", 3: "the worst of three runs"}
    return said.get(count, f"the worst of {count} runs")


BELOW = "below minimum"
PEERS = ("ml_dtypes", "torch", "jax")
HEADINGS = ("operation", "minimum", "target", "measured", "status", "slowest case",
            "of peak",
            *PEERS)  # fmt: skip


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one tuple of strings per row, under the headings `HEADINGS`."""
    lines = []
    for row in result["rows"]:
        found = worst(row, "ours")
        if found is None:
            continue
        less = row["unit"] not in MORE
        unit = row["unit"]
        sign = ">=" if unit in MORE and unit not in SPEEDS else "<="
        minimum, target = (
            found["ratio"] <= row[b] if less else found["ratio"] >= row[b]
            for b in ("minimum", "target")
        )
        status = BELOW
        if minimum:
            status = "target reached" if target else "minimum reached"
        case = f"{found['case']} {found['data']}".strip()
        peers = [quote(row, who) for who in PEERS]
        share = f"{found['of peak']:.0%}" if "of peak" in found else "-"
        limits = [
            f"{as_shown(unit, row[bound]):.3g}" for bound in ("minimum", "target")
        ]
        bounds = f"{sign} {limits[0]} {said(unit)}", limits[1]
        lines.append(
            (row["name"], *bounds, quote(row, "ours"), status, case, share, *peers)
        )
    return lines


def show(result: dict[str, Any]) -> None:
    """Print a table, by rich if it is installed and stdout is a terminal."""
    facts = result["machine"]
    title = f"{facts['cpu']}, {result['isa']}, {numpy_of(facts)}, {facts['date']}"
    title += "".join(
        f", {name}={value}" for name, value in result.get("set", {}).items()
    )
    lines = table(result)
    if sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            from rich.console import Console
            from rich.table import Table

            pretty = Table(*HEADINGS, title=title)
            for line in lines:
                pretty.add_row(*line, style="bold red" if line[4] == BELOW else "")
            Console().print(pretty)
            return
    widths = [max(map(len, column)) for column in zip(HEADINGS, *lines, strict=True)]
    print(title)
    for line in (HEADINGS, *lines):
        print("  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip())


def show_all(result: dict[str, Any]) -> None:
    """Print one line per measurement."""
    for row in result["rows"]:
        for m in row["measured"]:
            what = f"{m['who']:10} {m['case']} {m['data']}"
            ratio = as_shown(row["unit"], m["ratio"])
            print(f"{ratio:10.3f} {said(row['unit'])}  {what}")
