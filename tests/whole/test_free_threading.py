"""A Python without a global interpreter lock."""

from __future__ import annotations

import sys
import sysconfig

import pytest

from tests.support.interpreters import run
from tests.support.paths import ROOT


@pytest.mark.once
def test_the_module_declares_that_it_needs_no_gil() -> None:
    """Declare it to Cython, which tells a free-threaded Python."""
    core = (ROOT / "tf32dtype/_core/_core.pyx").read_text()
    head = core.partition('"""')[0].splitlines()  # where Cython looks
    assert "# cython: freethreading_compatible=True" in head


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL"
)
def test_the_gil_stays_off() -> None:
    """Keep the GIL off; without the declaration, Python switches it on and warns."""
    code = f"import sys; sys.path = {sys.path}; import tf32dtype"
    code += "; print(sys._is_gil_enabled())"
    assert run("-E", "-W", "error", "-c", code) == "False"  # whatever PYTHON_GIL says
