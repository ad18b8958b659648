"""Compute amplitudes of random quantum circuits by contraction of tensor networks.

    python examples/applications/quantum_circuit.py [--quick]
                                    [--json FILE] [--plot FILE] [--read FILE]

quimb makes a tensor network of a circuit and contracts it along two paths that cotengra
finds, in complex64 as simulators do, for 64 bit strings at once. Only contractions that
sum 16 products or more are emulated in a precision. The libraries need no change. The
circuits are of the kind that ran on Google's Sycamore chip: square roots of X, Y and W,
and fSim gates in the order ABCDCDAB. They have 4 x 5 qubits and 12 layers, few enough
to check the amplitudes by the whole state.

It needs quimb, and matplotlib to draw. It takes two minutes; with --quick, one circuit
of 3 x 4 qubits, some seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from float32_modes import COLORS, NUMPY, digits, mode
from numpy.typing import NDArray
from scripts import FLOAT64, Report, figure, main, markdown, measured_on, say

if TYPE_CHECKING:
    import cotengra
    import quimb.tensor as qtn

Amplitudes = NDArray[np.complexfloating[Any, Any]]

LAYERS = "ABCDCDAB"
ROOTS = ("X_1_2", "Y_1_2", "W_1_2")
LEAST = 16  # products from which on a sum is emulated
OPEN = 6  # qubits with both values, which gives 64 bit strings
MODES = ("f32", "bf16x9", "tf32x3", "tf32", "bf16")
#: The comparisons: the (mode, path) that is compared, and the (mode, path) reference.
BOXES = {
    "float32 to float64": ((NUMPY, 0), (FLOAT64, 0)),
    "bf16x9 to float64": (("bf16x9", 0), (FLOAT64, 0)),
    "bf16x9 to float32": (("bf16x9", 0), (NUMPY, 0)),
    "path 1 to path 0, float32": ((NUMPY, 1), (NUMPY, 0)),
    "path 1, float32 to float64": ((NUMPY, 1), (FLOAT64, 0)),
    "f32 to float64": (("f32", 0), (FLOAT64, 0)),
    "tf32x3 to float64": (("tf32x3", 0), (FLOAT64, 0)),
    "tf32 to float64": (("tf32", 0), (FLOAT64, 0)),
    "bf16 to float64": (("bf16", 0), (FLOAT64, 0)),
}


def circuit(rows: int, columns: int, layers: int, seed: int) -> qtn.Circuit:
    """Make a random circuit that ends with roots and repeats no root on a qubit."""
    import quimb.tensor as qtn

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
    """Yield the neighbors that a layer couples: in a column (A, B) or in a row."""
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
    """Return the network of 64 amplitudes, its open indices, and bits (-1: open)."""
    import quimb.tensor as qtn

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
    """Apply all gates in turn; return the state with one axis per qubit."""
    state = np.zeros((2,) * made.N, complex)
    state[(0,) * made.N] = 1
    for gate in made.gates:
        count = len(gate.qubits)
        array = np.asarray(gate.array).reshape((2,) * (2 * count))
        state = np.tensordot(array, state, (range(count, 2 * count), gate.qubits))
        state = np.moveaxis(state, range(count), gate.qubits)
    return state


def sums(tree: cotengra.ContractionTree) -> dict[str, float]:
    """Count the contractions that sum `LEAST` products or more, and their work."""
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


def paths(network: qtn.TensorNetwork, still: list[str]) -> list[Any]:
    """Find two contraction trees, not the best ones, with most work in long sums."""
    import cotengra

    found: list[Any] = []
    for seed in range(100):
        finder = cotengra.RandomGreedyOptimizer(128, seed=seed, parallel=False)
        tree = network.contraction_tree(finder, output_inds=still)
        if sums(tree)["share"] > 0.5:
            found.append(tree)
        if len(found) == 2:
            return found
    raise RuntimeError(
        f"of 100 paths, {len(found)} have their work in long sums; need 2"
    )


def one_circuit(shape: tuple[int, int, int], seed: int) -> dict[str, Any]:
    """Return the relative errors of each comparison, and the work of both paths."""
    made = circuit(*shape, seed)
    network, still, bits = amplitude_network(made, seed)
    trees = paths(network, still)
    values: dict[tuple[str, int], Amplitudes] = {}
    every = [(name, path) for name in (FLOAT64, NUMPY) for path in (0, 1)]
    for name, path in every + [(name, 0) for name in MODES]:
        own = network.astype("complex128" if name == FLOAT64 else "complex64")
        with mode(name, complex64=True, blas=True, min_size=LEAST):
            found = own.contract(
                optimize=trees[path], output_inds=still, preserve_tensor=True
            )
        values[name, path] = found.transpose(*still).data.astype(complex)
    exact = all_amplitudes(made)[tuple(slice(None) if b < 0 else b for b in bits)]
    off = abs(values[FLOAT64, 0] - exact).max() / abs(exact).max()
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


def measure(quick: bool) -> Report:
    shape, count = ((3, 4, 8), 1) if quick else ((4, 5, 12), 10)
    circuits = []
    for seed in range(count):
        circuits.append(one_circuit(shape, seed))
        say(f"circuit {seed + 1} of {count}")
    return {"shape": shape, "circuits": circuits}


def pooled(report: Report, name: str) -> tuple[float, float, float, float]:
    """Return the RMS error over all circuits, and the quartiles of all errors."""
    found = [one["boxes"][name] for one in report["circuits"]]
    rms = math.sqrt(sum(one["rms"] ** 2 for one in found) / len(found))
    errors = np.concatenate([one["errors"] for one in found])
    low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75])
    return rms, float(low), float(middle), float(high)


def block(report: Report) -> str:
    """Return the results as Markdown."""
    rows, columns, layers = report["shape"]
    circuits = report["circuits"]
    paths = [path for one in circuits for path in one["paths"]]
    work, emulated, share = (
        [path[key] for path in paths] for key in ("multiply-adds", "emulated", "share")
    )
    off = max(one["state vector"] for one in circuits)
    lines = [
        measured_on(report),
        f"{rows} x {columns} qubits, {layers} layers, {2**OPEN} amplitudes, circuits:"
        f" {len(circuits)}. A path has {min(work):.1e} to {max(work):.1e} complex"
        f" multiply-adds; {min(emulated)} to {max(emulated)} of its"
        f" {paths[0]['contractions']} contractions are emulated,"
        f" {min(share):.1%} to {max(share):.1%} of the work. The float64 amplitudes are"
        f" within {off:.0e} of those of the state vector. Relative errors:",
        "",
    ]
    found = []
    for name in BOXES:
        values = pooled(report, name)
        texts = [f"{x:.2e}" for x in values]
        found.append(
            (name, *texts, f"{values[3] / values[1]:.2f}", below(report, name))
        )
    header = (
        "results",
        "RMS",
        "lower quartile",
        "median",
        "upper quartile",
        "upper / lower",
    )
    return "\n".join([*lines, markdown((*header, "RMS below that of float32"), found)])


def below(report: Report, name: str) -> str:
    """Say in how many circuits the RMS error is below float32's."""
    if not name.endswith("to float64") or name == next(iter(BOXES)):
        return ""
    boxes = [one["boxes"] for one in report["circuits"]]
    count = sum(box[name]["rms"] < box[next(iter(BOXES))]["rms"] for box in boxes)
    return f"in {count} of {len(boxes)}"


def draw(report: Report, path: Path) -> None:
    """Draw quartiles and whiskers of the amplitudes' errors; crosses are the RMS."""
    drawing, (axis,) = figure(path, 1, (10, 5))
    for place, (name, ((kind, _), _)) in enumerate(BOXES.items()):
        found = [one["boxes"][name]["errors"] for one in report["circuits"]]
        errors = np.concatenate(found)
        axis.boxplot(
            errors[errors > 0],
            positions=[place],
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": COLORS[kind], "alpha": 0.5},
            medianprops={"color": "black"},
        )
        axis.plot([place], [pooled(report, name)[0]], "kx")
    axis.set_yscale("log")
    axis.axvline(4.5, color="black", linewidth=0.8)
    axis.set_xticks(
        range(len(BOXES)), [x.replace(", ", ",\n") for x in BOXES], rotation=30
    )
    axis.set_ylabel("relative error of an amplitude")
    axis.grid(axis="y", alpha=0.3)
    drawing.savefig(path, dpi=80)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"quimb": "quimb"}, measure, block, draw))
