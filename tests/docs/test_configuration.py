"""The pages of installation and configuration name all variables of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import DOCS, REFERENCE
from tests.support.paths import ROOT
from tf32dtype._base.requirements import EXTRAS

pytestmark = pytest.mark.once

PAGE = REFERENCE / "configuration.md"
SUFFIXES = {".py", ".pyx", ".pxi", ".c", ".h", ".cu"}
#: A variable of this project (names that end in _H guard headers), or any that is read.
NAMED = re.compile(r"\b(TF32DTYPE_(?!\w*_H\b)[A-Z_]+[A-Z])\b")
READ = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[)\s*["']([A-Z_]+)["']""")


def sources() -> Iterator[Path]:
    """Yield every source file of the package and of its build."""
    yield ROOT / "setup.py"
    for folder in ("src", "tf32dtype"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES:
                yield path


def variables() -> set[str]:
    """Return the environment variables in the sources."""
    found: set[str] = set()
    for path in sources():
        text = path.read_text()
        found |= {*NAMED.findall(text), *READ.findall(text)}
    return found


def documented() -> set[str]:
    """Return the variables in the first column of the page's tables."""
    return set(re.findall(r"^\| `([A-Z0-9_]+)` \|", PAGE.read_text(), re.M))


def test_every_variable_is_on_the_page() -> None:
    found = variables()
    assert {"TF32DTYPE_ISA", "TF32DTYPE_ISAS", "CUPY_CACHE_DIR", "LD_PRELOAD"} <= found
    assert found - documented() == set()


def test_the_page_names_no_other_variable_of_ours() -> None:
    ours = {name for name in documented() if name.startswith("TF32DTYPE_")}
    assert ours <= variables()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('getenv("TF32DTYPE_ISA");', {"TF32DTYPE_ISA"}),
        ("#ifndef TF32DTYPE_BLAS_CALL_H", set()),
        ('os.environ.get("HOME", "")', {"HOME"}),
        ("# TF32DTYPE_OPENMP=0 has no threads", {"TF32DTYPE_OPENMP"}),
    ],
)
def test_what_counts(line: str, found: set[str]) -> None:
    assert {*NAMED.findall(line), *READ.findall(line)} == found


def test_every_extra_is_on_the_page() -> None:
    page = (DOCS / "get_started" / "installation.md").read_text()
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.M)) == set(EXTRAS)
