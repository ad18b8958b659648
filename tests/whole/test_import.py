"""Modules that `import tf32dtype` loads besides NumPy, and names that load later."""

import os

import pytest

import tf32dtype as td
from tests.support.interpreters import run, run_code

pytestmark = pytest.mark.once

LOADED = """
import sys, numpy
before = set(sys.modules)
import tf32dtype
print(*sorted(set(sys.modules) - before))
"""
#: Modules of Python: Cython's, and modules that detect a subinterpreter.
OTHERS = {"_interpreters", "_xxsubinterpreters", "cython_runtime", "_cython"}
#: The package's own modules, each of which costs finding and reading a file.
OWN = """
    _base _base.caller _base.imports _base.requirements _base.version _base.wording
    _core _core._core
    _formats _formats.aliases _formats.bit_packing _formats.codes _formats.naming
    _formats.table
    _functions _functions.answers _functions.averages _functions.sorting
    _programs _programs.variables
    interop interop.dask_hooks interop.dlpack interop.finfo interop.hooks
    interop.isdtype interop.known_to_zarr interop.lazy_modules
    interop.masked interop.numpy_testing interop.pandas
    interop.printing interop.scipy interop.tensors interop.text
""".split()


def test_import_loads_no_more_than_formats_need():
    found = {
        name
        for name in run_code(LOADED).split()
        if name.split(".")[0] not in OTHERS and not name.startswith("_cython_")
    }
    assert found == {"tf32dtype", *(f"tf32dtype.{name}" for name in OWN)}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", sorted(td._LATER))
def test_names_that_come_later(name):
    """Load a public name later from the module that has it."""
    assert name in td.__all__
    code = f"""
import tf32dtype as td
assert {name!r} not in vars(td)
print(td.{name}.__module__, td.{name} is vars(td)[{name!r}])
"""
    assert run_code(code).split() == [
        f"tf32dtype.{td._LATER[name]}",
        "True",
    ]


def test_a_star_brings_all_names():
    code = "import tf32dtype as td; from tf32dtype import *; "
    code += "print(all(globals()[x] is getattr(td, x) for x in td.__all__))"
    assert run_code(code) == "True"


@pytest.mark.parametrize("value", ["", "tf32"])
def test_a_precision_of_the_environment_is_set_by_the_import(value):
    code = "import sys, tf32dtype; print('tf32dtype._programs.context' in sys.modules)"
    found = run("-c", code, TF32DTYPE_MATMUL_PRECISION=value)
    assert found == str(bool(value))


FORKS = """
import os, sys, threading
import tf32dtype as td
names = sorted(td._LATER)
thread = threading.Thread(target=lambda: [getattr(td, name) for name in names])
sys.setswitchinterval(1e-6)
thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        [getattr(td, name) for name in names]
        os._exit(0)
    os.waitpid(child, 0)
thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_a_name_is_looked_up_finds_it_too():
    assert run("-W", "ignore", "-c", FORKS, timeout=60) == "done"


def test_a_command_loads_no_other_command():
    code = """
import sys
from tf32dtype._cli.main import _COMMANDS, main
main(["formats"])
print(*(name for name in _COMMANDS if f"tf32dtype._cli.{name}" in sys.modules))
"""
    assert run_code(code).splitlines()[-1] == "formats"
