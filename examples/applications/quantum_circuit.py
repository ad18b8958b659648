"""Amplitudes of random quantum circuits, by contraction of tensor networks.

    python examples/applications/quantum_circuit.py [--quick]
                                    [--json FILE] [--figure FILE] [--read FILE]

quimb makes a tensor network of a circuit and has it contracted along a path that cotengra
finds: complex64, as simulators do, for 64 bit strings at once. Two paths of each circuit
are tried. In the precisions only those contractions are emulated that sum 16 products or
more; the programs know nothing of it. The circuits are of the kind that was run on
Google's Sycamore chip (square roots of X, Y and W, and fSim gates in the order
ABCDCDAB), on 4 x 5 qubits with 12 layers, where all amplitudes can be had as a check.

Needs quimb, and matplotlib to draw. Some minutes on two cores; --quick, one circuit of
3 x 4 qubits, takes some seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cotengra
import numpy as np
import quimb.tensor as qtn
from common import COLOURS, NUMPY, Report, figure, main, precision, progress
from numpy.typing import NDArray

Amplitudes = NDArray[np.complexfloating[Any, Any]]

LAYERS = "ABCDCDAB"
ROOTS = ("X_1_2", "Y_1_2", "W_1_2")
LEAST = 16  # products of a sum, for it to be emulated
OPEN = 6  # qubits with both values: 64 bit strings
MODES = ("f32", "bf16x9", "tf32x3", "tf32", "bf16")
#: What is held against what: (mode, path) both.
BOXES = {
    "float32 to float64": ((NUMPY, 0), ("float64", 0)),
    "bf16x9 to float64": (("bf16x9", 0), ("float64", 0)),
    "bf16x9 to float32": (("bf16x9", 0), (NUMPY, 0)),
    "path 1 to path 0, float32": ((NUMPY, 1), (NUMPY, 0)),
    "path 1, float32 to float64": ((NUMPY, 1), ("float64", 0)),
    **{
        f"{mode} to float64": ((mode, 0), ("float64", 0))
        for mode in ("f32", "tf32x3", "tf32", "bf16")
    },
}


def circuit(rows: int, columns: int, layers: int, seed: int) -> qtn.Circuit:
    """A random circuit: no root on a qubit twice in succession, roots at the end."""
    rng = np.random.default_rng(seed)
    made = qtn.Circuit(rows * columns)
    before = [-1] * made.N
    for layer in range(layers + 1):
        for qubit in range(made.N):
            choice = [i for i in range(len(ROOTS)) if i != before[qubit]]
            before[qubit] = int(rng.choice(choice))
            made.apply_gate(ROOTS[before[qubit]], qubit)
        if layer < layers:
            for one, other in pairs(rows, columns, LAYERS[layer % len(LAYERS)]):
                made.apply_gate("FSIM", math.pi / 2, math.pi / 6, one, other)
    return made


def pairs(rows: int, columns: int, pattern: str) -> Iterator[tuple[int, int]]:
    """Neighbours that a layer couples: below each other (A, B), or side by side."""
    down = pattern in "AB"
    first = pattern in "BD"
    for row in range(rows):
        for column in range(columns):
            position, end = (row, rows) if down else (column, columns)
            if position % 2 == first and position + 1 < end:
                here = row * columns + column
                yield here, here + (columns if down else 1)


def amplitude_network(
    made: qtn.Circuit, seed: int
) -> tuple[qtn.TensorNetwork, list[str], list[int]]:
    """The network of 64 amplitudes, its open indices, and the bits: -1 where open."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, made.N).tolist()
    for qubit in rng.choice(made.N, OPEN, replace=False):
        bits[qubit] = -1
    state = made.psi
    network = qtn.TensorNetwork([state])
    for qubit, bit in enumerate(bits):
        if bit >= 0:
            value = np.eye(2)[bit].astype(complex)
            network |= qtn.Tensor(value, inds=[state.site_ind(qubit)])
    still = [state.site_ind(qubit) for qubit, bit in enumerate(bits) if bit < 0]
    return network.rank_simplify(output_inds=still), still, bits


def all_amplitudes(made: qtn.Circuit) -> Amplitudes:
    """The state, a gate after the other, with an axis for each qubit."""
    state = np.zeros((2,) * made.N, complex)
    state[(0,) * made.N] = 1
    for gate in made.gates:
        count = len(gate.qubits)
        array = np.asarray(gate.array).reshape((2,) * (2 * count))
        state = np.tensordot(array, state, (range(count, 2 * count), gate.qubits))
        state = np.moveaxis(state, range(count), gate.qubits)
    return state


def sums(tree: cotengra.ContractionTree) -> dict[str, float]:
    """How many contractions sum `LEAST` products or more, and their share of the work."""
    long, work, all_work = 0, 0.0, 0.0
    nodes = list(tree.traverse())
    for parent, left, right in nodes:
        shared = set(tree.get_legs(left)) & set(tree.get_legs(right))
        summed = shared - set(tree.get_legs(parent))
        flops = float(tree.get_flops(parent))
        all_work += flops
        if math.prod(tree.size_dict[i] for i in summed) >= LEAST:
            long, work = long + 1, work + flops
    return {
        "contractions": len(nodes),
        "emulated": long,
        "share": round(work / all_work, 4),
        "multiply-adds": all_work,
    }


def one_circuit(shape: tuple[int, int, int], seed: int) -> dict[str, Any]:
    """Relative errors of all amplitudes, box by box, and what the paths are like."""
    made = circuit(*shape, seed)
    network, still, bits = amplitude_network(made, seed)
    trees = []
    for path in (0, 1):
        finder = cotengra.RandomGreedyOptimizer(16, seed=2 * seed + path, parallel=False)
        trees.append(network.contraction_tree(finder, output_inds=still))
    values: dict[tuple[str, int], Amplitudes] = {}
    every = [(mode, path) for mode in ("float64", NUMPY) for path in (0, 1)]
    for mode, path in every + [(mode, 0) for mode in MODES]:
        own = network.astype("complex128" if mode == "float64" else "complex64")
        with precision(mode, complex64=True, blas=True, min_size=LEAST):
            found = own.contract(
                optimize=trees[path], output_inds=still, preserve_tensor=True
            )
        values[mode, path] = found.transpose(*still).data.astype(complex)
    exact = all_amplitudes(made)[tuple(slice(None) if b < 0 else b for b in bits)]
    off = abs(values["float64", 0] - exact).max() / abs(exact).max()
    boxes = {}
    for name, (one, other) in BOXES.items():
        difference = abs(values[one] - values[other])
        size = abs(values[other])
        rms = np.linalg.norm(difference) / np.linalg.norm(size)
        boxes[name] = {
            "rms": digits(rms),
            "errors": [digits(x) for x in np.sort((difference / size).ravel())],
        }
    return {
        "paths": [sums(tree) for tree in trees],
        "state vector": digits(off),
        "boxes": boxes,
    }


def digits(x: float) -> float:
    """Three significant digits, for JSON."""
    return float(f"{x:.2e}")


def measure(quick: bool) -> Report:
    shape, count = ((3, 4, 8), 1) if quick else ((4, 5, 12), 8)
    circuits = []
    for seed in range(count):
        circuits.append(one_circuit(shape, seed))
        progress(f"circuit {seed + 1} of {count}")
    return {"shape": shape, "circuits": circuits}


def pooled(report: Report, name: str) -> tuple[float, float, float, float]:
    """The RMS error over all circuits, and quartiles of all amplitudes' errors."""
    found = [one["boxes"][name] for one in report["circuits"]]
    rms = math.sqrt(sum(one["rms"] ** 2 for one in found) / len(found))
    errors = np.concatenate([one["errors"] for one in found])
    low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75])
    return rms, float(low), float(middle), float(high)


def show(report: Report) -> str:
    rows, columns, layers = report["shape"]
    lines = [
        f"{rows} x {columns} qubits, {layers} layers, {len(report['circuits'])} circuits,"
        f" {2**OPEN} amplitudes each"
    ]
    for one in report["circuits"]:
        paths = " and ".join(
            f"{p['multiply-adds']:.2g} ({p['emulated']} of {p['contractions']}"
            f" contractions, {p['share']:.0%} of that, emulated)"
            for p in one["paths"]
        )
        lines.append(f"multiply-adds {paths}; state vector {one['state vector']:.0e} off")
    lines.append(f"{'':28} {'RMS':>9} {'lower':>9} {'median':>9} {'upper':>9}")
    for name in BOXES:
        lines.append(f"{name:28} " + " ".join(f"{x:9.2e}" for x in pooled(report, name)))
    return "\n".join(lines)


def draw(report: Report, path: Path) -> None:
    """Boxes: quartiles and whiskers of the amplitudes' errors, a cross for the RMS."""
    drawing, axes = figure(path, 1, 1, (10, 5))
    axis = axes[0][0]
    for place, (name, ((mode, _), _)) in enumerate(BOXES.items()):
        errors = np.concatenate([one["boxes"][name]["errors"] for one in report["circuits"]])
        errors = errors[errors > 0]
        axis.boxplot(
            errors,
            positions=[place],
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": COLOURS[mode], "alpha": 0.5},
            medianprops={"color": "black"},
        )
        axis.plot([place], [pooled(report, name)[0]], "kx")
    axis.set_yscale("log")
    axis.axvline(4.5, color="black", linewidth=0.8)
    axis.set_xticks(range(len(BOXES)), [x.replace(", ", ",\n") for x in BOXES], rotation=30)
    axis.set_ylabel("relative error of an amplitude")
    axis.grid(axis="y", alpha=0.3)
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show, draw))
