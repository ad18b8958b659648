"""The spectral transform and the quantum circuit: small runs, and recorded results."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import forks
from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "examples" / "applications"))

from spherical import RADIUS, Transform

APPLICATIONS = ROOT / "examples" / "applications"
RESULTS = ROOT / "benchmarks" / "results"
FIELDS = ("T", "U", "V")
NUMPY = "NumPy float32"
pytestmark = pytest.mark.once


def small(name: str, folder: Path) -> dict[str, Any]:
    """Return the results of a script with --quick; draw if matplotlib is installed."""
    script, written, drawn = APPLICATIONS / f"{name}.py", folder / "x", folder / "x.png"
    run = partial(forks.run, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    printed = run(script, "--quick", "--json", written)
    assert printed.startswith("Measured on")
    assert "| bf16x9" in printed
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        pass
    else:
        assert run(script, "--read", written, "--plot", drawn) == printed
        assert drawn.read_bytes().startswith(b"\x89PNG")
    found: dict[str, Any] = json.loads(written.read_text())
    return found


def random_coefficients(order: int) -> np.ndarray:
    """Return smooth coefficients of temperature, vorticity and divergence."""
    rng = np.random.default_rng(3)
    m, n = np.mgrid[: order + 1, : order + 2]
    shape = *n.shape, 3, 1
    found = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    found[0] = found[0].real
    found[(n < m) | (n > order)] = 0
    found[0, 0, 1:] = 0  # the mean vorticity of a wind is zero
    return found


def test_there_and_back_is_exact() -> None:
    transform = Transform(42, np.float64)
    spectrum = random_coefficients(42)
    grid = transform.to_grid(spectrum)
    assert grid.shape == (3, 1, 86, 172)
    assert abs(transform.to_spectrum(grid) - spectrum).max() < 1e-10


def test_fields_are_those_of_ducc() -> None:
    """Compare with ducc0: temperature, and the wind from derivatives."""
    ducc0 = pytest.importorskip("ducc0")
    order = 30
    transform = Transform(order, np.float64)
    spectrum = random_coefficients(order)[..., 0]
    temperature, east, north = transform.to_grid(spectrum[..., None])[:, 0]

    def theirs(x: np.ndarray, **options: Any) -> np.ndarray:
        signs = [(-1) ** m * np.sqrt(2 * np.pi) for m in range(order + 1)]
        alm = np.concatenate([x[m, m:-1] * signs[m] for m in range(order + 1)])
        size = {"ntheta": transform.latitudes, "nphi": transform.longitudes}
        return ducc0.sht.synthesis_2d(
            alm=alm[None], lmax=order, geometry="GL", **size, **options
        )

    assert abs(theirs(spectrum[..., 0], spin=0)[0] - temperature).max() < 1e-10
    n = np.arange(order + 2.0)
    n[0] = 1  # the coefficient is zero
    stream, potential = (
        theirs(spectrum[..., i] * (-RADIUS / (n * (n + 1))), spin=1, mode="DERIV1")
        for i in (1, 2)
    )
    # Derivatives toward the south and the east.
    for wind, expected in (
        (east, stream[0] + potential[1]),
        (north, stream[1] - potential[0]),
    ):
        assert abs(wind - expected).max() < 1e-12 * abs(expected).max()


@pytest.mark.exhaustive
def test_spectral_transform(tmp_path: Path) -> None:
    found = small("spectral_transform", tmp_path)["results"]
    last = {
        mode: {field: x["rms"][7] for field, x in fields.items()}
        for mode, fields in found.items()
    }
    for field in FIELDS:
        float32 = last[NUMPY][field]
        assert last["float64"][field] < float32 / 1e4
        assert last["bf16x9"][field] < 1.2 * float32
        assert last["tf32x3"][field] > 1.1 * last["bf16x9"][field]
        assert last["tf32"][field] > 100 * float32
        assert last["bf16"][field] > last["tf32"][field]
        # The growth is at most linear, and slower where errors of steps are random.
        for mode in (NUMPY, "f32", "bf16x9", "tf32x3"):
            assert 0.5 < found[mode][field]["growth of rms"][0] < 1.05


def test_what_the_document_says_of_transforms() -> None:
    """Check the claims on the recorded results."""
    report = json.loads((RESULTS / "spectral_transform.json").read_text())
    assert report["counts"][-1] == 1000
    found = report["results"]
    assert found[NUMPY]["T"]["max"][-1] < 0.1
    for field in FIELDS:
        rms = {mode: fields[field]["rms"][10] for mode, fields in found.items()}
        float32 = rms[NUMPY]
        assert 0.8 < rms["bf16x9"] / float32 < 1.2
        assert 1.8 < rms["tf32x3"] / float32 < 2.6
        assert 1000 < rms["tf32"] / float32 < 5000
        for mode in (NUMPY, "f32", "bf16x9", "tf32x3"):
            assert 0.6 < found[mode][field]["growth of rms"][0] < 1.05
        waves, whole = (report["ratios"][kind][field] for kind in ("waves", "whole"))
        assert max(waves) < 1
        assert max(whole) < 1.8
    assert max(report["ratios"]["whole"]["V"]) < 1
    for field in ("U", "V"):  # tf32 begins with c^1, and has no power of c at the end
        first, last = found["tf32"][field]["growth of rms"]
        assert 0.95 < first < 1.05
        assert last > 3
        assert found["bf16"][field]["growth of rms"][1] > 10
    assert found["tf32"]["T"]["growth of rms"][1] < 1.1


def test_quantum_circuit(tmp_path: Path) -> None:
    pytest.importorskip("quimb")
    found = small("quantum_circuit", tmp_path)["circuits"]
    for one in found:
        assert one["state vector"] < 1e-12
        assert all(path["emulated"] for path in one["paths"])
        errors = {name: box["rms"] for name, box in one["boxes"].items()}
        float32 = errors["float32 to float64"]
        assert 1e-8 < float32 < 5e-6
        assert errors["bf16x9 to float64"] < 1.3 * float32
        assert 0 < errors["bf16x9 to float32"] < 2 * float32
        assert errors["path 1 to path 0, float32"] < 3 * float32
        assert errors["path 1, float32 to float64"] < 3 * float32
        assert errors["tf32 to float64"] > 100 * float32
        assert errors["bf16 to float64"] > 4 * errors["tf32 to float64"]


def test_what_the_document_says_of_circuits() -> None:
    """Check the claims on the recorded results."""
    report = json.loads((RESULTS / "quantum_circuit.json").read_text())
    boxes = [one["boxes"] for one in report["circuits"]]
    assert len(boxes) == 10

    def rms(name: str) -> np.ndarray:
        return np.array([one[name]["rms"] for one in boxes])

    float32 = rms("float32 to float64")
    assert all(rms("bf16x9 to float64") < float32)
    assert 0.7 < np.mean(rms("bf16x9 to float64") / float32) < 0.85
    assert np.mean(rms("bf16x9 to float32") / float32) < 1
    assert 0.9 < np.mean(rms("path 1, float32 to float64") / float32) < 1.2
    assert 700 < np.mean(rms("tf32 to float64") / float32) < 1000
    assert all(
        path["share"] > 0.9 for one in report["circuits"] for path in one["paths"]
    )
