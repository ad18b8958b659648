"""Every NumPy ufunc and function treats our types as float16."""

from __future__ import annotations

import inspect
from importlib import import_module

import numpy as np
import pytest

import tf32dtype as td
from tests.ufuncs import numpy_surface
from tests.ufuncs.numpy_surface_table import ANSWERED
from tf32dtype._functions import answers, averages

# float16 checks the tables themselves for the installed NumPy.
TYPES = [np.float16, td.bfloat16, td.tf32, td.float8_e4m3fn]


@pytest.mark.parametrize("prefix", numpy_surface.PREFIXES)
def test_every_name_is_decided(prefix: str) -> None:
    """Add a row to numpy_surface_table.py for each new name in NumPy."""
    assert numpy_surface.undecided(prefix) == []


def test_no_name_is_decided_twice() -> None:
    for prefix in numpy_surface.PREFIXES:
        rows = numpy_surface.rows(prefix)
        assert not {name for name in rows if rows.count(name) > 1}, prefix


@pytest.mark.parametrize("how", ["ufunc", "method"])
def test_ufuncs(how: str) -> None:
    faults = []
    for name in sorted({*numpy_surface.UFUNCS} - numpy_surface.STRING_UFUNCS):
        ufunc = getattr(numpy_surface.umath, name, None) or getattr(np, name)
        for expression in numpy_surface.ufunc_expressions(name)[how]:
            faults += numpy_surface.judge(
                lambda ufunc=ufunc: ufunc, expression, how, TYPES, f"ufunc.{name}"
            )
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("how", "prefix"),
    [(how, prefix) for how, part in numpy_surface.GROUPS.items() for prefix in part],
)
def test_functions(how: str, prefix: str) -> None:
    """Test all functions of a namespace that are judged alike."""
    faults = []
    for name, text in numpy_surface.GROUPS[how][prefix].items():
        if not hasattr(numpy_surface.namespace(prefix), name):
            continue
        for expression in (text,) if isinstance(text, str) else text:
            faults += numpy_surface.judge(
                lambda name=name: getattr(numpy_surface.namespace(prefix), name),
                expression,
                how,
                TYPES,
                prefix + name,
            )
    assert not faults, "\n".join(faults)


def test_answered_functions_have_no_argument_that_is_not_decided() -> None:
    """Handle each argument of a new NumPy in our functions, or pass it to NumPy."""
    found = {}
    for path in averages.ANSWERS | answers.ANSWERS:
        module, _, name = path.rpartition(".")
        found[path] = getattr(import_module(module), name)
    for name in answers.METHODS:
        found[name] = getattr(np.ndarray, name, None) or getattr(np.ufunc, name)
    decided = {name: args for args, text in ANSWERED.items() for name in text.split()}
    assert decided == {
        name: " ".join(inspect.signature(function).parameters)
        for name, function in found.items()
    }
