"""Every file that a comment, a docstring or a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

FOLDERS = ".ci benchmarks docs examples src tests tf32dtype tools".split()
TOP = """CHANGELOG.md CONTRIBUTING.md MANIFEST.in Makefile README.md pyproject.toml
setup.py""".split()
#: Code to search for names, by kind of file: comments, docstrings, or all of it.
TEXTS = {
    (".c", ".h", ".cu"): r"/\*.*?\*/|//[^\n]*",
    (".py", ".pxi", ".pyx", ".pxd", ".pyi"): r'(?<!\S)#[: ][^\n]*|""".*?"""',
    (".md",): r".+",
    # Commands in Makefile, .ci/run and tools/ name files, too.
    ("", ".in", ".toml"): r".+",
}
#: path/file.ext, and file.ext of our own code, but not inside of URLs and patterns.
NAME = re.compile(
    r"(?<![\w./*{}<>$-])(?:\.\./|\./)?"
    r"(?:[\w.-]+/)+[\w-]+\.(?:c|h|cu|py|pxi|pyx|pxd|pyi|md|json|toml|png)\b(?![\w/*])"
    r"|(?<![\w./*{}<>$-])\w[\w-]*\.(?:c|h|cu|py|pxi)\b(?![\w/*(\[])"
    r"|(?<![\w./*{}<>$-])(?:tools|\.ci)/[\w-]+(?![\w./*-])"
)
#: NAME.json, SUBJECT/*.c and similar names are for any file.
ANY = re.compile(r"[A-Z]{2,}[./]|[*]")
#: Files of others, and of users.
OTHERS = set(
    """math.h stdint.h string.h Python.h dlpack.h cublasLt.h library_types.h
    script.py solver.py job.c train.py numpy/_core/numeric.py""".split()
)


def files() -> list[Path]:
    found = [ROOT / name for name in TOP]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in found if "__pycache__" not in path.parts]


FILES = files()
#: Every string that ends a path: "matmul/pack.h", "pack.h".
ENDS = {
    "/".join(parts[i:])
    for parts in (path.relative_to(ROOT).parts for path in FILES)
    for i in range(len(parts))
}


def mentions(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of each mention of a file."""
    patterns = [x for kinds, x in TEXTS.items() if path.suffix in kinds]
    if path == Path(__file__) or not patterns:
        return
    text = path.read_text()
    for part in re.finditer(patterns[0], text, re.DOTALL):
        plain = re.sub(r"https?://\S+", lambda x: " " * len(x[0]), part[0])
        for name in NAME.finditer(plain):
            line = text.count("\n", 0, part.start() + name.start()) + 1
            yield line, name[0]


def is_there(path: Path, name: str) -> bool:
    if name in OTHERS or ANY.search(name) or name.lstrip("./") in ENDS:
        return True
    return (path.parent / name).exists() or (ROOT / name).exists()


def test_named_files_exist() -> None:
    seen = [(path, *found) for path in FILES for found in mentions(path)]
    assert len(seen) > 500
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, line, name in seen
        if not is_there(path, name)
    ]
    assert not missing, "\n" + "\n".join(missing)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("Makefile", "all:\n\ttools/nothing"),
        ("pyproject.toml", "files = ['benchmarks/nothing.py']"),
        ("run", "python benchmarks/nothing.py"),
        ("a.c", "/* See nothing.h. */"),
        ("a.pxi", "# See nothing.h."),
    ],
)
def test_a_name_of_nothing_is_found(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.write_text(text)
    [(_, name)] = mentions(path)
    assert "nothing" in name
    assert not is_there(path, name)
