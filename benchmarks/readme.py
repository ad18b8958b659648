"""Write figures, tables and pictures into the documents.

Figures come from the benchmarks' JSON, tables from the package. Both go between marks.

python benchmarks/readme.py [--root FOLDER] [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
sys.path.extend(map(str, Path(__file__).resolve().parent.glob("*/")))
sys.path.append(str(Path(__file__).resolve().parents[1] / "examples" / "applications"))

import accuracy_condition
import accuracy_devices
import accuracy_exponents
import accuracy_length
import accuracy_units
import blocks_quality
import blocks_tables
import ccsd
import culprits
import diagrams
import exact_applications
import exact_products
import fault_map_figure
import gpu_report
import instructions
import ising_chain
import layers_figure
import linear_systems
import overview_figure
import quantum_circuit
import questions_figure
import spectral_transform
import sums_figure
import surface_figure
import surface_report
import tensor_core_tables
import torch_layers
import torch_training
import transformer
import transformer_plan
from report import numpy_of, quote, runs_said, said, table, worst

HERE = Path(__file__).resolve().parent
MARK = "<!-- {}:{} -->"


def measured_on(report: dict[str, Any]) -> str:
    """Describe the machine, and which measurements the table quotes."""
    result = report["results"][0]
    facts = result["machine"]
    runs = runs_said(report["runs"])
    return (
        f"Measured on {facts['cpu']}, one core, {result['isa']}, {numpy_of(facts)}, "
        f"Python {facts['python']}, {facts['date']}; {runs}. Each row shows its "
        "slowest operation and data. Times are relative to the reference in the cell: "
        "lower is better, and below 1 is faster."
    )


def products(report: dict[str, Any]) -> str:
    """Return a Markdown table of products relative to NumPy's float32 products."""
    lines = [measured_on(report), "", "| product | time |", "|---|---|"]
    for result in report["results"]:
        units = {row["name"]: row["unit"] for row in result["rows"]}
        for name, _, _, ours, *_ in table(result):
            if units[name] != "of peak":  # the only unit in which more is better
                lines.append(f"| {name} | {ours} {said(units[name])} |")
    return "\n".join(lines)


def elementwise(report: dict[str, Any]) -> str:
    """Return a Markdown table of the first result: the best instruction set."""
    result = report["results"][0]
    lines = [
        measured_on(report),
        "",
        "| operation | tf32dtype | ml_dtypes |",
        "|---|---|---|",
    ]
    for name, _, _, ours, _, _, _, theirs, *_ in table(result):
        unit = said(next(r["unit"] for r in result["rows"] if r["name"] == name))
        if unit == "x":
            unit = "x the time of float32" + ("'s exp" if " exp" in name else "")
        peer = f"{theirs} {unit}" if theirs != "-" else "-"
        lines.append(f"| {name} | {ours} {unit} | {peer} |")
    others = [r for r in report["results"][1:] if worst(r["rows"][0], "ours")]
    if others:
        names = ", ".join(r["isa"] for r in others)
        lines += ["", f"Figures for {names} are in `benchmarks/results/`."]
    return "\n".join(lines)


def tensor_cores(report: dict[str, Any]) -> str:
    """Return a Markdown table of all rows."""
    of = {"x": "x the time of NumPy's float32 product"}
    lines = [measured_on(report), "", "| product | time |", "|---|---|"]
    for result in report["results"]:
        units = {row["name"]: row["unit"] for row in result["rows"]}
        for name, _, _, ours, *_ in table(result):
            unit = of.get(units[name], said(units[name]))
            lines.append(f"| {name} | {ours} {unit} |")
    return "\n".join(lines)


def training(report: dict[str, Any]) -> str:
    """Return a Markdown table of the training steps, on all cores and on one."""
    every, one = report["results"]
    facts = every["machine"]
    lines = [
        f"Measured on {facts['cpu']}, {facts['cores']} cores, {every['isa']}, "
        f"{numpy_of(facts)}, {facts['date']}; {runs_said(report['runs'])}. Time of a "
        "training step relative to the same step in bfloat16, lower is better:",
        "",
        "| weights | published, on a GPU | all cores | one core | all cores, with error"
        " feedback |",
        "|---|---|---|---|---|",
    ]
    for row, single in zip(every["rows"], one["rows"], strict=True):
        name, published = row["name"].split(", published ")
        ours, single_core, fed = (
            quote(row, "ours"),
            quote(single, "ours"),
            quote(row, "fed"),
        )
        lines.append(f"| `{name}` | {published} | {ours} | {single_core} | {fed} |")
    return "\n".join(lines)


def gpu_chunks(report: dict[str, Any]) -> str:
    """Return the SNR over K of emulated products in the models of two devices."""
    who = ("NumPy float32", "one float32 chain", "A100 bf16x9 as chosen",
           "H100 bf16x9 as chosen")  # fmt: skip
    facts = report["machine"]
    lines = [
        f"Computed with the device models on {facts['cpu']}, {numpy_of(facts)},"
        f" {facts['date']}. Signal-to-noise ratio in dB, compared with float64 (higher"
        f" is better), for products of {report['size']} x K x {report['size']}.",
        "",
        f"| data | product | {' | '.join(f'K = {k}' for k in report['lengths'])} |",
        f"|---|---|{'---|' * len(report['lengths'])}",
    ]
    for data, figures in report["snr"].items():
        for name in who:
            cells = " | ".join(f"{x:.1f}" for x in figures[name])
            lines.append(f"| {data} | {name.removesuffix(' as chosen')} | {cells} |")
    return "\n".join(lines)


def gpu_bounds(report: dict[str, Any]) -> str:
    """Return the speed that the machine code of each kernel allows."""
    gpu = report["gpu"]
    lines = [
        f"Computed by `python benchmarks/cuda/gpu_bounds.py` for {report['arch']}:"
        f" {gpu['processors']} multiprocessors at {gpu['clock'] / 1e9:.2f} GHz,"
        f" {gpu['memory'] / 1e12:.2f} TB/s. `mma.sync` is assumed to reach"
        f" {gpu['mma_sync']} of the tensor cores' peak, as others measured. Higher is"
        " faster.",
        "",
        "| kernel | main loop | limited by | bound by that unit | bound with"
        " schedulers |",
        "|---|---|---|---|---|",
    ]
    for row in report["kernels"]:
        most, issued = (f"{row[x]:.3g} {row['unit']}" for x in ("at most", "issued"))
        loop = f"{row['instructions']} instructions, {row['working']} {row['works']}"
        cells = row["kernel"], loop, row["limit"], most, issued
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def gpu_host(report: dict[str, Any]) -> str:
    """Return the microseconds from each call to its last launch."""
    lines = [
        f"Measured by `python benchmarks/cuda/gpu_host.py` on {report['cpu']}, Python"
        f" {report['python']}, {report['date']}, without a driver. Time from the call"
        " to its last launch, lower is better. The last column is relative to a fixed"
        f" piece of Python code, which takes {report['python_work']:.0f} us.",
        "",
        "| call | time, us | limit, us | launches | relative time |",
        "|---|---|---|---|---|",
    ]
    for name, x in report["calls"].items():
        lines.append(
            f"| `{name}` | {x['microseconds']:.0f} | {x['most']} | {x['launches']} |"
            f" {x['of python_work']:.1f} |"
        )
    return "\n".join(lines)


def blocks_speed(report: dict[str, Any]) -> str:
    """Return a Markdown table of all rows, on one thread and on all threads."""
    columns = [{line[0]: line[3] for line in table(r)} for r in report["results"]]
    lines = [
        measured_on(report).replace(", one core", ""),
        "",
        "| operation | one thread | default number of threads |",
        "|---|---|---|",
    ]
    for row in report["results"][0]["rows"]:
        name, unit = row["name"], said(row["unit"])
        cells = [f"{c[name]} {unit}" if name in c else "-" for c in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


#: The functions that fill each document's marks. The keys are names of JSON files; a
#: suffix after a colon distinguishes marks that are filled from the same file.
DOCUMENTS = {
    "docs/benchmarks/speed.md": {
        "surface:kinds": surface_report.summary,
        "surface_zen:kinds": surface_report.summary,
        "surface_avx2:kinds": surface_report.summary,
        "elementwise": elementwise,
        "matmul": products,
        "matmul_avx2": products,
        "surface": surface_report.details,
        "exact_products": exact_products.block,
    },
    "docs/benchmarks/tensor_cores.md": {
        "accuracy_devices": accuracy_devices.block,
        "accuracy_units": accuracy_units.block,
        "tensor_core": tensor_cores,
        "matrix_units": tensor_cores,
    },
    "docs/benchmarks/block_training.md": {"block_training": training},
    "docs/benchmarks/torch_training.md": {"torch_training": torch_training.block},
    "docs/how_to/torch_layers.md": {
        "torch_layers": torch_layers.block,
        "torch_layers:layers": torch_layers.layers,
    },
    "docs/benchmarks/gpu.md": {
        "gpu_ksplit": gpu_chunks,
        "gpu_bounds": gpu_bounds,
        "gpu_host": gpu_host,
        "gpu_nvidia_h200": gpu_report.block,
        "gpu_nvidia_h100_80gb_hbm3": gpu_report.block,
    },
    "docs/benchmarks/blocks.md": {
        "blocks_quality": blocks_quality.block,
        "blocks_speed": blocks_speed,
    },
    "docs/benchmarks/applications_physics.md": {
        "ccsd": ccsd.block,
        "ising_chain": ising_chain.block,
        "quantum_circuit": quantum_circuit.block,
    },
    "docs/benchmarks/applications_weather.md": {
        "spectral_transform": spectral_transform.block,
    },
    "docs/benchmarks/applications_learning.md": {
        "transformer": transformer.block,
        "transformer_plan": transformer_plan.block,
    },
    "docs/benchmarks/accuracy.md": {
        "accuracy_condition": accuracy_condition.block,
        "accuracy_exponents": accuracy_exponents.block,
        "accuracy_length": accuracy_length.block,
    },
    "docs/benchmarks/advice.md": {"culprits": culprits.block},
    "docs/concepts/exact_products.md": {"exact_applications": exact_applications.block},
    "docs/reference/platforms.md": {"instructions": instructions.block},
    "docs/how_to/solve.md": {"linear_systems": linear_systems.block},
}

TABLES = {
    "docs/concepts/blocks.md": {"block_formats": blocks_tables.block_formats},
    "docs/reference/block_formats.md": {"scale_formats": blocks_tables.scale_formats},
    "docs/reference/devices.md": tensor_core_tables.DEVICES,
    "docs/benchmarks/verification.md": tensor_core_tables.VERIFICATION,
}

#: The functions that draw pictures, by path without theme; each theme gets a file.
PICTURES = {
    "docs/figures/overview": overview_figure.picture,
    "docs/figures/questions": questions_figure.picture,
    "docs/figures/fault_map": fault_map_figure.picture,
    "docs/figures/layers": layers_figure.picture,
    "docs/figures/speed": surface_figure.picture,
    "docs/figures/sums": sums_figure.picture,
    "docs/figures/torch_training": torch_training.picture,
    **diagrams.PICTURES,
}


def replaced(text: str, name: str, new: str) -> str:
    """Return `text` with `new` between the marks of that name."""
    begin, end = MARK.format(name, "begin"), MARK.format(name, "end")
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"no {begin} ... {end} to fill")
    return f"{before}{begin}\n{new}\n{end}{after}"


def made(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the path and the new content of each document and picture."""
    for document in {**DOCUMENTS, **TABLES}:
        new = (root / document).read_text()
        for name, block in DOCUMENTS.get(document, {}).items():
            file = HERE / "results" / f"{name.partition(':')[0]}.json"
            report = json.loads(file.read_text())
            new = replaced(new, f"benchmark:{name}", block(report))
        for name, render in TABLES.get(document, {}).items():
            new = replaced(new, f"table:{name}", render())
        yield root / document, new
    for stem, picture in PICTURES.items():
        yield root / f"{stem}.svg", picture()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--root",
        type=Path,
        default=HERE.parent,
        help="update the documents of this folder (default: this repository)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing, and fail if a document would change",
    )
    options = parser.parse_args()
    changed = []
    for path, new in made(options.root):
        if not path.exists() or path.read_text() != new:
            changed.append(str(path.relative_to(options.root)))
            if not options.check:
                path.write_text(new)
    if options.check and changed:
        print(f"out of date: {', '.join(changed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
