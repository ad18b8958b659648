"""Unchanged programs of others under `tf32dtype run` and `tf32dtype blas`.

The programs print their results to many digits. The expected errors are known from the
same programs with operands rounded by hand. A density matrix renormalization of 16
spins changes by 1e-2 to 1e-1 in bfloat16, and by a tenth of it in tf32. It changes by
less than 1e-5 in precisions that keep float32.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import interpreters
from tf32dtype import _core

if not _core.blas_available():
    pytest.skip("needs Linux on x86-64 or AArch64", allow_module_level=True)
pytestmark = pytest.mark.once

Run = Callable[..., tuple[list[float], dict[str, int]]]

TENPY = """
import logging, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from tenpy.algorithms import dmrg
from tenpy.models.tf_ising import TFIChain
from tenpy.networks.mps import MPS
model = TFIChain({"L": 16, "J": 1.0, "g": 1.0, "bc_MPS": "finite"})
state = MPS.from_product_state(model.lat.mps_sites(), ["up"] * 16, bc="finite")
options = {"mixer": None, "trunc_params": {"chi_max": 8}, "max_sweeps": 4}
print(dmrg.run(state, model, options)["E"])
"""
QUIMB = """
import quimb.tensor as qtn
start = qtn.MPS_rand_state(10, 8, seed=2)
search = qtn.DMRG2(qtn.MPO_ham_ising(10, j=4, bx=2), bond_dims=[8, 16], p0=start)
search.solve(tol=1e-6, max_sweeps=3, verbosity=0)
print(search.energy)
"""
PYSCF = """
from pyscf import cc, gto, scf
water = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
molecule = gto.M(atom=water, basis="sto-3g", verbose=0)
field = scf.RHF(molecule).run()
clusters = cc.CCSD(field)
clusters.max_cycle = 20
print(field.e_tot, clusters.run().e_corr)
"""
SKLEARN = """
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
x = load_digits().data.astype(np.float32) + np.float32(0.1)
for solver in ("randomized", "covariance_eigh"):
    found = PCA(3, svd_solver=solver, random_state=0).fit(x)
    print(*found.explained_variance_, *found.components_[0])
print(*KMeans(10, n_init=1, random_state=0, max_iter=20).fit(x).transform(x)[:20].flat)
"""
NUMBA = """
import numba
import numpy as np

@numba.njit
def multiply(a, b):
    return a @ b

x = np.linspace(-1, 1, 900, dtype=np.float32).reshape(30, 30)
print(*multiply(x, x).flat)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(text: str, precision: str, *options: str) -> Any:
        """Return the output of a program, and its emulated products by dtype."""
        (tmp_path / "program.py").write_text(text)
        words = ["run", "--precision", precision, *options, "--json", "out.json"]
        done = interpreters.python(
            "-m", "tf32dtype", *words, "program.py", cwd=tmp_path, timeout=300,
            OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        record = json.loads((tmp_path / "out.json").read_text())
        emulated: dict[str, int] = {}
        for row in record["emulated"]["by_dtype_and_routine"]:
            dtype = str(row["dtype"])
            emulated[dtype] = emulated.get(dtype, 0) + int(row["calls"])
        return [float(word) for word in done.stdout.split()], emulated

    return run


def distance(x: list[float], y: list[float]) -> float:
    """Return the largest difference, relative to the largest number."""
    assert len(x) == len(y)
    return max(abs(a - b) for a, b in zip(x, y, strict=True)) / max(map(abs, y))


@pytest.mark.parametrize(
    ("library", "text", "bf16", "tf32"),
    [("tenpy", TENPY, 1e-4, 1e-5), ("quimb", QUIMB, 1e-5, 1e-6)],
    ids=["tenpy", "quimb"],
)
def test_energies_of_spins(
    library: str, text: str, bf16: float, tf32: float, run: Run
) -> None:
    pytest.importorskip(library)
    own, emulated = run(text, "bf16")
    assert "float64" not in emulated
    energies = {}
    for precision in ("bf16", "tf32", "bf16x9"):
        energies[precision], emulated = run(text, precision, "--float64")
        assert emulated["float64"] > 100
    errors = {name: distance(x, own) for name, x in energies.items()}
    assert bf16 < errors["bf16"] < 0.05
    assert tf32 < errors["tf32"] < 0.05  # after few sweeps, either error may be larger
    assert errors["bf16x9"] < 2e-6


def test_molecule(run: Run) -> None:
    """Compute RHF and CCSD of water: PySCF calls OpenBLAS, also in OpenMP threads."""
    pytest.importorskip("pyscf")
    own, _ = run(PYSCF, "bf16")
    assert own[0] == pytest.approx(-74.963063, abs=1e-5)
    errors = {}
    for precision in ("bf16", "tf32", "bf16x9"):
        energies, emulated = run(PYSCF, precision, "--float64")
        assert emulated["float64"] > 100
        errors[precision] = [abs(x - y) for x, y in zip(energies, own, strict=True)]
    assert 1e-3 < errors["bf16"][0] < 1
    assert 1e-5 < errors["tf32"][0] < 0.1
    assert errors["bf16x9"][0] < 1e-4
    assert errors["bf16x9"][1] < 1e-6


@pytest.mark.exhaustive
def test_components_and_clusters(run: Run, capsys: Any) -> None:
    """Call BLAS through NumPy and through SciPy's cython_blas."""
    pytest.importorskip("sklearn")
    exec(SKLEARN, {})
    own = [float(word) for word in capsys.readouterr().out.split()]
    found, emulated = run(SKLEARN, "bf16")
    assert emulated["float32"] > 100
    assert 1e-4 < distance(found, own) < 0.2


@pytest.mark.exhaustive
def test_components_and_clusters_in_precisions(run: Run) -> None:
    pytest.importorskip("sklearn")
    own, emulated = run(SKLEARN, "bf16", "--no-blas")
    without_blas = emulated.get("float32", 0)
    own, _ = run(SKLEARN, "f32")
    errors = {}
    for precision in ("bf16", "tf32", "bf16x9"):
        found, emulated = run(SKLEARN, precision)
        assert emulated["float32"] > without_blas + 10
        errors[precision] = distance(found, own)
    assert 1e-4 < errors["bf16"] < 0.2
    assert 1e-6 < errors["tf32"] < errors["bf16"]
    assert errors["bf16x9"] < 1e-5


def test_compiled_python(run: Run) -> None:
    pytest.importorskip("numba")
    np = pytest.importorskip("numpy")
    import tf32dtype as td

    x = np.linspace(-1, 1, 900, dtype=np.float32).reshape(30, 30)
    for precision in ("bf16", "tf32"):
        found, emulated = run(NUMBA, precision)
        assert emulated == {"float32": 1}
        wanted = td.matmul(x, x, precision=precision)
        assert np.array_equal(np.float32(found).reshape(30, 30), wanted)


def in_another_language(tmp_path: Path, words: list[str]) -> tuple[str, str]:
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}")
    done = interpreters.python(
        "-m", "tf32dtype", "blas", "--precision", "bf16", "--float64", *words,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_octave(tmp_path: Path) -> None:
    code = (
        "a = 1.001 * ones(30); b = a * a; s = single(a) * single(a); z = (a + i*a) * a;"
        " v = a * a(:, 1); printf('%g %g %g %g\\n', b(1), s(2), real(z(3)), v(4))"
    )
    out, told = in_another_language(
        tmp_path, ["octave-cli", "-q", "-f", "--eval", code]
    )
    assert out == "30 30 30 30\n"
    assert "5 of 5 matrix multiplications ran in bf16" in told


def test_r(tmp_path: Path) -> None:
    code = (
        "a <- matrix(1.001, 30, 30);"
        " cat((a %*% a)[1], crossprod(a)[2], (a %*% a[,1])[3])"
    )
    out, told = in_another_language(tmp_path, ["Rscript", "--vanilla", "-e", code])
    assert out == "30 30 30"
    assert "3 of 3 matrix multiplications ran in bf16" in told
