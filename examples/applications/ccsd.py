"""Run PySCF's coupled clusters (CCSD) of water with products in chosen precisions.

    python examples/applications/ccsd.py [--quick] [--json FILE] [--plot FILE]

It needs `pip install pyscf`, and matplotlib to draw. It takes two to six minutes. With
--quick, small bases and at most 20 cycles, it takes some seconds.

PySCF computes in float64. Only in CCSD's kernel each matrix product rounds its operands
to float32 and runs in the precision. Hartree-Fock, the integrals, and the dot products
and norms that stop the iteration stay in float64. The last table also lowers
Hartree-Fock, which changes the energies more than any precision of CCSD does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

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


class Molecule(NamedTuple):
    """The positions of a molecule's atoms, their unit, and their source."""

    atoms: str
    unit: str
    source: str


MOLECULES = {
    "monomer": Molecule(
        "O 0 0 0; H 0 -0.757 0.587; H 0 0.757 0.587",
        "angstrom",
        "PySCF's own examples",
    ),
    "dimer": Molecule(
        """O -1.551007 -0.114520  0.000000
           H -1.934259  0.762503  0.000000
           H -0.599677  0.040712  0.000000
           O  1.350625  0.111469  0.000000
           H  1.680398 -0.373741 -0.758561
           H  1.680398 -0.373741  0.758561""",
        "angstrom",
        "S22, Jurecka et al., Phys. Chem. Chem. Phys. 8, 1985 (2006)",
    ),
    "trimer": Molecule(
        """O -2.76373224 -1.24377706 -0.15444566
           H -1.12357791 -2.06227970 -0.05243799
           H -3.80792362 -2.08705525  1.06090407
           O  2.46924614 -1.75437739 -0.17092884
           H  3.76368260 -2.21425403  1.00846104
           H  2.30598330  0.07098445 -0.03942473
           O  0.29127930  3.00875625  0.20308515
           H -1.21253048  1.95820900  0.10303324
           H  0.10002049  4.24958115 -1.10222079""",
        "bohr",
        "Psi4's tests, from J. Chem. Theory Comput. 11, 2126 (2015)",
    ),
}
BASIS, QUICK_BASES = "cc-pvdz", {"monomer": "6-31g", "dimer": "sto-3g"}
CYCLES, QUICK_CYCLES = 60, 20
#: Changes of the energy and of the amplitudes below which the iteration ends.
TIGHT, USUAL = (1e-8, 1e-6), (1e-7, 1e-5)  # USUAL is PySCF's default
LAST = 10  # the last cycles, over which the spread of the energy is taken


def molecule(name: str, basis: str) -> Any:
    """Return PySCF's molecule of this name in a basis."""
    from pyscf import gto

    atoms, unit, _ = MOLECULES[name]
    return gto.M(atom=atoms, unit=unit, basis=basis, verbose=0)


def hartree_fock(water: Any, precision: str) -> Any:
    """Return the Hartree-Fock solution, converged as far as the precision allows."""
    from pyscf import scf

    field = scf.RHF(water)
    field.conv_tol = 1e-10
    with region(precision):
        return field.run()


def clusters(
    field: Any, precision: str, cycles: int, end: tuple[float, float] = TIGHT
) -> Report:
    """Run CCSD with products in a precision; return the energies of all cycles."""
    from pyscf import cc

    energies: list[float] = []

    class Watched(cc.ccsd.RCCSD):
        def energy(self, *arguments: Any, **options: Any) -> float:
            energies.append(float(super().energy(*arguments, **options)))
            return energies[-1]

    found = Watched(field)
    found.conv_tol, found.conv_tol_normt = end
    found.max_cycle = cycles
    integrals = found.ao2mo()
    with region(precision):
        found.kernel(eris=integrals)
    energies = energies[1:]  # without the energy before the first cycle
    return {
        "energy": float(found.e_corr),
        "converged": bool(found.converged),
        "cycles": len(energies),
        "energies": energies,
        "spread": float(np.ptp(energies[-LAST:])),
    }


def measure(quick: bool) -> Report:
    """Run all molecules and precisions and return the results for JSON."""
    bases = QUICK_BASES if quick else dict.fromkeys(MOLECULES, BASIS)
    cycles = QUICK_CYCLES if quick else CYCLES
    found: Report = {"max_cycles": cycles, "molecules": {}}
    for name, basis in bases.items():
        field = hartree_fock(molecule(name, basis), FLOAT64)
        runs = {}
        for precision in (FLOAT64, *PRECISIONS):
            say(f"{name}, {basis}, {precision}")
            runs[precision] = clusters(field, precision, cycles)
        found["molecules"][name] = {
            "basis": basis,
            "functions": int(field.mol.nao),
            "source": MOLECULES[name].source,
            "hartree_fock": float(field.e_tot),
            "runs": runs,
        }
    first = next(iter(bases))
    found["usual"] = {"molecule": first, "runs": usual(first, bases[first], cycles)}
    found["whole"] = {
        "molecule": first,
        "runs": {p: whole(first, bases[first], p, cycles) for p in PRECISIONS},
    }
    return found


def usual(name: str, basis: str, cycles: int) -> dict[str, Report]:
    """Run CCSD in all precisions with PySCF's own, looser thresholds."""
    field = hartree_fock(molecule(name, basis), FLOAT64)
    runs = {}
    for precision in (FLOAT64, *PRECISIONS):
        say(f"{name}, {basis}, {precision}, PySCF's thresholds")
        runs[precision] = clusters(field, precision, cycles, USUAL)
    return runs


def whole(name: str, basis: str, precision: str, cycles: int) -> Report:
    """Run Hartree-Fock, the change of basis and CCSD, all in a precision."""
    say(f"{name}, {basis}, {precision}, Hartree-Fock too")
    field = hartree_fock(molecule(name, basis), precision)
    with region(precision):
        found = clusters(field, precision, cycles)
    return {
        "hartree_fock": float(field.e_tot),
        "hartree_fock_converged": bool(field.converged),
        "energy": found["energy"],
        "converged": found["converged"],
    }


def off(run: Report, runs: dict[str, Report]) -> float:
    """Return the difference of a correlation energy from float64's."""
    return float(run["energy"] - runs[FLOAT64]["energy"])


def told(run: Report, runs: dict[str, Report]) -> str:
    """Format the difference from float64, with the spread if it did not converge."""
    if run["converged"]:
        return f"{off(run, runs):+.1e}"
    return f"{off(run, runs):+.1e}, still changes by {run['spread']:.0e}"


def block(report: Report) -> str:
    """Return the Markdown tables."""
    molecules = report["molecules"]
    header = ["precision of CCSD"]
    first = [FLOAT64]
    rows = [[p] for p in PRECISIONS]
    for name, one in molecules.items():
        runs = one["runs"]
        header += [f"{name}, {one['functions']} functions", "cycles"]
        first += [f"{runs[FLOAT64]['energy']:.9f}", f"{runs[FLOAT64]['cycles']}"]
        for row in rows:
            run = runs[row[0]]
            end = "" if run["converged"] else "+"
            row += [told(run, runs), f"{run['cycles']}{end}"]
    of, loose = report["whole"], report["usual"]["runs"]
    stops = ", ".join(
        f"{p} {run['cycles']}{'' if run['converged'] else '+'}"
        for p, run in loose.items()
    )
    bases = sorted({one["basis"] for one in molecules.values()})
    return "\n".join([
        measured_on(report),
        f"Basis {', '.join(bases)}. Correlation energies in hartree: the energy in"
        " float64, and for other precisions the difference from it. `+` marks a run"
        " that did not converge; the cell also shows its change in the last"
        f" {LAST} cycles.",
        "",
        markdown(header, [first, *rows]),
        "",
        f"Cycles of the {report['usual']['molecule']} by PySCF's default, looser"
        f" thresholds: {stops}.",
        "",
        f"The {of['molecule']}: only CCSD in the precision, or Hartree-Fock too."
        " Differences from the energies of float64, in hartree:",
        "",
        markdown(
            ("precision", "only CCSD: correlation", "both: Hartree-Fock",
             "both: correlation", "both: total"),
            whole_rows(of["runs"], molecules[of["molecule"]]),
        ),
    ])  # fmt: skip


def whole_rows(found: dict[str, Report], alone: Report) -> list[tuple[str, ...]]:
    """Return the errors with only CCSD in a precision, and with Hartree-Fock, too."""
    field, runs = alone["hartree_fock"], alone["runs"]
    rows: list[tuple[str, ...]] = []
    for precision, run in found.items():
        moved = run["hartree_fock"] - field
        end = "" if run["hartree_fock_converged"] else ", not converged"
        rows.append((
            precision,
            f"{off(runs[precision], runs):+.1e}",
            f"{moved:+.1e}{end}",
            f"{off(run, runs):+.1e}",
            f"{moved + off(run, runs):+.1e}",
        ))  # fmt: skip
    return rows


def draw(report: Report, path: Path) -> None:
    """Draw the distances from float64's final energy over the cycles."""
    molecules = report["molecules"]
    drawing, axes = figure(path, len(molecules), (4 * len(molecules), 4))
    for axis, (name, one) in zip(axes, molecules.items(), strict=True):
        runs = one["runs"]
        for precision in (FLOAT64, *PRECISIONS):
            errors = np.abs(
                np.array(runs[precision]["energies"]) - runs[FLOAT64]["energy"]
            )
            axis.semilogy(
                range(1, len(errors) + 1),
                np.maximum(errors, 1e-12),
                ".-",
                color=COLORS[precision],
                label=precision,
            )
        axis.set_title(f"{name}, {one['basis']}")
        axis.set_xlabel("cycle")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("|correlation energy - float64's|, hartree")
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside right center", fontsize="small")
    drawing.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"pyscf": "pyscf"}, measure, block, draw))
