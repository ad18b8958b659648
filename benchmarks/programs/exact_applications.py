"""Compare float32 and correctly rounded sums in three algorithms.

    python benchmarks/programs/exact_applications.py [--quick] [--json FILE]

- The sum of 10^8 random numbers, in several divisions into parts.
- Conjugate gradients for a badly conditioned system.
- Gram-Schmidt orthogonalization of nearly dependent vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tf32dtype as td

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import machine

Array = NDArray[np.float32]
Product = Callable[[Array, Array], Any]

#: The parts that the numbers are divided into: as by so many threads or processes.
PARTS = (1, 2, 8, 64)


def float32(a: Array, b: Array) -> Any:
    """Return NumPy's product."""
    return a @ b


def exact(a: Array, b: Array) -> Any:
    """Return the correctly rounded product."""
    return td.matmul(a, b, precision="exact")


PRODUCTS: dict[str, Product] = {"float32": float32, "exact": exact}


def sums(count: int) -> dict[str, Any]:
    """Return the sums of normally distributed numbers in parts."""
    x = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
    best = td.exact_sum(x)
    step = float(np.spacing(best))
    rows: dict[str, list[float]] = {"float32": [], "exact": []}
    for parts in PARTS:
        pieces = np.array_split(x, parts)
        total = np.float32(0)
        for piece in pieces:
            total += np.sum(piece)
        rows["float32"].append((float(total) - float(best)) / step)
        # Parts can be added in float64 too, but only whole exact sums are independent.
        whole = td.exact_sum(np.concatenate(pieces[::-1]))
        rows["exact"].append((float(whole) - float(best)) / step)
    chain = np.float32(0)
    for start in range(0, count, 1 << 20):  # one number after the other
        piece = x[start : start + (1 << 20)]
        chain = np.add.accumulate(np.concatenate([[chain], piece]))[-1]
    return {
        "count": count,
        "steps": rows,
        "chain": (float(chain) - float(best)) / step,
        "seconds": {
            "float32": best_time(lambda: np.sum(x)),
            "exact": best_time(lambda: td.exact_sum(x)),
        },
    }


def best_time(function: Callable[[], Any]) -> float:
    """Return the least time of three calls."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def system(size: int, condition: float) -> tuple[Array, Array, NDArray[np.float64]]:
    """Return a symmetric positive definite matrix, a right side, and the solution."""
    rng = np.random.default_rng(1)
    q, _ = np.linalg.qr(rng.standard_normal((size, size)))
    values = np.geomspace(1, 1 / condition, size)
    a = ((q * values) @ q.T).astype(np.float32)
    a = (a + a.T) / 2
    b = rng.standard_normal(size).astype(np.float32)
    return a, b, np.linalg.solve(a.astype(np.float64), b.astype(np.float64))


def conjugate_gradients(size: int, condition: float, most: int) -> dict[str, Any]:
    """Return iterations and the smallest error that is reached."""
    a, b, solution = system(size, condition)
    norm = np.linalg.norm(solution)
    rows = {}
    for name, dot in PRODUCTS.items():
        x = np.zeros_like(b)
        r = b.copy()
        p = r.copy()
        rr = dot(r, r)
        smallest, when, reached = math.inf, 0, None
        for iteration in range(1, most + 1):
            ap = dot(a, p)
            alpha = np.float32(rr / dot(p, ap))
            x = x + alpha * p
            r = r - alpha * ap
            error = float(np.linalg.norm(x - solution) / norm)
            if error < smallest:
                smallest, when = error, iteration
            if reached is None and error < 0.01:
                reached = iteration
            new = dot(r, r)
            if new == 0:
                break
            p = r + np.float32(new / rr) * p
            rr = new
        rows[name] = {"error": smallest, "iteration": when, "percent": reached}
    return {"size": size, "condition": condition, "rows": rows}


def gram_schmidt(rows: int, columns: int, condition: float) -> dict[str, Any]:
    """Return the loss of orthogonality, the largest element of I - Q' Q."""
    rng = np.random.default_rng(2)
    left, _ = np.linalg.qr(rng.standard_normal((rows, columns)))
    right, _ = np.linalg.qr(rng.standard_normal((columns, columns)))
    values = np.geomspace(1, 1 / condition, columns)
    a = ((left * values) @ right).astype(np.float32)
    found = {}
    for name, dot in PRODUCTS.items():
        for kind in ("classical", "modified"):
            q = np.empty_like(a)
            for j in range(columns):
                v = a[:, j].copy()
                if kind == "classical":
                    v -= dot(q[:, :j], dot(q[:, :j].T, v))
                else:
                    for i in range(j):
                        v -= dot(q[:, i], v) * q[:, i]
                q[:, j] = v / np.sqrt(dot(v, v))
            found[f"{kind}, {name}"] = loss_of(q)
    found["Householder, float64"] = loss_of(np.linalg.qr(a)[0])
    return {"shape": [rows, columns], "condition": condition, "loss": found}


def loss_of(q: Array) -> float:
    """Return the largest element of I - Q' Q in float64."""
    wide = q.astype(np.float64)
    return float(np.abs(np.eye(q.shape[1]) - wide.T @ wide).max())


def block(report: dict[str, Any]) -> str:
    """Return the three tables."""
    facts, total = report["machine"], report["sums"]
    ratio = total["seconds"]["exact"] / total["seconds"]["float32"]
    cells = [
        " | ".join(f"{x + 0.0:+.0f}" for x in total["steps"][name]) for name in PRODUCTS
    ]
    lines = [
        "Computed by `python benchmarks/programs/exact_applications.py` on"
        f" {facts['cpu']}, {facts['date']}.",
        "",
        f"Sums of {total['count']:,} random numbers, in steps of float32 away"
        " from the exact sum. `exact_sum` takes"
        f" {ratio:.1f} times as long as `np.sum`. One number after the other in float32"
        f" gives {total['chain']:+,.0f} steps.",
        "",
        f"| sum | {' | '.join(f'{n} parts' for n in PARTS)} |",
        f"|---|{'---|' * len(PARTS)}",
        f"| `np.sum` of each part, then of the parts | {cells[0]} |",
        f"| `td.exact_sum` of all numbers, parts in reverse order | {cells[1]} |",
        "",
        "Conjugate gradients in float32: the smallest relative error of the solution.",
        "",
        "| condition | products | smallest error | in iteration | error below 1 % in"
        " iteration |",
        "|---|---|---|---|---|",
    ]
    for one in report["gradients"]:
        for name, row in one["rows"].items():
            lines.append(
                f"| {one['condition']:.0e} | {name} | {row['error']:.1e} |"
                f" {row['iteration']} | {row['percent'] or 'never'} |"
            )
    lines += [
        "",
        "Gram-Schmidt orthogonalization in float32: the largest element of I - Q'Q.",
        "",
    ]
    names = [*report["gram_schmidt"][0]["loss"]]
    lines += [f"| condition | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for one in report["gram_schmidt"]:
        losses = " | ".join(f"{one['loss'][name]:.0e}" for name in names)
        lines.append(f"| {one['condition']:.0e} | {losses} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="compute small cases")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    small = options.quick
    report = {
        "machine": machine(),
        "sums": sums(10**5 if small else 10**8),
        "gradients": [
            conjugate_gradients(*case)
            for case in (
                [(32, 1e3, 50)] if small else [(200, 1e3, 400), (200, 1e6, 2000)]
            )
        ],
        "gram_schmidt": [
            gram_schmidt(200, 20 if small else 60, condition)
            for condition in (1e2, 1e4, 1e6)
        ],
    }
    print(block(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
