"""Format the measurements of benchmarks/cuda/gpu.py for docs/benchmarks/gpu.md.

Ratios of speeds in the report are shown as ratios of times. Tables and the picture are
left out if their measurements are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Report = dict[str, Any]
#: Longer names of rows and of their references, where the report's names are short.
ROWS = {"native products": '`mode="native"`', "chain": '"chain"'}
REFERENCES = {"of peak": "float32's peak", "of FP8": "one FP8 product"}
#: The unit of the rows that have speeds instead of ratios.
SPEED = "TMAC/s"
#: The case of a product: its format or precision, its size, and the instruction.
PRODUCT = re.compile(r"(\S+) (\d+)(?: by \S+)?")


class Measured(NamedTuple):
    """A measurement with the line and the column that it has in a table."""

    line: str
    column: str
    ratio: float


#: Names of the casts to and from arrays of blocks.
BLOCK_CASTS = {"to": "float32 to blocks", "from": "blocks to float32"}


def place(row: str, unit: str, case: str) -> Measured:
    """Return a case's line and column: the size of products, the format of others."""
    if found := PRODUCT.fullmatch(case):
        name, size = found.groups()
        shown = ROWS.get(row, row)
        line = shown if name == row or row == "TCFP-16" else f"{shown}, {name}"
        reference = REFERENCES.get(unit, unit.removeprefix("of "))
        over = "" if unit == SPEED else f", relative to {reference}"
        return Measured(f"{line}{over}", size, 0)
    if " -> " in case:
        source, target = case.split(" -> ")
        wide = source == "float32"
        line = "cast from float32" if wide else "cast to float32"
        return Measured(line, target if wide else source, 0)
    call, _, name = case.rpartition(" ")
    return Measured(BLOCK_CASTS.get(call, call), name, 0)


def markdown(rows: list[list[str]]) -> list[str]:
    """Return an empty line and a Markdown table whose first row is the heading."""
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    return ["", head, f"|{'---|' * len(rows[0])}", *others]


def status(row: Report, cases: list[Measured]) -> str:
    """Return the status of a row in words; all rows are speeds."""
    if slow := [case.column for case in cases if case.ratio < row["minimum"]]:
        names = "" if len(slow) == len(cases) else f": {', '.join(slow)}"
        return f"misses the limit{names}"
    reached = all(x.ratio >= row["target"] for x in cases)
    return "target reached" if reached else "within the limit"


def lines(row: Report) -> Iterator[tuple[str, list[Measured]]]:
    """Yield the lines that a row of the report has in a table, with their cases."""
    found: dict[str, list[Measured]] = {}
    for x in row["measured"]:
        case = place(row["name"], row["unit"], x["case"])._replace(ratio=x["ratio"])
        found.setdefault(case.line, []).append(case)
    yield from found.items()


def figure_of(unit: str, ratio: float) -> str:
    """Return a speed as it is, and a ratio of speeds as a ratio of times."""
    return f"{ratio if unit == SPEED else 1 / ratio:.2f}"


def table(first: str, rows: list[Report]) -> list[str]:
    """Return one line per call or product, with one column per format or size."""
    made = [(row, *line) for row in rows for line in lines(row)]
    if not made:
        return []
    columns = list(dict.fromkeys(case.column for *_, cases in made for case in cases))
    shown = [[first, "limit", "target", *columns, "status"]]
    for row, name, cases in made:
        unit = row["unit"]
        ratios = {case.column: figure_of(unit, case.ratio) for case in cases}
        limits = [figure_of(unit, row[x]) for x in ("minimum", "target")]
        values = [ratios.get(x, "-") for x in columns]
        shown.append([name, *limits, *values, status(row, cases)])
    return markdown(shown)


def ratio_tables(report: Report) -> list[str]:
    """Return all rows in four tables, each after its caption."""
    rows = [row for result in report.get("results", ()) for row in result["rows"]]
    groups: dict[str, list[Report]] = {x: [] for x in CAPTIONS}
    for row in rows:
        if row["name"] == "blocks":
            groups["cast"].append(row)
        elif row["unit"] == SPEED:
            groups["emulated device"].append(row)
        elif all(PRODUCT.fullmatch(x["case"]) for x in row["measured"]):
            groups["product"].append(row)
        else:
            groups["call"].append(row)
    said = []
    for first, caption in CAPTIONS.items():
        if lines_of := table(first, groups[first]):
            said += ["", caption, *lines_of]
    return said


#: The caption of each table, by the heading of its first column.
CAPTIONS = {
    "call": "Time relative to a copy that reads and writes as many bytes, lower is"
    " better:",
    "cast": "Casts to and from arrays of blocks: time relative to a copy of the"
    " float32 array, lower is better:",
    "product": "Matrix products of n x n by n x n, one column per n: time relative to"
    " the reference in the first column, lower is better:",
    "emulated device": "Products with an emulated tensor core, one column per n:"
    " 10^12 multiply-adds per second (TMAC/s), higher is better; the limit is the"
    " lowest acceptable speed:",
}


def joules(report: Report) -> list[str]:
    """Return a table of speed under load, energy and SNR of products, by their size."""
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
    said = (
        "Speed and speed per watt during two seconds of continuous load, and the"
        " signal-to-noise ratio relative to float64 for N(0, 1) operands; higher is"
        " better:"
    )
    return ["", said, *markdown(shown)]


def crossover(report: Report) -> list[str]:
    """Describe where bf16x9 is faster, and how well `performant` chooses."""
    found = report.get("crossover", {})
    cases = found.get("cases", ())
    if not cases:
        return []
    precision = found["precision"]
    speedup = {(x["mn"], x["k"]): x["native"] / x["emulated"] for x in cases}
    faster = [place for place, ratio in speedup.items() if ratio > 1]
    picture = (
        "![TFLOP/s of each shape; TFLOP/s and GFLOP/s per watt of each n]"
        f"(../figures/{figure(report)})"
    )
    (mn, k), most = max(speedup.items(), key=lambda x: x[1])
    said = (
        f"Including the time of the host, {precision} is faster than SGEMM in"
        f" {len(faster)} of {len(cases)} shapes with M, N and K from"
        f" {min(map(min, speedup))} to {max(map(max, speedup))}. Its lowest time"
        f" relative to SGEMM is {1 / most:.2f}, at M = N = {mn}, K = {k}."
    )
    if square := [m for m, k in faster if m == k]:
        said += f" With M = N = K, the smallest such shape has sides of {min(square)}."
    if over := {(x["mn"], x["k"]): x[OVER] for x in cases if OVER in x}:
        said += ' `strategy="performant"` takes at most'
        said += f" {max(over.values()):.2f} times as long as the faster of the two"
        large = [ratio for place, ratio in over.items() if min(place) >= LARGE]
        said += (
            f", and at most {max(large):.2f} times if M, N and K are {LARGE} or more."
            if large
            else "."
        )
    return ["", said, "", picture]


OVER = "performant over the better"
#: The smallest side and depth from which on the GPU's time hides the host's.
LARGE = 4096


def file_name(gpu: str) -> str:
    """Return the name of a GPU's report and picture, without the suffix."""
    return f"gpu_{re.sub(r'[^a-z0-9]+', '_', gpu.lower()).strip('_')}"


def figure(report: Report) -> str:
    """Return the file name of the picture that benchmarks/cuda/gpu_figure.py draws."""
    return f"{file_name(report['device']['gpu'])}.png"


def device(report: Report) -> str:
    """Describe the GPU, its software, and its clocks under load."""
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
            f". After the measurements, the GPU ran at {clocks['clocks.sm']} (maximum:"
            f" {clocks['clocks.max.sm']}), its memory at {clocks['clocks.mem']}, and"
            f" it used {clocks['power.draw']} (limit: {clocks['power.limit']})"
        )
    return f"{said}."


def block(report: Report) -> str:
    """Return all paragraphs, tables and the picture of a report."""
    failed = report.get("errors")
    return "\n".join(
        [
            device(report),
            *ratio_tables(report),
            *joules(report),
            *crossover(report),
            *(
                ["", f"Measurements that failed: {', '.join(failed)}."]
                if failed
                else []
            ),
        ]
    )
