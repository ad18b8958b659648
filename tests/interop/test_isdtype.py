"""np.isdtype knows our formats, and still knows NumPy's types."""

import importlib
import sys
import types

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run_code
from tf32dtype.interop import isdtype

pytestmark = pytest.mark.once

KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating")
KINDS += ("complex floating", "numeric")


@pytest.mark.parametrize("name", td.formats)
def test_formats_are_real_floating(name):
    scalar = td.formats[name].type
    for which in (scalar, np.dtype(scalar)):
        found = [kind for kind in KINDS if np.isdtype(which, kind)]
        assert found == ["real floating", "numeric"]
        assert np.isdtype(which, KINDS)
        assert np.isdtype(which, scalar)
        assert np.isdtype(which, (np.float32, np.dtype(scalar)))
        assert not np.isdtype(which, np.float32)
        assert not np.isdtype(np.float32, scalar)
    with pytest.raises(TypeError):
        np.isdtype(np.zeros(1, scalar), "numeric")


NUMPYS = f"""
import numpy as np
types = [np.dtype(c) for c in np.typecodes["All"]]
numbers = [np.dtype(c) for c in np.typecodes["AllInteger"] + np.typecodes["AllFloat"]]
def outcome(f, *arguments):
    try:
        return f(*arguments)
    except TypeError as error:
        return type(error)
def facts():
    tables = np._core._type_aliases
    named = sorted(
        (n, str(t)) for n, t in tables.allTypes.items() if t.__module__ == "numpy"
    )
    groups = {{
        name: [t for t in group if t.__module__ == "numpy"]
        for name, group in tables.sctypes.items()
    }}
    widest = [group[-1] for group in tables.sctypes.values()]
    return [
        # At the end of this one NumPy's own functions look for our dtypes.
        {{k: v[:7] if k == "AllFloat" else v for k, v in np.typecodes.items()}},
        named, groups, widest,
        [np.isdtype(t, k) for t in types for k in {KINDS}],
        [np.isdtype(t, k) for t in types for k in types],
        [str(np.promote_types(a, b)) for a in numbers for b in numbers],
        [str(np.result_type(a, x)) for a in numbers for x in (1, 1.5, 1j, a.type(1))],
        [outcome(np.isdtype, x, "numeric") for x in ("f4", float, 3, None)],
        [str(np.min_scalar_type(x)) for x in (1, 300, 1.5, 1e30, 1j)],
        [str(np.mintypecode(c)) for c in ("f", "fd", "F")],
    ]
"""


def test_numpys_own_answers_stay():
    program = NUMPYS + "before = facts()\nimport tf32dtype\nprint(before == facts())"
    assert run_code(program) == "True"


@pytest.fixture
def tables(monkeypatch):
    """Replace NumPy's tables of types by copies that have only NumPy's own types."""
    real = importlib.import_module("numpy._core._type_aliases")
    floats = [t for t in real.sctypes["float"] if t.__module__ == "numpy"]
    names = {n: t for n, t in real.allTypes.items() if t.__module__ == "numpy"}
    fake = types.SimpleNamespace(allTypes=names, sctypes={"float": floats})
    monkeypatch.setattr(isdtype, "import_module", lambda _: fake)
    return fake


def refuse(*_):
    raise TypeError("a NumPy dtype is needed")


def test_what_numpy_refuses_is_entered(tables, monkeypatch):
    monkeypatch.setattr(np, "isdtype", refuse)
    isdtype.register(td.formats)
    ours = [form.type for form in td.formats.values()]
    assert tables.sctypes["float"][: len(ours)] == ours
    assert set(ours) < set(tables.allTypes.values())


def test_what_numpy_knows_is_left_alone(tables):
    names, floats = dict(tables.allTypes), list(tables.sctypes["float"])
    isdtype.register(td.formats)  # registered at the import
    assert (tables.allTypes, tables.sctypes) == (names, {"float": floats})


@pytest.mark.parametrize("gone", ["allTypes", "sctypes", "float", "list", "module"])
def test_tables_of_another_numpy(tables, monkeypatch, gone):
    """Register no type if a table is missing: one table would give wrong answers."""
    monkeypatch.setattr(np, "isdtype", refuse)
    names = tables.allTypes
    before = dict(names)
    if gone in ("allTypes", "sctypes"):
        delattr(tables, gone)
    elif gone == "float":
        tables.sctypes.clear()
    elif gone == "list":
        tables.sctypes["float"] = tuple(tables.sctypes["float"])
    else:
        monkeypatch.setattr(isdtype, "import_module", importlib.import_module)
        monkeypatch.setitem(sys.modules, "numpy._core._type_aliases", None)
    isdtype.register(td.formats)
    assert names == before
