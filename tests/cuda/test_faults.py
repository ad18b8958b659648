"""Each fault that a table names can be put where its kernel has the anchor.

The tests that run with the faults are samples of these tables.
"""

from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("cupy")

from tests.support.cuda import HOST
from tests.support.simulator.backend import Fault
from tf32dtype._base import nvrtc

pytestmark = pytest.mark.once

TABLES = {
    (path.stem, name): table
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if path != Path(__file__)
    for name, table in vars(import_module(f"tests.cuda.{path.stem}")).items()
    if name.startswith("FAULTS")
}


def test_tables_are_found() -> None:
    assert sum(map(len, TABLES.values())) > 150


@pytest.mark.parametrize("place", TABLES, ids="-".join)
def test_faults_fit_their_lines(place: tuple[str, str]) -> None:
    files = HOST._anchors()
    for name, (before, after, *_) in TABLES[place].items():
        (text,) = (
            path.read_text()
            for folder in nvrtc.FOLDERS
            if (path := Path(folder, files[name])).is_file()
        )
        assert Fault(name, before, after)(text) != text
