"""Completion, signatures and help in a console."""

from __future__ import annotations

import inspect
import pydoc
import re
import rlcompleter
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

#: Modules of the package, except cuda, which needs a GPU.
MODULES = [
    td,
    td.blocks,
    td.hdf5,
    td.interop,
    td.linalg,
    td.safetensors,
    td.tensor_core,
    td.testing,
    td.typing,
]
LAZY = set(
    "blocks cuda hdf5 interop linalg safetensors tensor_core testing typing".split()
)
BLOCKS = td.blocks.quantize(np.ones((2, 32), np.float32), "mxfp4")
TILES = td.blocks.quantize_tiles(np.ones((2, 32), np.float32))


def fresh(program: str) -> str:
    """Return the output of a program in a new process."""
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, cwd=ROOT, text=True)


# -- dir -------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_dir_has_the_public_names_alone(module: ModuleType) -> None:
    lazy = {"cuda", "typing"} if module is td else set()
    assert set(dir(module)) == {*module.__all__, *lazy}
    assert not [name for name in dir(module) if name[0] == "_" and name[1] != "_"]


def test_modules_are_listed_before_they_are_imported() -> None:
    listed = fresh(
        "import sys, tf32dtype as td\n"
        "print(*dir(td))\n"
        "print(*[name for name in sys.modules if name.startswith('tf32dtype.')])"
    )
    names, imported = (line.split() for line in listed.splitlines())
    assert set(names) >= LAZY
    assert set(names) == set(dir(td))
    loaded = {f"tf32dtype.{name}" for name in LAZY - {"interop"}}
    assert loaded.isdisjoint(imported)


def test_star_takes_what_needs_no_other_library() -> None:
    listed = fresh("from tf32dtype import *\nprint(*globals())").split()
    assert {"tf32", "blocks", "tensor_core"} <= set(listed)
    assert {"cuda", "typing"}.isdisjoint(listed)


@pytest.mark.parametrize("array", [BLOCKS, TILES])
def test_arrays_of_blocks_show_public_names(array: Any) -> None:
    shown = {name for name in dir(array) if not name.startswith("_")}
    assert {"dequantize", "scales", "elements", "T", "shape", "nbytes"} <= shown


def test_a_missing_library_is_no_attribute_and_an_import_error() -> None:
    """Raise AttributeError for loops over `dir`, and a clear ImportError."""
    program = (
        "import sys\n"
        "sys.modules['pyarrow'] = sys.modules['cupy'] = None\n"
        "import tf32dtype as td\n"
        "for package, name in ((td, 'cuda'), (td.interop, 'arrow')):\n"
        "    assert name in dir(package)\n"
        "    try:\n"
        "        getattr(package, name)\n"
        "    except AttributeError as error:\n"
        "        print(error)\n"
        "for name in ('tf32dtype.cuda', 'tf32dtype.interop.arrow'):\n"
        "    try:\n"
        "        __import__(name)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    lines = fresh(program).splitlines()
    assert len(lines) == 4
    for line in lines:
        assert "pip install" in line, line
    assert lines[:2] == lines[2:]


# -- signatures and help ---------------------------------------------------------------


def callables() -> Iterator[tuple[str, Any]]:
    """Yield public functions, classes, and the methods of these classes."""
    for module in MODULES:
        for name in module.__all__:
            if module is td.interop:
                continue  # its names are modules
            found = getattr(module, name)
            is_alias = module is td.typing and not isinstance(found, type)
            if isinstance(found, ModuleType) or not callable(found) or is_alias:
                continue
            yield f"{module.__name__}.{name}", found
            if not isinstance(found, type):
                continue
            for method, function in vars(found).items():
                if method[0] != "_" and callable(function):
                    yield f"{module.__name__}.{name}.{method}", function


def test_signatures_are_shown() -> None:
    """Show the keywords of a TypedDict one by one."""
    found = list(callables())
    assert len(found) > 100
    for name, function in found:
        assert "**options" not in str(inspect.signature(function)), name
        assert len(inspect.getdoc(function) or "") > 10, name


def test_scalar_types_show_how_they_are_made() -> None:
    for form in td.formats.values():
        assert str(inspect.signature(form.type)) == "(x=0.0, /)", form.name
        assert f"A number of {form.bits} bits" in (form.type.__doc__ or ""), form.name
        assert str(inspect.signature(form.type.hex)) == "(self, /)", form.name


def test_annotations_name_types_in_a_word() -> None:
    """Name types by one word, as a list of all devices would fill a screen."""
    assert len(str(inspect.signature(td.matmul))) < 500
    assert "precision: 'PrecisionName | None'" in str(inspect.signature(td.matmul))


@pytest.mark.parametrize("module", MODULES)
def test_help_is_shown(module: ModuleType) -> None:
    text = pydoc.render_doc(module, renderer=pydoc.plaintext)
    assert module.__name__ in text


# -- completion ------------------------------------------------------------------------


def completed(text: str) -> set[str]:
    """Return what Python's console completes; functions without parentheses."""
    completer = rlcompleter.Completer({"td": td, "np": np})
    found: set[str] = set()
    while (match := completer.complete(text, len(found))) is not None:
        found.add(match)
    return {match.rstrip("()") for match in found}


def test_console_completes() -> None:
    assert completed("td.") >= {f"td.{name}" for name in dir(td) if name[0] != "_"}
    assert completed("td.blocks.q") == {
        "td.blocks.quantize",
        "td.blocks.quantize_tiles",
    }
    assert completed("td.tensor_core.ex") == {"td.tensor_core.explain"}
    assert completed("td.cu") == {"td.cuda"}
    assert completed("td.interop.d") == {"td.interop.dask"}


@pytest.fixture(params=[False, True], ids=["live", "jedi"])
def shell(
    request: pytest.FixtureRequest,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    """Yield a shell of IPython that knows `td`."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    made = interactive.InteractiveShell()
    made.user_ns |= {"td": td, "np": np}
    made.Completer.use_jedi = request.param
    made.Completer.jedi_compute_type_timeout = 0
    yield made
    made.history_manager.end_session()


def offered(shell: Any, text: str) -> set[str]:
    provisional = import_module("IPython.core.completer").provisionalcompleter
    with provisional():
        found = shell.Completer.completions(text, len(text))
        return {text[: x.start] + x.text for x in found}


def test_ipython_completes(shell: Any) -> None:
    for module, text in ((td, "td."), (td.blocks, "td.blocks.")):
        public = {text + name for name in dir(module) if name[0] != "_"}
        assert offered(shell, text) == public
    assert offered(shell, "td.tensor_core.id") == {"td.tensor_core.identify"}
    assert offered(shell, "td.float6_") == {"td.float6_e2m3fn", "td.float6_e3m2fn"}


def test_ipython_shows_signature_and_docstring(shell: Any) -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", shell.object_inspect_text("td.matmul"))
    assert "Multiply matrices in a chosen precision." in text
    assert "precision: 'PrecisionName | None' = None" in text
    assert re.search(r"Parameters\n *-{10}\n", text)
