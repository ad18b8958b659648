"""docs/how_to/cuda.md's code, on the host's memory or on a GPU."""

import numpy as np

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.documents import blocks, check_block
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "how_to" / "cuda.md"


def test_code(backend, monkeypatch):  # noqa: F811
    if backend is HOST:  # CuPy's own asks the driver
        monkeypatch.setattr(cupy, "asarray", backend.put)
    names = {"np": np, "td": td}
    found = [block for block in blocks(PAGE, "python") if "tf32dtype.cuda" in block]
    assert found
    for block in found:
        check_block(block, names)
