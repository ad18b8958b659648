"""Plant as many faults as requested, and count those that tests find."""

import argparse
import collections
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from . import __doc__ as about_all
from .bench import ROOT, Bench, git
from .faults import C_SUBJECTS, Fault, draws, sources


def described(row: dict[str, Any]) -> str:
    seconds = (f"{key} {row[key]:.0f}" for key in row if key.endswith(" seconds"))
    return (
        f"{row['path']}:{row['line']}  {row['before']} -> {row['after']}"
        f"  ({', '.join(seconds)}) {row['test']}"
    )


def summary(rows: list[dict[str, Any]]) -> str:
    count = collections.Counter(row["outcome"] for row in rows)
    reduced, caught = count["reduced"], count["reduced"] + count["former"]
    share = f"{100 * reduced / caught:.1f} %" if caught else "none"
    return (
        f"planted {len(rows)}, caught by the former tier {caught}, of these by the"
        f" reduced tier {reduced}: {share}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(about_all or "").partition("\n")[0])
    add = parser.add_argument
    add("--former", metavar="REVISION", help="compare with the tests of REVISION")
    add("--count", type=int, default=200, help="plant N faults (default: 200)")
    add("--seed", type=int, default=1, help="seed the choice of faults (default: 1)")
    add(
        "--subjects",
        nargs="+",
        help=f"choose from {', '.join(C_SUBJECTS)}, Cython, Python (default: all)",
    )
    add(
        "--tests",
        nargs="+",
        default=[],
        metavar="PATH",
        help="run only these tests (default: all)",
    )
    add(
        "--work",
        type=Path,
        default=ROOT / "build/mutants",
        help="build in this folder (default: build/mutants)",
    )
    options = parser.parse_args()
    folder = options.work.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # An exit, unlike the signal, also ends the commands that this program started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    # A fault may allocate without limit.
    resource.setrlimit(resource.RLIMIT_DATA, (half, half))
    former = options.former
    if former:
        former = git("rev-parse", "--verify", f"{former}^{{commit}}").decode().strip()

    results = folder / "results.json"
    about = {"former": former, "seed": options.seed, "tests": options.tests}
    kept: dict[str, Any] = {"about": about, "usual": {}, "faults": []}
    if results.exists():
        kept = json.loads(results.read_text())
        if kept["about"] != about:
            raise SystemExit(f"{results} is from another run: {kept['about']}")

    def keep() -> None:
        results.with_suffix(".new").write_text(json.dumps(kept, indent=1) + "\n")
        results.with_suffix(".new").replace(results)

    bench = Bench(folder, former, options.tests)
    bench.usual = kept["usual"]
    for tier in bench.tiers:
        if tier not in bench.usual:
            bench.learn(tier)
            keep()
        seconds, failed = bench.usual[tier]["seconds"], bench.usual[tier]["failed"]
        left_out = f"{len(failed)} tests fail without a fault and are left out"
        print(f"{tier} tier: {seconds:.0f} s; {left_out}")

    known = {Fault(*map(row.get, Fault._fields)): row for row in kept["faults"]}
    names = sources(bench.clean)
    streams = {
        subject: draws(bench.clean, names[subject], f"{options.seed} {subject}")
        for subject in options.subjects or names
    }
    planted: list[dict[str, Any]] = []
    while len(planted) < options.count and streams:
        for subject in [*streams][: options.count - len(planted)]:
            for fault in streams[subject]:
                is_new = fault not in known
                row = known[fault] if not is_new else bench.result(fault)
                is_planted = row["outcome"] in ("reduced", "former", "none")
                if is_planted:
                    planted.append(row)
                if is_new:
                    kept["faults"].append({"subject": subject, **row})
                    keep()
                    print(f"{row['outcome']}: {described(row)}")
                    print(f"    {summary(planted)}", flush=True)
                if is_planted:
                    break
            else:
                del streams[subject]

    print(summary(planted))
    for row in planted:
        if row["outcome"] == "former":
            print(f"lost: {described(row)}")
