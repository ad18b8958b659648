"""Time correctly rounded products and sums against NumPy's.

    python benchmarks/matmul/exact_products.py [--only PATTERN] [--runs 3]
                                               [--threads N] [--json FILE]

Each case is a ratio: the time of `td.matmul(a, b, precision="exact")` over that of
NumPy's product of the same matrices in float32 (SGEMM), or in float64 (DGEMM) for
float64 operands. `td.exact_sum` is compared with `np.sum`. Times are minima of repeats
in turns, and the worst of all runs counts. They are times of the CPU with one thread,
and of the clock with more. Then a column has the time with one thread over that with
all, the best of all runs, for which threadpoolctl is needed. The last column counts the
float64 products, and the results of later stages: see tf32dtype/_exact/stages.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import machine, pin, restart_as_usual

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]


class Case(NamedTuple):
    """Operands, NumPy's call and ours, and the largest ratio that is accepted."""

    name: str
    numpy: Call
    ours: Call
    limit: float
    repeats: int


def normal(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    a, b = rng.standard_normal((2, n, n))
    return a, b


def canceling(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return A1 B1 - A1 B1 (1 + 2^-12 z) as one product, joined along k."""
    a, b = (x.astype(np.float32) for x in normal(rng, n))
    half = n // 2
    a, b = a[:, :half], b[:half]
    noise = rng.standard_normal(b.shape).astype(np.float32)
    near = b * (1 + np.float32(2.0**-12) * noise)
    return np.hstack([a, -a]), np.vstack([b, near])


def wide(rng: np.random.Generator, n: int, binades: int) -> tuple[Array, Array]:
    """Return numbers whose exponents are spread over so many binades."""
    half = binades // 2
    a, b = (np.ldexp(x, rng.integers(-half, half, x.shape)) for x in normal(rng, n))
    return a, b


def cases() -> Iterator[Case]:
    import tf32dtype as td

    def product(
        name: str, a: Array, b: Array, limit: float, plain: Any = None, **keywords: Any
    ) -> Case:
        n = len(a)
        x, y = (a, b) if plain is None else plain
        return Case(
            f"{name}, {n}",
            lambda: x @ y,
            lambda: td.matmul(a, b, precision="exact", **keywords),
            limit,
            max(3, min(40, int(3e9 / n**3))),
        )

    rng = np.random.default_rng(0)
    for n in (256, 512, 1024, 2048):
        a, b = (x.astype(np.float32) for x in normal(rng, n))
        yield product("float32 N(0, 1)", a, b, 3)
        for name in ("bfloat16", "float8_e4m3fn"):
            form = td.formats[name].dtype
            yield product(
                f"{name} to float32",
                a.astype(form),
                b.astype(form),
                2.5,
                (a, b),
                dtype=np.float32,
            )
    for n in (256, 512, 1024, 2048):
        yield product("float64 N(0, 1)", *normal(rng, n), 15)
        yield product("float32 canceling 2^-12", *canceling(rng, n), 40)
    yield product(
        "float32 60 binades",
        *(x.astype(np.float32) for x in wide(rng, 512, 60)),
        np.inf,
    )
    yield product("float64 60 binades", *wide(rng, 512, 60), np.inf)
    yield product("float64 2000 binades", *wide(rng, 256, 2000), np.inf)
    for dtype in (np.float32, np.float64):
        x = rng.standard_normal(10**6).astype(dtype)
        yield Case(
            f"sum of {np.dtype(dtype)} N(0, 1), 1000000",
            x.sum,
            lambda x=x: td.exact_sum(x),  # type: ignore[misc]
            np.inf,
            40,
        )
    rows = rng.standard_normal((10**5, 20))
    yield Case(
        "100000 sums of 20 float64 N(0, 1)",
        lambda: rows.sum(1),
        lambda: td.exact_sum(rows, 1),
        np.inf,
        40,
    )


def least_times(case: Case, threads: int) -> tuple[float, float, float]:
    """Return the smallest seconds of NumPy's call and of ours; they take turns.

    The last of three is that of our call with one thread. With more threads, all
    repeats of a call follow each other, since the threads of another call spin for a
    while.
    """
    clock = time.thread_time if threads == 1 else time.perf_counter
    turns, together = (case.repeats, 1) if threads == 1 else (1, case.repeats)
    found = [np.inf, np.inf, np.inf]
    for _ in range(turns):
        for i, call in enumerate((case.numpy, case.ours, case.ours)[: 1 + threads]):
            if threads > 1:
                time.sleep(0.5)
            with one_thread() if i == 2 else nullcontext():
                for _ in range(together):
                    start = clock()
                    call()
                    found[i] = min(found[i], clock() - start)
    return found[0], found[1], found[2] if threads > 1 else found[1]


def one_thread() -> AbstractContextManager[Any]:
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


class Stages:
    """Count the results that each stage receives."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def of(self, call: Call) -> dict[str, int]:
        """Return the products, and the results by dot products and by exact sums."""
        from types import SimpleNamespace

        from tf32dtype import _core
        from tf32dtype._exact import stages

        names = [name for name in dir(_core) if not name.startswith("__")]
        counting = SimpleNamespace(**{name: getattr(_core, name) for name in names})
        for name, counts in (
            ("float64_matmul", lambda _, *__: {"products": 1}),
            ("exact_round", lambda _, *x: {"products": int(isinstance(x[0], tuple))}),
            (
                "exact_elements",
                lambda sums, *x: {"dot products": len(x[3]), "exact sums": sums},
            ),
        ):
            setattr(counting, name, self._counted(getattr(_core, name), counts))
        own = stages._core
        stages._core = counting  # type: ignore[assignment]
        self.counts.clear()
        try:
            call()
        finally:
            stages._core = own
        return {name: count for name, count in self.counts.items() if count}

    def _counted(self, own: Call, counts: Callable[..., dict[str, int]]) -> Call:
        def counted(*arguments: Any) -> Any:
            result = own(*arguments)
            self.counts.update(counts(result, *arguments))
            return result

        return counted


def block(report: dict[str, Any]) -> str:
    """Return a Markdown table of the ratios by size."""
    facts, threads = report["machine"], report["threads"]
    rows: dict[str, dict[int, float]] = {}
    for row in report["cases"]:
        name, _, n = row["case"].rpartition(", ")
        if "limit" in row:
            rows.setdefault(name, {})[int(n)] = row["ratio"]
    sizes = sorted({n for ratios in rows.values() for n in ratios})
    lines = [
        f"Measured on {facts['cpu']}, {threads} thread{'s' * (threads > 1)}, NumPy"
        f" {facts['numpy']}, Python {facts['python']}, {facts['date']}. Times relative"
        " to NumPy's product of such matrices in float32, or in float64 for float64"
        " operands; lower is better.",
        "",
        f"| operands | {' | '.join(f'n = {n}' for n in sizes)} |",
        f"|---|{'---|' * len(sizes)}",
    ]
    for name, ratios in rows.items():
        cells = (f"{ratios[n]:.3g}" for n in sizes)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="measure the cases that match")
    parser.add_argument("--runs", type=int, default=1, help="measure so often")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
    parser.add_argument("--json", help="write the ratios here")
    options = parser.parse_args()
    threads = options.threads
    restart_as_usual(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    if threads == 1:
        pin()
    rows = []
    last = f"{'threads':>8}" if threads > 1 else ""
    print(f"{'':34}{'NumPy':>11}{'exact':>11}{'ratio':>8}{'limit':>7}{last}")
    with np.errstate(all="ignore"):
        for case in cases():
            if not re.search(options.only, case.name):
                continue
            stages = Stages().of(case.ours)
            runs = [least_times(case, threads) for _ in range(options.runs)]
            plain, ours, _ = max(runs, key=lambda run: run[1] / run[0])
            faster = max(alone / every for _, every, alone in runs)
            row = {
                "case": case.name,
                "numpy_ms": 1e3 * plain,
                "exact_ms": 1e3 * ours,
                "ratio": ours / plain,
                "stages": stages,
            }
            if np.isfinite(case.limit):
                row["limit"] = case.limit
            if threads > 1:
                row["one_thread_over_all"] = faster
            rows.append(row)
            limit = f"{case.limit:7.1f}" if "limit" in row else " " * 7
            share = f"{faster:8.2f}" if threads > 1 else ""
            print(
                f"{case.name:34}{1e3 * plain:8.2f} ms{1e3 * ours:8.2f} ms"
                f"{ours / plain:8.2f}{limit}{share}  {stages}",
                flush=True,
            )
    if options.json:
        report = {"machine": machine(), "threads": threads, "cases": rows}
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
