"""What `python benchmarks/cuda/gpu.py` measured, as Markdown for docs/how_to/cuda.md.

A part that was not measured is left out, and of the figure's picture nothing is said
where its measurements are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Report = dict[str, Any]
#: What rows are called in the table, and what their speeds are over, where the
#: report's own words are short.
ROWS = {"native products": '`mode="native"`', "chain": '"chain"'}
UNITS = {"of peak": "of float32's peak", "of FP8": "of one FP8 product"}
#: A case of a product: a format, or a precision, and the size.
PRODUCT = re.compile(r"(\S+) (\d+)(?: by \S+)?")


class Measured(NamedTuple):
    """A measurement's place in a table, and what was measured."""

    line: str
    column: str
    ratio: float


def place(row: str, unit: str, case: str) -> Measured:
    """Where a case is: products by size, all others by format."""
    if found := PRODUCT.fullmatch(case):
        name, size = found.groups()
        shown = ROWS.get(row, row)
        line = shown if name == row or row == "TCFP-16" else f"{shown}, {name}"
        return Measured(f"{line}, {UNITS.get(unit, unit)}", size, 0)
    if " -> " in case:
        source, target = case.split(" -> ")
        wide = source == "float32"
        line = "cast from float32" if wide else "cast to float32"
        return Measured(line, target if wide else source, 0)
    call, _, name = case.rpartition(" ")
    return Measured(f"blocks, {call}" if row == "blocks" else call, name, 0)


def markdown(rows: list[list[str]]) -> list[str]:
    """A table, its first row the heads, after an empty line."""
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    return ["", head, f"|{'---|' * len(rows[0])}", *others]


def status(row: Report, cases: list[Measured]) -> str:
    """Return the status of a row in words; all rows are speeds."""
    if below := [case.column for case in cases if case.ratio < row["minimum"]]:
        names = "" if len(below) == len(cases) else f": {', '.join(below)}"
        return f"below minimum{names}"
    reached = all(x.ratio >= row["target"] for x in cases)
    return "target reached" if reached else "minimum reached"


def lines(row: Report) -> Iterator[tuple[str, list[Measured]]]:
    """The lines that a row has in a table."""
    found: dict[str, list[Measured]] = {}
    for x in row["measured"]:
        case = place(row["name"], row["unit"], x["case"])._replace(ratio=x["ratio"])
        found.setdefault(case.line, []).append(case)
    yield from found.items()


def table(first: str, rows: list[Report]) -> list[str]:
    """A line a call, or format of a product; a column a format or size."""
    made = [(row, *line) for row in rows for line in lines(row)]
    if not made:
        return []
    columns = list(dict.fromkeys(case.column for *_, cases in made for case in cases))
    shown = [[first, "minimum", "target", *columns, "status"]]
    for row, name, cases in made:
        ratios = {case.column: f"{int(case.ratio * 100) / 100:.2f}" for case in cases}
        limits = [f"{row[x]:.2g}" for x in ("minimum", "target")]
        values = [ratios.get(x, "-") for x in columns]
        shown.append([name, *limits, *values, status(row, cases)])
    return markdown(shown)


def ratio_tables(report: Report) -> list[str]:
    """All rows, in three tables."""
    rows = [row for result in report.get("results", ()) for row in result["rows"]]
    blocks = [row for row in rows if row["name"] == "blocks"]
    sized = [
        row for row in rows
        if all(PRODUCT.fullmatch(x["case"]) for x in row["measured"])
    ]  # fmt: skip
    streams = [row for row in rows if row not in blocks and row not in sized]
    return [
        *table("of a copy", streams),
        *table("of a copy", blocks),
        *table("product", sized),
    ]


def joules(report: Report) -> list[str]:
    """Speed under a lasting load, energy, and dB of products by their size."""
    energy = {str(x["n"]): x for x in report.get("energy", ())}
    ratios = report.get("snr", {})
    sizes = sorted({*energy, *ratios}, key=int)
    if not sizes:
        return []
    columns: dict[str, list[float | None]] = {}
    for unit, key in (("TFLOP/s", "TFLOP/s"), ("GFLOP/s per watt", "GFLOP/J")):
        for who in ("bf16x9", "SGEMM"):
            found = [energy.get(n, {}).get(f"{who} {key}") for n in sizes]
            columns[f"{who}, {unit}"] = found
    for who, key in (("bf16x9", "ours"), ("SGEMM", "SGEMM")):
        columns[f"{who}, dB"] = [ratios.get(n, {}).get(key) for n in sizes]
    columns = {head: x for head, x in columns.items() if set(x) != {None}}
    shown = [["n", *columns]]
    for n, *values in zip(sizes, *columns.values(), strict=True):
        shown.append([n, *("-" if x is None else f"{x:.1f}" for x in values)])
    said = "Speeds and watts are of two seconds on end each, dB over float64, N(0,1):"
    return ["", said, *markdown(shown)]


def crossover(report: Report) -> list[str]:
    """Where bf16x9 is faster, and what `performant` makes of that."""
    found = report.get("crossover", {})
    cases = found.get("cases", ())
    if not cases:
        return []
    precision = found["precision"]
    speedup = {(x["mn"], x["k"]): x["native"] / x["emulated"] for x in cases}
    faster = [place for place, ratio in speedup.items() if ratio > 1]
    picture = (
        f"![Speed over shapes; speed and energy over n](../figures/{figure(report)})"
    )
    (mn, k), most = max(speedup.items(), key=lambda x: x[1])
    said = (
        f"{precision} is faster than SGEMM in {len(faster)} of {len(cases)} shapes,"
        f" from {min(map(min, speedup))} to {max(map(max, speedup))}, the host's time"
        f" counted; most at M = N = {mn}, K = {k}: {most:.2f} times."
    )
    if square := [m for m, k in faster if m == k]:
        said += f" The smallest cube of these is {min(square)}."
    if over := {(x["mn"], x["k"]): x[OVER] for x in cases if OVER in x}:
        said += f' "performant" takes at most {max(over.values()):.2f} times the better'
        said += " of both, which is a bare call of cuBLAS where it is SGEMM"
        large = [ratio for place, ratio in over.items() if min(place) >= LARGE]
        said += f"; from {LARGE} on {max(large):.2f}." if large else "."
    return ["", said, "", picture]


OVER = "performant over the better"
#: From here on the host's time is hidden.
LARGE = 4096


def file_name(gpu: str) -> str:
    """Of what is measured on a GPU, without a suffix: the report, and its picture."""
    return f"gpu_{re.sub(r'[^a-z0-9]+', '_', gpu.lower()).strip('_')}"


def figure(report: Report) -> str:
    """Its picture, by benchmarks/cuda/gpu_figure.py."""
    return f"{file_name(report['device']['gpu'])}.png"


def device(report: Report) -> str:
    """The GPU, its software, and its clocks under load."""
    facts, computer = report["device"], report["machine"]
    compiler = ".".join(re.findall(r"\d+", facts["nvrtc"]))
    major, minor = divmod(int(facts["driver's CUDA"]) // 10, 100)
    said = (
        f"Measured by `python benchmarks/cuda/gpu.py` on {facts['gpu']}"
        f" ({facts['architecture']}), driver {facts['driver']}, CUDA {major}.{minor},"
        f" NVRTC {compiler}, CuPy {facts['cupy']}, NumPy {facts['numpy']},"
        f" Python {computer['python']}, {computer['date']}"
    )
    clocks = report.get("clocks after the rows")
    if clocks:
        said += (
            f"; after the rows at {clocks['clocks.sm']} of {clocks['clocks.max.sm']},"
            f" memory {clocks['clocks.mem']}, {clocks['power.draw']} of"
            f" {clocks['power.limit']}"
        )
    return f"{said}. Ratios are of speeds, rounded down: more is faster."


def block(report: Report) -> str:
    """All of it."""
    failed = report.get("errors")
    return "\n".join(
        [
            device(report),
            *ratio_tables(report),
            *joules(report),
            *crossover(report),
            *(["", f"Not measured to the end: {', '.join(failed)}."] if failed else []),
        ]
    )
