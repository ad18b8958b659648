"""Write the figures of a benchmark's JSON into README.md, between its marks.

python benchmarks/readme.py [--json FILE] [--readme FILE] [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from report import table, worst

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- benchmark:begin -->", "<!-- benchmark:end -->"


def block(report: dict[str, Any]) -> str:
    """A Markdown table of the first result: the best instruction set."""
    result = report["results"][0]
    facts = result["machine"]
    count = {1: "one run", 3: "the worst of three runs"}
    runs = count.get(report["runs"], f"the worst of {report['runs']} runs")
    lines = [
        f"Measured on {facts['cpu']}, one core, {result['isa']}, NumPy "
        f"{facts['numpy']}, Python {facts['python']}, {facts['date']}; {runs}, the "
        "slowest operation and data of each row.",
        "",
        "| operation | measured | ml_dtypes |",
        "|---|---|---|",
    ]
    for name, _, _, ours, _, _, theirs, _ in table(result):
        unit = next(r["unit"] for r in result["rows"] if r["name"] == name)
        if unit == "x":
            unit = "x float32" + ("'s exp" if " exp" in name else "")
        peer = f"{theirs} {unit}" if theirs != "-" else "-"
        lines.append(f"| {name} | {ours} {unit} | {peer} |")
    others = [r for r in report["results"][1:] if worst(r["rows"][0], "ours")]
    if others:
        names = ", ".join(r["isa"] for r in others)
        lines += ["", f"Figures for {names} are in `benchmarks/results/`."]
    return "\n".join(lines)


def replaced(text: str, new: str) -> str:
    """`text` with `new` between the marks."""
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"no {BEGIN} ... {END} to fill")
    return f"{before}{BEGIN}\n{new}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = HERE / "results" / "elementwise.json"
    parser.add_argument("--json", type=Path, default=default)
    parser.add_argument("--readme", type=Path, default=HERE.parent / "README.md")
    parser.add_argument("--check", action="store_true", help="say if it would change")
    options = parser.parse_args()
    text = options.readme.read_text()
    new = replaced(text, block(json.loads(options.json.read_text())))
    if options.check:
        return int(new != text)
    options.readme.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
