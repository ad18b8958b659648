"""Read which lines of a program `tf32dtype report` and `tune` name.

benchmarks/programs/culprits.py uses this module. Each command runs as a user types it,
in its own folder with a copy of the program. Only the JSON and the plan are read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common import usual_environment

#: Precisions from the cheapest to the costliest, by the bits that they multiply.
COST = ("fp8_e4m3 fp8_e5m2 bf16 f16 tf32 bf16x3 tf32x3 bf16x6 bf16x9 f32 none").split()
#: Every number of a program's output.
NUMBERS = r"regex:(?<![\w.])(-?\d+\.?\d*(?:e[-+]?\d+)?)"
#: A line that advice names: "kmeans.py:17 squared_distances".
NAMED = re.compile(r"(\S+\.py):(\d+)")
Lines = dict[int, str]  # the precision of each line's products


class Ran(NamedTuple):
    """The outcome of a command."""

    #: the content of the file that the command wrote; "" if it wrote none
    text: str
    #: standard output of the command and of the program
    printed: str
    #: the last line on standard error
    said: str


def run_command(program: Path, words: Sequence[str], written: str) -> Ran:
    """Run a command of tf32dtype on a copy of the program."""
    import tf32dtype as td

    root = str(Path(td.__file__).parents[1])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = usual_environment() | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(program, folder)
        done = subprocess.run(
            [sys.executable, "-m", "tf32dtype", *words, program.name],
            cwd=folder,
            env=environment | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        file = Path(folder, written)
        text = file.read_text() if file.exists() else ""
    return Ran(text, done.stdout, (done.stderr.strip().splitlines() or [""])[-1])


# -- tf32dtype report ----------------------------------------------------------------


def run_report(program: Path) -> dict[str, Any]:
    """Run `report`; return its advice for products and its verdict on the program."""
    words = ["report", "--quiet", "--json", "report.json"]
    ran = run_command(program, words, "report.json")
    if not ran.text:
        return {"says": "failed", "why": ran.said, "lines": {}}
    return read_report(json.loads(ran.text))


def read_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON's verdict on the program, and the lines that it advises."""
    trial = report["trial"]
    found = {"says": "no trial", "why": "", "change": None}
    if not report["call_sites"]:
        found["why"] = "no matrix multiplication was measured"
    elif trial and trial["why"]:
        found["why"] = trial["why"]
    elif trial:
        found["says"] = "safe" if trial["keeps_results"] else "changes"
        found["change"] = max(
            (float(x["largest"]) for x in trial["changes"]), default=None
        )
    return found | {"lines": advised(report["call_sites"])}


def advised(call_sites: Sequence[Mapping[str, Any]]) -> Lines:
    """Return the advised precision of each line: the costliest of its call sites.

    A line is left out if one of its call sites has no advised precision. The report's
    trial does not lower such a line either.
    """
    lines: Lines = {}
    for site in call_sites:
        if site["user"] is None:
            continue
        name = site["verdict"]["precision"]
        if name == "f32" and site["dtype"] not in ("float64", "complex128"):
            name = None
        line = site["user"]["line"]
        lines[line] = max(lines.get(line, COST[0]), name or "none", key=COST.index)
    return {line: name for line, name in lines.items() if name != "none"}


# -- tf32dtype report --arithmetic ---------------------------------------------------


def run_arithmetic(program: Path, double: bool) -> dict[str, Any]:
    """Run `report --arithmetic bf16`; return the blamed lines and all output."""
    words = ["report", "--arithmetic", "bf16", *["--float64"] * double]
    words += ["--quiet", "--json", "report.json"]
    ran = run_command(program, words, "report.json")
    if not ran.text:
        return {"by": "failed", "why": ran.said, "blamed": [], "printed": ran.printed}
    found = read_arithmetic(json.loads(ran.text), program.name)
    return found | {"printed": ran.printed}


def read_arithmetic(report: Mapping[str, Any], program: str) -> dict[str, Any]:
    """Return the lines that a report blames, in its order, and the kind of evidence.

    If the JSON has trials of single lines, the lines are ranked by their changes.
    Otherwise they come from the advice, in its order. `says` is the verdict on the
    program, or None.
    """
    arithmetic = report["arithmetic"]
    together = arithmetic.get("together")
    says = None
    if together and not together["why"]:
        says = "safe" if together["keeps_results"] else "changes"
    if trials := arithmetic.get("trials"):
        ranked = [x for x in trials if Path(x["file"]).name == program]
        ranked.sort(key=lambda x: -number(x["alone"]))
        blamed = [
            {"line": x["line"], "alone": x["alone"], "without": x["without"]}
            for x in ranked
        ]
        return {"by": "trials", "says": says, "blamed": blamed}
    if says == "safe":
        return {"by": "nothing", "says": says, "blamed": []}
    blamed, by = [], ""
    for advice in arithmetic["advice"]:
        for file, line in NAMED.findall(advice["text"]):
            if file == program and int(line) not in [x["line"] for x in blamed]:
                by = by or advice["kind"]
                blamed.append({"line": int(line), "kind": advice["kind"]})
    return {"by": by or "nothing", "says": says, "blamed": blamed}


def number(value: Any) -> float:
    """Convert a number of JSON: Inf and NaN are strings, None is a failure and Inf."""
    return float("inf") if value is None else float(value)


# -- tf32dtype tune ------------------------------------------------------------------


def run_tune(program: Path, double: bool, tolerance: float) -> dict[str, Any]:
    """Run `tune` on all printed numbers and return its plan."""
    words = ["tune", "--check", NUMBERS, "--tolerance", f"{tolerance:g}"]
    words += [*["--float64"] * double, "--quiet"]
    ran = run_command(program, words, "plan.toml")
    if not ran.text:
        return {"says": "no plan", "why": ran.said, "lines": {}}
    return read_plan(tomllib.loads(ran.text), program.read_text())


def read_plan(plan: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the plan's precision of each line ("none": unchanged), in its order."""
    lines: Lines = {}
    for site in plan["call_site"]:
        if (user := site.get("user")) is None:
            continue
        line = line_number(source, user)
        known = lines.get(line, COST[0])
        lines[line] = max(known, site["precision"], key=COST.index)
    check = plan["check"]
    return {"says": "safe", "change": check["distance"], "lines": lines}


def line_number(source: str, user: Mapping[str, Any]) -> int:
    """Return the number of the `count`-th line with the text of a plan's call site."""
    text, count = user["text"], user.get("count", 1)
    for number, line in enumerate(source.splitlines(), 1):
        count -= line.strip() == text
        if not count:
            return number
    raise ValueError(f"no line {text!r}")


def left_high(lines: Lines, cheapest: str = "bf16") -> list[int]:
    """Return the lines above the cheapest precision, those of the highest one first."""
    high = [line for line in lines if COST.index(lines[line]) > COST.index(cheapest)]
    return sorted(high, key=lambda line: -COST.index(lines[line]))
