"""Compare the advice of `report` and `tune` for twelve programs with measured answers.

    python benchmarks/programs/culprits.py [--quick] [--only NAMES] [--check]
                                           [--json FILE] [--read FILE]

The answer "by hand" comes from lowered_lines.py, which does not use tf32dtype. For each
line that computes, it lowers only this line to bfloat16 ("alone"), and then all lines
but this one ("without"). Culprits are the lines that change the printed numbers most.
Only operations of the program's own dtype count: float64 operations of a float32
program are not lowered.

Then `tf32dtype report`, `report --arithmetic bf16` and `tune` run as a user types them,
with `--float64` if that is the program's dtype. Their answers are judged:

- safe: a program that `report` or `tune` calls safe is safe by hand with the lines in
  the precisions that the command advises;
- blame: the line that `report --arithmetic` names first is a culprit by hand;
- named: one of the three lines that `report --arithmetic` names first is a culprit;
- high: the line that `tune` leaves in the highest precision is a culprit of the
products.

The last figure is the time of a program inside `td.report`, without a trial, over its
time outside. Both are the shortest of some runs in one process.

`--quick` takes two programs. `--check` ends with exit code 1 if a command calls a
program safe that is not.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from advised_lines import left_high, run_arithmetic, run_report, run_tune
from common import machine
from lowered_lines import PRODUCTS, Place, Program, change

PROGRAMS = Path(__file__).resolve().parent / "culprits"
QUICK = ("pca", "power_iteration")
#: A culprit changes the answer by a third of the worst line's change, or by 100 %.
SHARE, WHOLE = 1 / 3, 1.0
#: The first lines of the advice that count as named.
NAMED = 3


# -- by hand -------------------------------------------------------------------------


class ByHand:
    """A program, to measure how its printed numbers change with lowered lines."""

    def __init__(self, path: Path) -> None:
        source = path.read_text()
        self._program, self._texts = Program(source), source.splitlines()
        start = time.perf_counter()
        self._reference = self._program.run({})
        self.seconds = time.perf_counter() - start
        if self._reference.failure:
            raise SystemExit(f"{path.name}: {self._reference.failure}")
        seen = self._reference.seen
        self.dtype = Counter(seen.values()).most_common(1)[0][0]
        self.places = sorted(x for x, dtype in seen.items() if dtype == self.dtype)

    def change(self, chosen: Mapping[Place, str]) -> float:
        """Lower the chosen places; return the largest change, or Inf on failure."""
        run = self._program.run(chosen)
        return math.inf if run.failure else self.changed(run.printed)

    def changed(self, printed: str) -> float:
        """Return the largest change of a number in the output of another run."""
        return change(self._reference.printed, printed)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the changes with only a line lowered, its kinds, or all other lines."""
        for number in sorted({line for line, _ in self.places}):
            here = [x for x in self.places if x[0] == number]
            others = [x for x in self.places if x[0] != number]
            kinds = {x[1]: self.change({x: "bf16"}) for x in here}
            both = len(here) > 1
            yield {
                "line": number,
                "text": self._texts[number - 1].strip(),
                "alone": self.change(bf16(here)) if both else kinds[here[0][1]],
                "without": self.change(bf16(others)),
                **kinds,
            }

    def record(self) -> dict[str, Any]:
        products = [x for x in self.places if x[1] == PRODUCTS]
        return {
            "dtype": self.dtype,
            "seconds": self.seconds,
            "all": self.change(bf16(self.places)),
            "all products": self.change(bf16(products)),
            "lines": list(self.lines()),
        }


def bf16(places: list[Place]) -> dict[Place, str]:
    return dict.fromkeys(places, "bf16")


def culprits(
    lines: list[dict[str, Any]], tolerance: float, kind: str = "alone"
) -> list[int]:
    """Return the lines that change the answer most, the worst first.

    Lines whose change is within the tolerance are safe and never culprits.
    """
    moved = {x["line"]: x[kind] for x in lines if kind in x}
    least = min(SHARE * max(moved.values(), default=0.0), WHOLE)
    found = [line for line, x in moved.items() if x > tolerance and x >= least]
    return sorted(found, key=lambda line: -moved[line])


# -- the time of a report --------------------------------------------------------------

SLOWDOWN = """
import contextlib, io, sys, time
import tf32dtype as td

with open(sys.argv[1]) as file:
    program = compile(file.read(), sys.argv[1], "exec")


def seconds():
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program, {"__name__": "__main__"})
    return time.perf_counter() - start


plain, reported = [], []
for _ in range(int(sys.argv[2])):
    plain.append(seconds())
    with td.report():
        reported.append(seconds())
print(min(reported) / min(plain))
"""
REPEATS = 15


def slowdown(path: Path) -> float:
    """Return the time of a program inside a report over its time outside."""
    command = [sys.executable, "-c", SLOWDOWN, str(path), str(REPEATS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


# -- a program -----------------------------------------------------------------------


def measured(path: Path, tolerance: float) -> dict[str, Any]:
    """Measure a program by hand, run the commands, and measure their advice by hand."""
    by_hand = ByHand(path)
    found = by_hand.record()
    double = by_hand.dtype == "float64"
    found["slowdown"] = slowdown(path)
    found["report"] = run_report(path)
    arithmetic = run_arithmetic(path, double)
    arithmetic["change"] = by_hand.changed(arithmetic.pop("printed"))
    found["arithmetic"] = arithmetic
    found["tune"] = run_tune(path, double, tolerance)
    for name in ("report", "tune"):
        lines = found[name]["lines"]
        chosen = {(line, PRODUCTS): x for line, x in lines.items() if x != "none"}
        found[name]["by hand"] = by_hand.change(chosen)
    return found


def judged(found: Mapping[str, Any], tolerance: float) -> dict[str, bool | None]:
    """Return whether each answer of the commands agrees with the answer by hand.

    None stands for a question that the command or the program leaves open.
    """
    result: dict[str, bool | None] = {}
    for name in ("report", "tune"):
        says = found[name]["says"] == "safe"
        safe = found[name]["by hand"] <= tolerance
        result[f"{name}: safe"] = safe if says else None
    of_lines = culprits(found["lines"], tolerance)
    blamed = [x["line"] for x in found["arithmetic"]["blamed"][:NAMED]]
    if of_lines:
        result["arithmetic: blame"] = bool(blamed) and blamed[0] in of_lines
        result["arithmetic: named"] = any(line in of_lines for line in blamed)
    if found["arithmetic"].get("says") == "safe":
        result["arithmetic: safe"] = found["all"] <= tolerance
    of_products = culprits(found["lines"], tolerance, PRODUCTS)
    high = left_high(found["tune"]["lines"])
    result["tune: high"] = None
    if found["tune"]["says"] == "safe" and (high or of_products):
        result["tune: high"] = bool(high) and high[0] in of_products
        if high and not of_products and found["all products"] > tolerance:
            # The products of each single line are safe, but not those of all lines.
            result["tune: high"] = None
    return result


# -- texts ---------------------------------------------------------------------------


def amount(x: float) -> str:
    """Format a change in percent, or as a factor from 100 on."""
    if x == 0:
        return "0"
    if x >= 100 or math.isinf(x):
        return "fails" if math.isinf(x) else f"{x:.0f} times"
    return f"{100 * x:.2g} %" if x < 1 else f"{100 * x:.0f} %"


def listed(lines: list[int]) -> str:
    return ", ".join(map(str, lines[:NAMED])) or "none"


def wrong(judgments: Mapping[str, bool | None], commands: tuple[str, ...]) -> str:
    """List the judgments about these commands that do not agree."""
    found = [
        what
        for what, agrees in judgments.items()
        if agrees is False and what.partition(":")[0] in commands
    ]
    return ", ".join(found) or "-"


def arithmetic_row(found: Mapping[str, Any], tolerance: float) -> Iterator[str]:
    """Yield a program's cells of all operations: by hand, `report --arithmetic`."""
    moved = {x["line"]: x["alone"] for x in found["lines"]}
    those = culprits(found["lines"], tolerance)[:NAMED]
    yield amount(found["all"])
    yield amount(found["arithmetic"]["change"])
    yield ", ".join(f"{line} ({amount(moved[line])})" for line in those) or "none"
    yield listed([x["line"] for x in found["arithmetic"]["blamed"]])
    yield found["arithmetic"].get("says") or "-"
    yield wrong(judged(found, tolerance), ("arithmetic",))


def product_row(found: Mapping[str, Any], tolerance: float) -> Iterator[str]:
    """Yield a program's cells of products, by hand, by `report` and by `tune`."""
    moved = {x["line"]: x[PRODUCTS] for x in found["lines"] if PRODUCTS in x}
    those = culprits(found["lines"], tolerance, PRODUCTS)[:NAMED]
    yield amount(found["all products"])
    yield ", ".join(f"{line} ({amount(moved[line])})" for line in those) or "none"
    for name in ("report", "tune"):
        says = found[name]["says"]
        tried = says in ("safe", "changes")
        yield f"{says} ({amount(found[name]['by hand'])})" if tried else says
    high = left_high(found["tune"]["lines"])
    yield listed(high) if found["tune"]["says"] == "safe" else "-"
    yield wrong(judged(found, tolerance), ("report", "tune"))
    yield f"{found['slowdown']:.2f}"


TABLES = {
    arithmetic_row: (
        "program", "change by hand", "change by tf32dtype", "culprits by hand",
        "named lines", "verdict", "wrong judgments",
    ),
    product_row: (
        "program", "change by hand", "culprits by hand", "`report`", "`tune`",
        "lines that `tune` leaves high", "wrong judgments",
        "time in a report, relative",
    ),
}  # fmt: skip


def table(report: Mapping[str, Any], row: Callable[..., Iterator[str]]) -> list[str]:
    """Return the lines of a Markdown table with one row per program."""
    headings = TABLES[row]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for name, found in report["programs"].items():
        cells = [f"`{name}`", *row(found, report["tolerance"])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def summary(report: Mapping[str, Any]) -> dict[str, str]:
    """Count the programs that agree, among the judged ones, by the kind of judgment."""
    counts: dict[str, list[bool]] = {}
    for found in report["programs"].values():
        for name, agrees in judged(found, report["tolerance"]).items():
            counts.setdefault(name, []).extend([agrees] * (agrees is not None))
    return {name: f"{sum(x)} of {len(x)}" for name, x in counts.items()}


def block(report: dict[str, Any]) -> str:
    """Return both Markdown tables and the summary for the document."""
    report = with_infinities(report)
    facts = report["machine"]
    lines = [
        f"Measured by `python benchmarks/programs/culprits.py` on {facts['cpu']}, NumPy"
        f" {facts['numpy']}, {facts['date']}. Tolerance:"
        f" {amount(report['tolerance'])}.",
        "",
        "All operations in bfloat16, and `report --arithmetic bf16`:",
        "",
        *table(report, arithmetic_row),
        "",
        "Only matrix products in bfloat16, `report` and `tune`. The number in"
        " parentheses is the change by hand, with these products in the precisions that"
        " the command chose.",
        "",
        *table(report, product_row),
        "",
        "Judgments that agree with the answer by hand: "
        + "; ".join(f"{name} ({x})" for name, x in summary(report).items())
        + ".",
    ]
    return "\n".join(lines)


# -- JSON ----------------------------------------------------------------------------

INFINITE = "inf"


def strict(value: Any) -> Any:
    """Replace Inf and NaN by a string, because JSON has neither."""
    if isinstance(value, Mapping):
        return {name: strict(x) for name, x in value.items()}
    if isinstance(value, list):
        return [strict(x) for x in value]
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    return INFINITE if is_infinite else value


def with_infinities(value: Any) -> Any:
    """Undo `strict`, and convert keys that are line numbers to integers."""
    if isinstance(value, Mapping):
        return {
            int(name) if str(name).isdigit() else name: with_infinities(x)
            for name, x in value.items()
        }
    if isinstance(value, list):
        return [with_infinities(x) for x in value]
    return math.inf if value == INFINITE else value


def measure_all(names: list[str]) -> dict[str, Any]:
    import tf32dtype as td
    from tf32dtype._programs.report.options import TARGET_DB
    from tf32dtype._programs.report.verdict import tolerance

    report: dict[str, Any] = {
        "machine": machine() | {"tf32dtype": td.__version__},
        "target_db": TARGET_DB,
        "tolerance": tolerance(TARGET_DB),
        "programs": {},
    }
    start = time.monotonic()
    for name in names:
        found = measured(PROGRAMS / f"{name}.py", report["tolerance"])
        report["programs"][name] = found
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    report["seconds"] = time.monotonic() - start
    return report


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    parser.add_argument(
        "--quick", action="store_true", help="measure only two programs"
    )
    parser.add_argument(
        "--only", help="measure only these programs, separated by commas"
    )
    parser.add_argument(
        "--check", action="store_true", help="fail if a verdict is safe but wrong"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--read", type=Path, help="read the results from this file")
    options = parser.parse_args()
    if options.read:
        report = with_infinities(json.loads(options.read.read_text()))
    else:
        chosen = options.only.split(",") if options.only else every
        report = measure_all(list(QUICK) if options.quick else chosen)
    if options.json:
        options.json.write_text(json.dumps(strict(report), indent=1) + "\n")
    print(block(report))
    lies = [
        f"{name}: {what}"
        for name, found in report["programs"].items()
        for what, agrees in judged(found, report["tolerance"]).items()
        if what.endswith("safe") and agrees is False
    ]
    for lie in lies:
        print(f"called safe, but it is not: {lie}", file=sys.stderr)
    return int(options.check and bool(lies))


if __name__ == "__main__":
    sys.exit(main())
