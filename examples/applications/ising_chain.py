"""Find the ground state of an Ising chain of 16 spins by TeNPy in chosen precisions.

    python examples/applications/ising_chain.py [--quick] [--json FILE] [--plot FILE]

It needs `pip install physics-tenpy`, and matplotlib to draw. It takes one to three
minutes. With --quick, fewer sweeps, fields and precisions, it takes some seconds.

H = - sum x_i x_(i+1) - g sum z_i with open ends, Pauli matrices x and z. A density
matrix renormalization of two sites finds a matrix product state of bond dimension 16.
It computes in float64. In a region, each matrix product rounds its operands to float32
and runs in the precision. Dot products, norms and singular values stay in float64. The
exact energy is that of free fermions: the sum of the singular values of a bidiagonal
matrix.

The paper quotes an energy without the chain's field. The second field is the one that
has this exact energy.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import numpy as np
from scripts import (
    COLORS,
    FLOAT64,
    PRECISIONS,
    Report,
    figure,
    main,
    markdown,
    measured_on,
    region,
    say,
)

SPINS, BOND = 16, 16
CRITICAL = 1.0  # the field of the phase transition, with the most entangled state
QUOTED = -17.024189  # the paper's float64 energy
SWEEPS, QUICK_SWEEPS = 12, 3  # TeNPy runs one more sweep
QUICK_PRECISIONS = ("f32", "bf16x9", "tf32", "bf16")
SETTLED = 2  # the first sweeps, which the span of energies leaves out


def exact(g: float, ring: bool = False) -> float:
    """Return the exact energy of the ground state, by free fermions."""
    hopping = g * np.eye(SPINS) + np.eye(SPINS, k=1)
    if ring:  # the sector of even parity, which has antiperiodic fermions
        hopping[-1, 0] = -1
    return -float(np.linalg.svd(hopping, compute_uv=False).sum())


def field_of(energy: float, ring: bool = False) -> float:
    """Find the field of this exact energy by bisection."""
    low, high = 0.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exact(middle, ring) > energy else (low, middle)
    return low


def search(g: float, precision: str, sweeps: int, dots: bool = False) -> Report:
    """Return the energies of all sweeps, and the last state's energy in float64."""
    from tenpy.algorithms import dmrg
    from tenpy.models.tf_ising import TFIChain
    from tenpy.networks.mps import MPS

    model = TFIChain(
        {"L": SPINS, "J": 1.0, "g": g, "bc_MPS": "finite", "conserve": None}
    )
    up = ["up"] * SPINS
    state = MPS.from_product_state(model.lat.mps_sites(), up, bc="finite")
    options = {
        "mixer": None,
        "trunc_params": {"chi_max": BOND, "svd_min": 1e-10},
        "max_sweeps": sweeps,
        "min_sweeps": sweeps,
    }
    with region(precision, dots=dots):
        engine = dmrg.TwoSiteDMRGEngine(state, model, options)
        energy, state = engine.run()
    energies = [float(x) for x in engine.sweep_stats["E"]]
    return {
        "energy": float(energy),
        "energies": energies,
        "span": [min(energies[SETTLED:]), max(energies[SETTLED:])],
        "of the state": float(model.H_MPO.expectation_value(state).real),
        "bond": int(max(state.chi)),
    }


def dots_too(precision: str, sweeps: int) -> str:
    """Search with dot products and norms in the precision, too; return the outcome."""
    try:
        found = search(CRITICAL, precision, sweeps, dots=True)
    except Exception as error:  # TeNPy may raise any error in low precision
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{found['energy']:.6f}"


def measure(quick: bool) -> Report:
    """Search for all fields and precisions and return the results for JSON."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    precisions = QUICK_PRECISIONS if quick else PRECISIONS
    sweeps = QUICK_SWEEPS if quick else SWEEPS
    fields = {"critical": CRITICAL}
    if not quick:
        fields["of the quoted energy"] = field_of(QUOTED)
    chains: dict[str, Report] = {}
    for name, g in fields.items():
        runs = {}
        for precision in (FLOAT64, *precisions):
            say(f"g = {g:.6f}, {precision}")
            runs[precision] = search(g, precision, sweeps)
        chains[name] = {"g": g, "exact": exact(g), "runs": runs}
    say("bf16, dots too")
    return {
        "spins": SPINS,
        "sweeps": len(chains["critical"]["runs"][FLOAT64]["energies"]),
        "chains": chains,
        "dots too": {"bf16": dots_too("bf16", QUICK_SWEEPS)},
        "quoted": {
            "energy": QUOTED,
            "open": {"g": field_of(QUOTED)},
            "ring": {"g": field_of(QUOTED, ring=True)},
            "ring of 0.5": exact(0.5, ring=True),
        },
    }


TITLES = {
    "critical": "The critical chain",
    "of the quoted energy": "The chain with the energy of the paper",
}


def block(report: Report) -> str:
    """Return the Markdown tables."""
    lines = [
        measured_on(report),
        f"{report['sweeps']} sweeps, bond dimension {BOND}. The columns are the energy"
        " that TeNPy reports, its difference from the energy in float64 (the first row:"
        " from the exact energy), the range of this difference from the third sweep on,"
        " and the difference of the state's energy, computed in float64.",
    ]
    for name, chain in report["chains"].items():
        runs = chain["runs"]
        base = runs[FLOAT64]["energy"]
        rows = [(FLOAT64, f"{base:.9f}", f"{base - chain['exact']:+.0e}", "", "")]
        for p, run in runs.items():
            if p != FLOAT64:
                low, high = (x - base for x in run["span"])
                rows.append((
                    p, f"{run['energy']:.9f}", f"{run['energy'] - base:+.1e}",
                    f"{low:+.1e} to {high:+.1e}", f"{run['of the state'] - base:+.0e}",
                ))  # fmt: skip
        title = (
            f"{TITLES[name]}, g = {chain['g']:.6f}. Exact energy: {chain['exact']:.9f}."
        )
        header = ("precision", "energy", "difference", "range of difference",
                  "difference of the state's energy")  # fmt: skip
        lines += ["", title, "", markdown(header, rows)]
    quoted = report["quoted"]
    lines += [
        "",
        "With dot products and norms in bf16 too, TeNPy raises"
        f" {report['dots too']['bf16']}",
        f"{quoted['energy']} would be the energy of an open chain with g ="
        f" {quoted['open']['g']:.6f}, or of a ring with {quoted['ring']['g']:.6f}; a"
        f" ring with 0.5 has {quoted['ring of 0.5']:.6f}.",
    ]
    return "\n".join(lines)


def draw(report: Report, path: Path) -> None:
    """Draw the distances of reported energies and the state's from the exact one."""
    chains = report["chains"]
    drawing, axes = figure(path, len(chains), (5 * len(chains), 4))
    for axis, (name, chain) in zip(axes, chains.items(), strict=True):
        for precision, run in chain["runs"].items():
            errors = np.abs(np.array(run["energies"]) - chain["exact"])
            sweeps = range(1, len(errors) + 1)
            color = COLORS[precision]
            axis.semilogy(
                sweeps, np.maximum(errors, 1e-15), ".-", color=color, label=precision
            )
            state = max(abs(run["of the state"] - chain["exact"]), 1e-15)
            axis.semilogy([len(errors) + 0.5], [state], "*", color=color)
        axis.axhspan(2e-6, 1e-5, color="tab:gray", alpha=0.25)
        axis.set_title(f"{name}: g = {chain['g']:.6g}")
        axis.set_xlabel("sweep; stars: of the last state, in float64")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("|energy - exact|; gray: 2e-6 to 1e-5")
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside right center", fontsize="small")
    drawing.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"tenpy": "physics-tenpy"}, measure, block, draw))
