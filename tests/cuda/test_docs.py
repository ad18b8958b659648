"""README.md's and docs/cuda.md's code of GPUs, on the host's memory or on a GPU."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.documents import README, blocks, check_block
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    "path", [README, ROOT / "docs" / "cuda.md"], ids=lambda path: path.name
)
def test_code(path, backend, monkeypatch):  # noqa: F811
    if backend is HOST:  # CuPy's own asks the driver
        monkeypatch.setattr(cupy, "asarray", backend.put)
    # What README.md has made before.
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    names = {"np": np, "td": td, "x": x, "bfloat16": td.bfloat16}
    found = [block for block in blocks(path, "python") if "tf32dtype.cuda" in block]
    assert found
    for block in found:
        check_block(block, names)
