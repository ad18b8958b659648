"""Provide scikit-learn's images of digits to the examples, without its imports."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import ROOT

STUB = """
import pathlib
import numpy as np

def load_digits(return_X_y):
    assert return_X_y
    with np.load(pathlib.Path(__file__).with_name("digits.npz")) as file:
        return file["images"], file["digits"]
"""


def variables_of_stub(folder: Path) -> dict[str, str]:
    """Return variables of a process whose `sklearn` has only the images.

    The imports of scikit-learn take seconds under `tf32dtype run`, but the programs
    need only the images. A number of threads is set, so that no program restarts
    itself.
    """
    datasets = pytest.importorskip("sklearn.datasets")
    images, digits = datasets.load_digits(return_X_y=True)
    package = folder / "stub" / "sklearn"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "datasets.py").write_text(STUB)
    np.savez(package / "digits.npz", images=images, digits=digits)
    return {
        "PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
