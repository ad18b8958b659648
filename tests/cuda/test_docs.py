"""Run the code of the pages about GPUs, on the host's memory or on a GPU."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.documents import blocks, check_block
from tests.support.paths import ROOT

PAGES = [*sorted((ROOT / "docs" / "how_to").glob("cuda*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code(page, backend, monkeypatch):  # noqa: F811
    if backend is HOST:  # CuPy's own asks the driver
        monkeypatch.setattr(cupy, "asarray", backend.put)
    names = {"np": np, "td": td}
    found = [block for block in blocks(page, "python") if "tf32dtype.cuda" in block]
    assert found
    for block in found:
        check_block(block, names)
