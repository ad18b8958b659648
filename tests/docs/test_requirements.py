"""Instructions to install can work: no index has the package."""

import re
import tomllib

import pytest

from tests.support.paths import ROOT
from tf32dtype._base.requirements import EXTRAS, install

FOLDERS = ["benchmarks", "docs", "examples", "src", "tests", "tf32dtype", "tools"]
FILES = [
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".c", ".cu", ".h", ".md", ".pxi", ".py", ".pyx", "")
]
FILES += [ROOT / name for name in "CONTRIBUTING.md README.md Makefile setup.py".split()]

#: Code that makes pip search an index: the package's name without a path or URL. Extras
#: in brackets follow the name, unless the brackets index a test.
NAME = "tf32" + "dtype"
LOOKED_UP = re.compile(
    rf"""pip\ install\b[^\n`]*?[\ '"]{NAME}(?![\w./-]|\ @)
    | ['"`]{NAME}\[[\w,-]+\]['"`]""",
    re.VERBOSE,
)


def test_no_text_advises_what_cannot_work():
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in FILES
        if path.is_file() and str(path) != __file__
        for match in LOOKED_UP.finditer(path.read_text(errors="ignore"))
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"pip install {NAME}", True),
        (f"pip install -U '{NAME}[demo]'", True),
        (f'"{NAME}[cuda]"', True),
        ("pip install '.[demo]'", False),
        (f"pip install '{NAME} @ git+https://host/{NAME}'", False),
        (f"pip install ./{NAME}", False),
    ],
)
def test_what_is_looked_for(text, wrong):
    assert bool(LOOKED_UP.search(text)) == wrong


@pytest.mark.parametrize("extra", EXTRAS)
def test_advice_installs_what_the_extra_does(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"][extra] == EXTRAS[extra]
    assert all(repr(package) in install(extra) for package in EXTRAS[extra])
