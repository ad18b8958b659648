"""Count the instructions per element of element-wise loops, on arm64 and on x86-64.

    python benchmarks/ufuncs/instructions.py [--only WORD] [--json FILE]

No such processor is needed: QEMU emulates Linux programs. instructions/kernels.c calls
the loops of src/ without Python, and instructions/count.c, a plugin of QEMU, counts.
Needs Debian's packages qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
Takes half a minute after the first time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path("benchmarks/ufuncs/instructions")  # in ROOT, as all sources
BUILD = ROOT / "build" / "instructions"


class Target(NamedTuple):
    """An instruction set, and the programs that compile for it and run it."""

    compiler: str
    emulator: str
    cpu: str  # of the emulator; the C library also chooses its functions by it
    isa: str  # the name that src/ gives to the set
    built: tuple[str, ...]  # the identifiers of sets that the program has


ARM64, X86 = "aarch64-linux-gnu-gcc", "gcc"
SETS = ("baseline", "x86_64_v3")
TARGETS = {
    "arm64": Target(ARM64, "qemu-aarch64", "cortex-a76", "baseline", ("baseline",)),
    "x86-64-v3": Target(X86, "qemu-x86_64", "Haswell", "x86-64-v3", SETS),
    "x86-64": Target(X86, "qemu-x86_64", "qemu64", "baseline", SETS),
}

#: The loops that the documents show: a part of those in the JSON file.
SHOWN = [
    *(
        "float32 to tf32, cast",
        "float32 to bfloat16, cast",
        "bfloat16 to float32, cast",
    ),
    *("float32 to float8_e4m3fn, cast", "float8_e4m3fn to float32, cast"),
    *("float8_e5m2 to float32, cast", "float8_e4m3fnuz to float32, cast"),
    *("float6_e2m3fn to float32, cast", "float4_e2m1fn to float32, cast"),
    *("float8_e5m2 to float8_e4m3fn, cast", "float8_e4m3fn to bfloat16, cast"),
    *("tf32, add", "tf32, divide", "tf32, exp", "tf32, arctan2"),
    *("bfloat16, add", "bfloat16, multiply", "bfloat16, divide", "bfloat16, less"),
    *("bfloat16, maximum", "bfloat16, sqrt", "bfloat16, square", "bfloat16, exp"),
    *("bfloat16, log", "bfloat16, tanh", "bfloat16, arctan", "bfloat16, power"),
    *("float8_e4m3fn, add", "float8_e4m3fn, less", "float8_e4m3fn, maximum"),
    *("float8_e4m3fn, exp", "float6_e2m3fn, add", "float4_e2m1fn, add"),
    *("bfloat16, sum", "bfloat16, max", "bfloat16, argmax", "float8_e4m3fn, sum"),
    *("bfloat16, sort", "bfloat16, dot", "float8_e4m3fn, dot", "bfloat16, matmul"),
    *("mxfp8_e4m3, quantize", "mxfp8_e4m3, dequantize"),
    *("nvfp4, quantize", "nvfp4, dequantize"),
]


def run(command: list[str]) -> str:
    """Run a command and return its output, both streams."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}\n{done.stderr}")
    return done.stdout + done.stderr


def build(target: Target) -> Path:
    """Build the program, with the same flags as wheels.

    For x86-64, wheels have small code in kernels of the baseline, as better sets
    replace them.
    """
    import setup  # which needs setuptools; the documents do not

    def compiled(label: str, source: Path, flags: list[str]) -> str:
        flags = [*setup.COMMON, *flags]
        room = f"{label}-{setup.fingerprint(target.compiler, flags)}"
        object = BUILD / room / source.with_suffix(".o")
        depfile = object.with_suffix(".d")
        if not setup.is_current(object, depfile):
            object.parent.mkdir(parents=True, exist_ok=True)
            command = [target.compiler, *flags, "-Isrc", "-MMD", "-MF", str(depfile)]
            run([*command, "-c", str(source), "-o", str(object)])
        return str(object)

    jobs: list[tuple[str, Path, list[str]]] = []
    sets = [x for x in (setup.BASELINE, *setup.X86_64) if x.identifier in target.built]
    for isa in sets:
        flags = [
            f"-DTF_ISA={isa.identifier}",
            f"-DTF_PLAIN_ISA={isa.plain}",
            *isa.flags,
        ]
        is_rare = isa is not sets[-1]
        for source in setup.sources_in("src", kernels=True):
            small = is_rare and source.parent.name == "plain"
            optimize = setup.COMPACT if small else setup.OPTIMIZE
            jobs.append((isa.identifier, source, [*flags, *optimize]))
    flags = [*setup.OPTIMIZE, *(f"-DTF_HAVE_{x.identifier.upper()}" for x in sets)]
    for source in setup.sources_in("src", kernels=False):
        if "programs" not in source.parts:
            jobs.append(("common", source, flags))
    jobs.append(("common", PROGRAM / "kernels.c", flags))
    with ThreadPoolExecutor(setup.cpu_count()) as pool:
        objects = list(pool.map(lambda job: compiled(*job), jobs))
    program = BUILD / f"kernels-{target.compiler}"
    run([target.compiler, "-static", *objects, "-lm", "-o", str(program)])
    return program


def count(target: Target, plugin: Path) -> dict[str, float]:
    """Return the instructions per element of each loop."""
    command = [target.emulator, "-cpu", target.cpu, "-plugin", str(plugin)]
    done = subprocess.run(
        [*command, str(build(target)), target.isa],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stderr.splitlines()  # others warn of features that QEMU lacks
    counts = [int(line) for line in lines if line.isdigit()]
    found = {}
    for i, line in enumerate(done.stdout.splitlines()):
        kind, name, elements = line.split("\t")
        start, middle, end = counts[3 * i : 3 * i + 3]
        found[f"{kind}, {name}"] = (end - 2 * middle + start) / int(elements)
    return found


def measured() -> dict[str, Any]:
    """Return the counts of all loops on all targets."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    BUILD.mkdir(parents=True, exist_ok=True)
    plugin = BUILD / "count.so"
    run(["gcc", "-shared", "-fPIC", "-O2", str(PROGRAM / "count.c"), "-o", str(plugin)])
    counts = {name: count(target, plugin) for name, target in TARGETS.items()}
    return {
        "date": datetime.date.today().isoformat(),
        "compiler": run([ARM64, "-dumpfullversion"]).strip(),
        "emulator": run(["qemu-aarch64", "--version"]).split()[2],
        "loops": {
            loop: {name: round(counts[name][loop], 2) for name in TARGETS}
            for loop in counts["arm64"]
        },
    }


def ratio(counts: dict[str, float]) -> float:
    return counts["arm64"] / counts["x86-64-v3"]


def block(report: dict[str, Any]) -> str:
    """Return a Markdown table of the loops that the documents show."""
    ratios = {loop: ratio(counts) for loop, counts in report["loops"].items()}
    worst = max(ratios, key=lambda loop: ratios[loop])
    lines = [
        "Counted by `python benchmarks/ufuncs/instructions.py` in QEMU"
        f" {report['emulator']}, gcc {report['compiler']}, {report['date']}."
        " Instructions per element, or per multiply-add of `matmul`; lower is better."
        " The numbers are normally distributed. `ratio` is arm64 over x86-64-v3.",
        "",
        "| loop | arm64 | x86-64-v3 | x86-64 baseline | ratio |",
        "|---|---|---|---|---|",
    ]
    for loop in SHOWN:
        name = loop.removesuffix(", cast").replace(", ", " ")
        cells = [*report["loops"][loop].values(), ratios[loop]]
        said = [f"{x:.{1 if x < 10 else 0}f}" for x in cells]
        lines.append(f"| {name} | {' | '.join(said)} |")
    lines += [
        "",
        f"`benchmarks/results/instructions.json` has {len(ratios)} loops. The median of"
        f" their ratios is {median(ratios.values()):.1f}. The largest ratio is"
        f" {ratios[worst]:.1f}, of {worst.replace(', ', ' ')}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the counts")
    parser.add_argument("--only", default="", help="print only loops with this word")
    options = parser.parse_args()
    report = measured()
    print(f"{'loop':45}{'arm64':>9}{'v3':>9}{'x86-64':>9}{'ratio':>9}")
    loops = sorted(report["loops"].items(), key=lambda item: ratio(item[1]))
    for loop, counts in loops:
        if options.only in loop:
            figures = [*counts.values(), ratio(counts)]
            print(f"{loop:45}" + "".join(f"{x:9.2f}" for x in figures))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
