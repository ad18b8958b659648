"""Every NumPy ufunc and function does with our types what it does with float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.ufuncs import numpy_surface

# float16 shows that the tables hold for the installed NumPy.
TYPES = [np.float16, td.bfloat16, td.tf32, td.float8_e4m3fn]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)


@pytest.mark.parametrize("prefix", numpy_surface.PREFIXES)
def test_every_name_is_decided(prefix: str) -> None:
    """A name that a new NumPy brings needs a row in numpy_surface_table.py."""
    assert numpy_surface.undecided(prefix) == []


def test_no_name_is_decided_twice() -> None:
    for prefix in numpy_surface.PREFIXES:
        rows = numpy_surface.rows(prefix)
        assert not {name for name in rows if rows.count(name) > 1}, prefix


@pytest.mark.parametrize(
    "name", [n for n in numpy_surface.UFUNCS if n not in numpy_surface.STRING_UFUNCS]
)
@each_type
def test_ufunc(name: str, scalar_type: Any) -> None:
    ufunc = getattr(numpy_surface.umath, name, None) or getattr(np, name)
    faults = []
    for how, expressions in numpy_surface.ufunc_expressions(name).items():
        for expression in expressions:
            fault = numpy_surface.judge(
                lambda: ufunc, expression, how, scalar_type, f"ufunc.{name}"
            )
            if fault:
                faults.append(f"{expression} -> {fault}")
    assert not faults, "\n".join([name, *faults])


def _cases() -> list[tuple[str, str, str, tuple[str, ...]]]:
    cases = []
    for how, part in numpy_surface.GROUPS.items():
        for prefix, rows in part.items():
            for name, text in rows.items():
                expressions = (text,) if isinstance(text, str) else text
                if hasattr(numpy_surface.namespace(prefix), name):
                    cases.append((how, prefix, name, expressions))
    return cases


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=[c[1] + c[2] for c in CASES])
@each_type
def test_function(case: tuple[str, str, str, Any], scalar_type: Any) -> None:
    how, prefix, name, expressions = case
    faults = []
    for expression in expressions:
        fault = numpy_surface.judge(
            lambda: getattr(numpy_surface.namespace(prefix), name),
            expression,
            how,
            scalar_type,
            prefix + name,
        )
        if fault:
            faults.append(f"{expression} -> {fault}")
    assert not faults, "\n".join([prefix + name, *faults])
