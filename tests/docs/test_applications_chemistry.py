"""Applications with molecules, spins and a transformer: small runs, and the claims.

The full runs are recorded as JSON. The tests check the claims of
docs/benchmarks/applications_physics.md and applications_learning.md on this JSON.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.docs.images import variables_of_stub
from tests.support import forks
from tests.support.interpreters import run
from tests.support.paths import BENCHMARKS, ROOT
from tf32dtype import _core

pytestmark = pytest.mark.once

SCRIPTS = ROOT / "examples" / "applications"
NEEDS = {"ccsd": "pyscf", "ising_chain": "tenpy", "transformer": "sklearn"}
GOOD = ("f32", "bf16x9", "bf16x6")

Report = dict[str, Any]


def full(name: str) -> Report:
    found: Report = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
    return found


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Report:
    """Return the results of a script with --quick; draw if matplotlib is installed."""
    name = request.param
    pytest.importorskip(NEEDS[name])
    if not _core.blas_available():
        pytest.skip("needs Linux on x86-64 or AArch64")
    folder = tmp_path_factory.mktemp(name)
    script, written = SCRIPTS / f"{name}.py", folder / "out" / "found.json"
    stub = variables_of_stub(folder) if name == "transformer" else {}
    printed = run(script, "--quick", "--json", written, timeout=300, **stub)
    assert "| bf16x9 |" in printed or "| all in bf16x9 |" in printed
    assert run(script, "--read", written) == printed
    if importlib.util.find_spec("matplotlib"):
        drawn = folder / "out" / "found.png"
        run(script, "--read", written, "--plot", drawn)
        assert drawn.read_bytes().startswith(b"\x89PNG")
    found: Report = json.loads(written.read_text())
    return found


@pytest.mark.parametrize("name", NEEDS)
def test_what_is_missing_is_said_first(name: str, tmp_path: Path) -> None:
    script = SCRIPTS / f"{name}.py"
    code = (
        "import importlib.util as u, runpy, sys\nfind = u.find_spec\n"
        f"u.find_spec = lambda *n: None if n == ({NEEDS[name]!r},) else find(*n)\n"
        f"sys.path.insert(0, {str(SCRIPTS)!r})\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    done = forks.python("-c", code, "--quick", cwd=tmp_path)
    assert done.returncode == 2
    assert "is missing: pip install" in done.stderr


@pytest.mark.parametrize("quick", ["ccsd"], indirect=True)
def test_molecules(quick: Report) -> None:
    of_ccsd(quick)
    assert set(quick["molecules"]) == {"monomer", "dimer"}


def test_molecules_in_full() -> None:
    report = full("ccsd")
    of_ccsd(report)
    assert set(report["molecules"]) == {"monomer", "dimer", "trimer"}
    for molecule in report["molecules"].values():
        tf32 = molecule["runs"]["tf32"]
        assert tf32["cycles"] == report["max_cycles"]
        assert abs(tf32["energy"] - molecule["runs"]["float64"]["energy"]) > 1e-6
    usual = report["usual"]["runs"]
    assert usual["tf32"]["converged"]
    assert usual["tf32"]["cycles"] > usual["float64"]["cycles"]


def of_ccsd(report: Report) -> None:
    """Check that float32 and its like reach float64's energy, tf32 and bf16 not."""
    for molecule in report["molecules"].values():
        runs = molecule["runs"]
        base = runs["float64"]
        assert base["converged"]
        off = {name: abs(run["energy"] - base["energy"]) for name, run in runs.items()}
        for name in GOOD:
            assert runs[name]["converged"]
            assert runs[name]["cycles"] <= base["cycles"] + 4
            assert off[name] < 2e-8
        assert off["bf16x3"] < 2e-7
        for name in ("tf32", "bf16"):
            assert not runs[name]["converged"]
            assert 2e-7 < off[name] < 1e-4
    of = report["whole"]
    alone = report["molecules"][of["molecule"]]
    energy, runs = alone["runs"]["float64"]["energy"], alone["runs"]
    for name, one in of["runs"].items():
        moved = abs(one["hartree_fock"] - alone["hartree_fock"])
        assert moved > 10 * abs(runs[name]["energy"] - energy)
    assert abs(of["runs"]["f32"]["hartree_fock"] - alone["hartree_fock"]) < 1e-4
    assert abs(of["runs"]["bf16"]["hartree_fock"] - alone["hartree_fock"]) > 1e-2


@pytest.mark.parametrize("quick", ["ising_chain"], indirect=True)
def test_spins(quick: Report) -> None:
    of_chains(quick)


def test_spins_in_full() -> None:
    report = full("ising_chain")
    of_chains(report)
    chains = report["chains"]
    assert len(chains) == 2
    quoted = report["quoted"]["energy"]
    assert chains["of the quoted energy"]["exact"] == pytest.approx(quoted, abs=1e-9)
    for chain in chains.values():
        runs = chain["runs"]
        for name in GOOD:
            assert max(abs(x - chain["exact"]) for x in runs[name]["span"]) < 2e-5
        assert abs(runs["bf16"]["of the state"] - chain["exact"]) < 1e-2


def of_chains(report: Report) -> None:
    """Check that float64 is exact, and float32 and bf16x9 in the window, others not."""
    for chain in report["chains"].values():
        runs, exact = chain["runs"], chain["exact"]
        assert runs["float64"]["energy"] == pytest.approx(exact, abs=1e-9)
        off = {name: abs(run["energy"] - exact) for name, run in runs.items()}
        for name in set(GOOD) & set(runs):
            assert off[name] < 2e-5
            assert abs(runs[name]["of the state"] - exact) < 1e-9
        for name in ("tf32", "bf16"):
            # After a single sweep, the energy may be near by chance.
            assert max(abs(x - exact) for x in runs[name]["span"]) > 5e-4
    assert "Error" in report["dots too"]["bf16"]


def exact_by_matrix(spins: int, g: float, ring: bool) -> float:
    """Return the lowest eigenvalue of the Hamiltonian as a dense matrix."""
    x, z = np.array([[0, 1], [1, 0]]), np.diag([1, -1])

    def at(sites: dict[int, Any]) -> Any:
        full = np.eye(1)
        for i in range(spins):
            full = np.kron(full, sites.get(i, np.eye(2)))
        return full

    bonds = spins if ring else spins - 1
    total = -sum(at({i: x, (i + 1) % spins: x}) for i in range(bonds))
    total = total - g * sum(at({i: z}) for i in range(spins))
    return float(np.linalg.eigvalsh(total)[0])


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("g", [0.3, 1.0, 1.7])
def test_free_fermions(g: float, ring: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    import ising_chain

    monkeypatch.setattr(ising_chain, "SPINS", 6)
    found = ising_chain.exact(g, ring)
    assert found == pytest.approx(exact_by_matrix(6, g, ring), abs=1e-10)
    assert ising_chain.field_of(found, ring) == pytest.approx(g, abs=1e-9)


@pytest.mark.exhaustive
@pytest.mark.parametrize("quick", ["transformer"], indirect=True)
def test_transformer(quick: Report) -> None:
    of_quick_transformer(quick)


#: The script, with a fifth of the test images.
FEW_IMAGES = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
import digits_transformer as model, scripts, transformer
load = model.load
def load_few():
    train, test = load()
    return train, model.Images(test.patches[:100], test.digits[:100])
model.load = load_few
parts = transformer.measure, transformer.block, transformer.draw
sys.exit(scripts.main(transformer.__doc__, {{"sklearn": "scikit-learn"}}, *parts))
"""


@pytest.mark.exhaustive
def test_transformer_of_few_images(tmp_path: Path) -> None:
    variables = variables_of_stub(tmp_path)
    run, written = forks.run, tmp_path / "out" / "found.json"
    printed = run("-c", FEW_IMAGES, "--quick", "--json", written, **variables)
    assert "| all in bf16x9 |" in printed
    script = SCRIPTS / "transformer.py"
    assert run(script, "--read", written, **variables) == printed
    of_quick_transformer(json.loads(written.read_text()))


def of_quick_transformer(quick: Report) -> None:
    of_transformer(quick)
    # On another machine, exp and sums differ in the last bits, and few answers differ.
    whole = full("transformer")
    assert list(quick["lines"]) == list(whole["lines"])
    for name, one in quick["precisions"].items():
        assert one["error"] == pytest.approx(
            whole["precisions"][name]["error"], rel=0.5
        )


def test_transformer_in_full() -> None:
    report = full("transformer")
    of_transformer(report)
    runs, lines = report["precisions"], report["lines"]
    assert all(runs[x]["as float64"] == 1 for x in (*GOOD, "bf16x3", "tf32", "f16"))
    together = np.linalg.norm([line["alone"] for line in lines.values()])
    assert together == pytest.approx(runs["fp8_e4m3"]["error"], rel=0.2)
    plans = {name: plan["products"] for name, plan in report["plans"].items()}
    assert set(plans["20"].values()) == {"fp8_e4m3"}
    wary = {name for name, precision in plans["25"].items() if precision == "bf16"}
    assert wary == {"tokens", "scores", "mixed"}
    assert [n for n, p in plans["30"].items() if p == "fp8_e4m3"] == ["logits"]
    assert set(plans["40"].values()) == {"bf16"}
    assert sorted(report["steps"][1]["low"]) == ["added", "hidden"]


def of_transformer(report: Report) -> None:
    """Check that errors grow with fewer bits, and that answers hardly change."""
    runs = report["precisions"]
    errors = [runs[x]["error"] for x in ("bf16x9", "tf32", "bf16", "fp8_e4m3")]
    assert errors == sorted(errors)
    assert runs["bf16x9"]["error"] < 1e-6
    assert runs["bf16"]["error"] < 0.01
    assert report["right"] > 0.95
    for one in (*runs.values(), *report["plans"].values(), *report["steps"]):
        assert abs(one["right"] - report["right"]) < 0.03
    assert len(report["lines"]) == 10


def test_the_slopes_are_those_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with central differences in float64."""
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(SCRIPTS)
    import digits_transformer as model

    rng = np.random.default_rng(1)
    weights = {name: w.astype(float) for name, w in model.start().items()}
    images, _ = model.load()
    patches, digits = images.patches[:5].astype(float), images.digits[:5]
    _, slopes = model.slopes(weights, patches, digits)
    assert set(slopes) == set(weights)
    for name, w in weights.items():
        flat, step = w.reshape(-1), 1e-6
        for i in rng.integers(0, flat.size, 3):
            kept, losses = flat[i], []
            for moved in (kept + step, kept - step):
                flat[i] = moved
                losses.append(model.slopes(weights, patches, digits)[0])
            flat[i] = kept
            expected = (losses[0] - losses[1]) / 2 / step
            assert slopes[name].flat[i] == pytest.approx(expected, abs=1e-7)
