"""Solve linear systems in low precision, and count the steps of refinement.

    python benchmarks/programs/linear_systems.py [--n 512] [--json FILE]

The singular values of the matrices go from 1 to 1 / condition in equal ratios, between
random orthogonal matrices. The right sides are normal random numbers. All numbers are
float64, and the blocks have 64 columns.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import machine

import tf32dtype as td

CONDITIONS = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12)
PRECISIONS = ("f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2")
REFINEMENTS = {"classical": "Classical refinement", "gmres": "Refinement by GMRES"}


def system(n: int, condition: float) -> tuple[Any, Any]:
    """Return a matrix of a condition number, and a right side."""
    rng = np.random.default_rng(0)
    one, other = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return (one * np.geomspace(1, 1 / condition, n)) @ other, rng.standard_normal(n)


def measure(n: int) -> dict[str, Any]:
    """Return the figures of all systems, precisions and refinements."""
    rows = []
    for condition in CONDITIONS:
        a, b = system(n, condition)
        for refinement in REFINEMENTS:
            for precision in PRECISIONS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    found = td.linalg.solve(
                        a, b, precision=precision, refinement=refinement
                    )
                row = {
                    "condition": condition,
                    "refinement": refinement,
                    "precision": precision,
                    "iterations": int(found.iterations),
                    "backward error": float(found.backward_error),
                    "componentwise error": float(found.componentwise_error),
                    "converged": bool(found.converged),
                }
                print(*row.values())
                rows.append(row)
    return {"machine": machine(), "n": n, "rows": rows}


def block(report: dict[str, Any]) -> str:
    """Return the tables of both refinements."""
    facts, rows = report["machine"], report["rows"]
    errors = [row["backward error"] for row in rows if row["converged"]]
    lines = [
        f"Computed by `python benchmarks/programs/linear_systems.py` on {facts['cpu']},"
        f" {facts['date']}, for n = {report['n']} in float64. The figures are the"
        " solutions with the factors, lower is better. If refinement did not converge,"
        " the cell has the normwise backward error instead. The others are at most"
        f" {max(errors):.1e}.",
    ]
    for refinement, title in REFINEMENTS.items():
        lines += ["", f"{title}:", ""]
        lines.append(f"| condition | {' | '.join(f'`{x}`' for x in PRECISIONS)} |")
        lines.append(f"|---|{'---|' * len(PRECISIONS)}")
        for condition in CONDITIONS:
            of_line = {
                row["precision"]: row
                for row in rows
                if (row["condition"], row["refinement"]) == (condition, refinement)
            }
            cells = [cell(of_line[x]) for x in PRECISIONS]
            lines.append(f"| 1e{np.log10(condition):.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(row: dict[str, Any]) -> str:
    if row["converged"]:
        return str(row["iterations"])
    return f"no: {row['backward error']:.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=512, help="rows of the matrices")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    report = measure(options.n)
    print(block(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
