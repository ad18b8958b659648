"""The .pxd files of tf32dtype/_core declare exactly what its .pxi files use."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

CORE = ROOT / "tf32dtype" / "_core"
PARTS_OF = {".pxd", ".pxi", ".pyx"}
#: `_core.pyx` cimports these for all .pxi files.
SHARED = {"python_api", "numpy_api", "glue"}
#: Structs that are made or converted as a whole, without names of fields.
WHOLE = {"PyMethodDef", "PyType_Slot", "tf_figures"}


def bare(text: str) -> str:
    """Return code without strings and comments."""
    text = re.sub(r'""".*?"""|"(?:[^"\\\n]|\\.)*"', '""', text, flags=re.DOTALL)
    return re.sub(r"#[^\n]*", "", text)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def declared(pxd: str) -> tuple[set[str], set[str], set[str]]:
    """Return the types, fields, and other names that a .pxd file declares."""
    types: set[str] = set()
    fields: set[str] = set()
    others: set[str] = set()
    struct = None  # the struct of the next fields
    for line in re.sub(r"([,(])\s*\n\s*", r"\1 ", pxd).split("\n"):
        if re.match(r"\S(?!typedef)|\s*$|\s*pass\b", line):
            continue
        if not line.startswith(" " * 8):
            struct = None
        if found := re.match(r"\s*(?:ctypedef )?(?:(struct)|enum)\b *(\w*)", line):
            struct = found[1] and found[2]
            types |= {found[2]} - {""}
        elif found := re.match(r".*?\(\*(\w+)\)|[^(]*?(\w+)\(", line):
            kind = types if "ctypedef" in line else fields if struct else others
            kind.add(found[1] or found[2])
        elif struct not in WHOLE:
            kind = types if "ctypedef" in line else fields if struct else others
            listed = re.sub(r"\[.*?\]|\"\"", "", line).split(",")
            kind.update(words(name)[-1] for name in listed)
    return types, fields, others


PXD = {
    ".".join(path.relative_to(CORE).with_suffix("").parts): bare(path.read_text())
    for path in CORE.rglob("*.pxd")
}
PARTS = {
    path.relative_to(CORE).as_posix(): bare(path.read_text())
    for path in [*CORE.rglob("*.pxi"), *CORE.glob("*.pyx")]
}


def test_what_is_declared():
    types, fields, others = declared(
        bare(
            'cdef extern from "a.h" nogil:\n'
            "    struct a:\n        int b, c[3]\n        void (*d)(a *)\n"
            "    enum:\n        E, F\n    ctypedef e **g\n"
            "    const a *h(int,\n           int x)\n    object i\n"
        )
    )
    assert types == {"a", "g"}
    assert fields == {"b", "c", "d"}
    assert others == {"E", "F", "h", "i"}


@pytest.mark.parametrize("name", sorted(PXD))
def test_each_declaration_is_used(name):
    used = {word for text in PARTS.values() for word in words(text)}
    mentions = Counter(word for text in PXD.values() for word in words(text))
    types, fields, others = declared(PXD[name])
    assert types | others
    assert not (fields | others) - used
    assert not {x for x in types - used if mentions[x] < 2}


def test_each_header_is_declared_once():
    texts = [path.read_text() for path in CORE.rglob("*.p*") if path.suffix in PARTS_OF]
    headers = Counter(re.findall(r'extern from "(.*?)"', "\n".join(texts)))
    assert headers.most_common(1)[0][1] == 1


@pytest.mark.parametrize("part", sorted(PARTS))
def test_each_part_cimports_the_subjects_that_it_uses(part):
    used = set(words(PARTS[part]))
    found = set(re.findall(r"from tf32dtype\._core\.([\w.]+) cimport \*", PARTS[part]))
    wanted = {
        name
        for name, text in PXD.items()
        if used & set.union(*declared(text)[::2]) and name not in SHARED
    }
    assert found == wanted | (SHARED if part.endswith(".pyx") else set())
