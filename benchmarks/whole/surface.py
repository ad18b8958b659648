"""Time every call of NumPy on every format relative to float32 and to ml_dtypes.

    python benchmarks/whole/surface.py [--quick] [--only PATTERN] [--runs 3]
                                       [--json FILE]

A case is a call, a variant (layout, elements, data) and a format. Its figure is the
time over that of the same call on float32: medians on one thread, in turns. If
ml_dtypes has the call, cases of up to 1 Mi elements are also compared with it.
surface_limits.py has the limits of each kind of call. The script prints the cases above
their limit, the worst first, and summaries by kind and by format. The worst of several
runs counts. `--quick` takes four formats, two variants of each call, and 256 Ki instead
of 1 Mi elements. `--only` takes the cases that match a regular expression, and `--list`
prints them. `--cases FILE` repeats the cases of a JSON that are above their limit or
slower than ml_dtypes.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import HASWELL, machine, peer_type, pin
from measuring import run_child
from surface_calls import Call, every_call
from surface_limits import PEER, limit
from surface_operands import MEBI, SINGLE, Operands, Variant
from surface_report import measured_cells, show

Case = tuple[Call, Variant, str]
QUICK_FORMATS = ("tf32", "bfloat16", "float8_e4m3fn", "float4_e2m1fn")
QUICK_SIZE = 1 << 18  # instead of 1 Mi
TURNS, FEW_TURNS = 15, 3  # turns of a case; few if it is NEAR times below its limits
SECONDS, QUICK_SECONDS = 0.03, 0.005  # seconds after which few turns are enough, too
NEAR, FAR = 1.4, 10  # ratios to a limit; two turns are enough if a case is FAR above it
LONG, ENDLESS = 0.05, 1  # seconds from which a call is sampled once, or not at all
NOT_THEIRS = "nan"  # ml_dtypes' types do not skip NaN in functions with this prefix
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: Limits tf32dtype, OpenBLAS and NumPy to AVX2.
AVX2 = HASWELL | {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}


def case_name(case: Case) -> str:
    call, variant, name = case
    return f"{call.name}, {variant.name}, {name}"


def cases(quick: bool, pattern: str) -> Iterator[Case]:
    """Yield all cases that match, or with `quick` two variants of each call.

    The second of the two variants changes from call to call.
    """
    import tf32dtype as td

    matches = re.compile(pattern).search
    formats = QUICK_FORMATS if quick else tuple(td.formats)
    for i, call in enumerate(every_call()):
        chosen = call.variants
        if quick:
            modest = [v for v in chosen if v.size <= MEBI]
            first = [v for v in modest if v.size == MEBI][:1] or modest[:1]
            chosen = tuple(dict.fromkeys([*first, modest[i % len(modest)]]))
            if call.sized:
                chosen = tuple(replace(v, size=min(v.size, QUICK_SIZE)) for v in chosen)
        for variant in chosen:
            for name in formats:
                found = call, variant, name
                if call.formats(name) and matches(case_name(found)):
                    yield found


# -- times -------------------------------------------------------------------------


def sampled(function: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


@dataclass
class Timed:
    """A function and its seconds per call. A sample is as many calls as take 100 us.

    The first call may fill caches. It counts only if no sample is taken.
    """

    function: Callable[[], Any]
    first: float
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples) if self.samples else self.first

    def sample(self) -> None:
        if self.first > ENDLESS or (self.samples and self.median > LONG):
            return
        calls = max(1, int(1e-4 / max(self.median, 1e-7)))
        self.samples.append(sampled(self.function, calls))


def built(call: Call, side: Operands) -> Timed | None:
    """Return the function to time, called once, or None if the type lacks it."""
    try:
        function = call.build(side)
        return Timed(function, sampled(function, 1))
    except (TypeError, ValueError, IndexError, NotImplementedError):
        return None


def measured(
    case: Case, single: Timed, budget: float
) -> tuple[float, float | None] | None:
    """Return the case's time over float32's, and over ml_dtypes' if it has the call."""
    call, variant, name = case
    ours = built(call, Operands(name, variant))
    if ours is None:
        return None
    peer = None
    known = peer_type(name) is not None and not call.name.startswith(NOT_THEIRS)
    if known and variant.size <= MEBI:
        peer = built(call, Operands(name, variant, theirs=True))
    most = limit(call.kind(variant), variant.size, name)
    start = time.perf_counter()
    single.samples = []  # drop the samples of other formats
    for turn in range(TURNS):
        single.sample()
        ours.sample()
        if peer and peer.median < FAR / 2 * ours.median:
            peer.sample()
        ratio = ours.median / single.median
        over = ours.median / peer.median if peer else None
        well = NEAR * ratio < most and (over is None or NEAR * over < PEER)
        late = time.perf_counter() - start > budget
        far = min(ours.samples, default=ours.first) > FAR * most * single.median
        if (turn >= 1 and far) or (turn + 1 >= FEW_TURNS and (late or well)):
            break
    return ratio, over


class Progress:
    """Print progress on stderr: the cases done, the seconds left, and the case."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.last = 0.0

    def __call__(self, case: Case) -> None:
        self.done += 1
        passed = time.monotonic() - self.start
        often = 0.2 if sys.stderr.isatty() else 15
        if passed - self.last < often and self.done < self.total:
            return
        self.last = passed
        left = passed / self.done * (self.total - self.done)
        text = f"{self.done}/{self.total}, {left:.0f} s left: {case_name(case)}"
        ends = ("\r", "") if sys.stderr.isatty() else ("", "\n")
        print(ends[0] + text[:78].ljust(78), end=ends[1], file=sys.stderr, flush=True)


def measure(chosen: list[Case], formats: list[str], budget: float) -> dict[str, Any]:
    """Return {call: {variant: row}}; a row's lists are in the order of the formats.

    A row has its "kind" and "size", "microseconds" of float32 (with the values of the
    last format for random codes), the times "over float32" and "over ml_dtypes" (null
    if not measured) and, under "not", the formats that lack the call.
    """
    found: dict[str, Any] = {}
    progress = Progress(len(chosen))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for (call, variant), group in groupby(chosen, key=lambda case: case[:2]):
            single = built(call, Operands(SINGLE, variant))
            ratios: dict[str, tuple[float, float | None] | None] = {}
            for case in group:
                progress(case)
                if single and variant.data == "codes":
                    single = built(call, Operands(SINGLE, variant, beside=case[2]))
                if single:
                    ratios[case[2]] = measured(case, single, budget)
            if not single:
                continue
            pairs = [ratios.get(name) or (None, None) for name in formats]
            row = {
                "kind": call.kind(variant),
                "size": variant.size,
                "microseconds": rounded(1e6 * single.median),
                "over float32": [rounded(pair[0]) for pair in pairs],
                "over ml_dtypes": [rounded(pair[1]) for pair in pairs],
                "not": [name for name, pair in ratios.items() if pair is None],
            }
            row = {name: value for name, value in row.items() if value != []}
            found.setdefault(call.name, {})[variant.name] = row
    return found


def rounded(x: float | None) -> float | None:
    """Round to three digits; further digits are noise."""
    return None if x is None else float(f"{x:.3g}")


def merge(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first run with the worst figures of all runs of the same cases."""
    merged = runs[0]["rows"]
    for run in runs[1:]:
        for call, rows in run["rows"].items():
            for variant, row in rows.items():
                mine = merged[call][variant]
                for over in ("over float32", "over ml_dtypes"):
                    pairs = zip(mine[over], row[over], strict=True)
                    mine[over] = [max(pair) if all(pair) else None for pair in pairs]
    return {**runs[0], "rows": merged}


# -- the command -------------------------------------------------------------------


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="measure a few cases of each call"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="measure cases that match (default: all)",
    )
    parser.add_argument(
        "--list", action="store_true", help="print the names of the cases"
    )
    parser.add_argument(
        "--cases",
        type=Path,
        metavar="FILE",
        help="measure only the cases that are above their limit in FILE",
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="use the worst of N runs (default: 1)"
    )
    parser.add_argument(
        "--worst", type=int, default=60, help="print N cases (default: 60)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all results to this file"
    )
    parser.add_argument(
        "--avx2",
        action="store_true",
        help="compare the AVX2 kernels of all, on a processor with AVX-512",
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def chosen_cells(options: argparse.Namespace) -> list[Case]:
    found = list(cases(options.quick, options.only))
    if options.cases:
        report = json.loads(options.cases.read_text())
        above = {c.name for c in measured_cells(report) if c.above or c.behind}
        found = [case for case in found if case_name(case) in above]
    return found


def main() -> int:
    import tf32dtype as td

    options = arguments().parse_args()
    if options.list:
        print("\n".join(map(case_name, chosen_cells(options))))
        return 0
    if options.child:
        pin()
        budget = QUICK_SECONDS if options.quick else SECONDS
        formats = list(td.formats)
        rows = measure(chosen_cells(options), formats, budget)
        facts = {"machine": machine(), "isa": td.isa(), "formats": formats}
        json.dump({**facts, "rows": rows}, sys.stdout)
        return 0
    passed = ["--only", options.only, *(["--quick"] if options.quick else [])]
    if options.cases:
        passed += ["--cases", str(options.cases)]
    started = time.monotonic()
    variables = ALONE | (AVX2 if options.avx2 else {})
    runs = [run_child(__file__, passed, variables) for _ in range(options.runs)]
    report = merge(runs) | {"runs": options.runs, "quick": options.quick}
    report["avx2"] = options.avx2
    print(show(report, options.worst))
    print(f"{options.runs} run(s), {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(written(report))
    return 0


def written(report: dict[str, Any]) -> str:
    """Format the report as JSON with one line per variant."""
    lines = [
        f'"{name}": {json.dumps(report[name])},' for name in report if name != "rows"
    ]
    calls = []
    for call, rows in report["rows"].items():
        variants = [
            f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()
        ]
        calls.append(f"{json.dumps(call)}: {{\n" + ",\n".join(variants) + "\n}")
    return "\n".join(["{", *lines, '"rows": {', ",\n".join(calls), "}}", ""])


if __name__ == "__main__":
    sys.exit(main())
