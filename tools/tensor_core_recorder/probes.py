"""Make the recorded probes: dot products that distinguish arithmetics by their results.

Probes are float32's bits and depend only on the formats, the accumulator and k.
"""

from __future__ import annotations

from collections.abc import Callable

from . import extreme_cases, ordinary_cases
from .instructions import Unit
from .operand_builder import Builder, Probes

_BUILDERS: tuple[Callable[[Builder], None], ...] = (
    ordinary_cases.align, ordinary_cases.alignr, ordinary_cases.tie,
    ordinary_cases.final, ordinary_cases.pnorm, ordinary_cases.group,
    ordinary_cases.order, ordinary_cases.perm,
    extreme_cases.sub, extreme_cases.subexp, extreme_cases.zexp, extreme_cases.zeroc,
    extreme_cases.floor, extreme_cases.negzero, extreme_cases.carry,
    extreme_cases.over, extreme_cases.sign0, extreme_cases.spec, extreme_cases.nan,
    extreme_cases.lowbits, extreme_cases.czero, extreme_cases.twice,
    ordinary_cases.rand,
)  # fmt: skip

#: The functions that add the groups of probes, by name; their docstrings describe them.
GROUPS = {build.__name__: build for build in _BUILDERS}


def probes(unit: Unit) -> Probes:
    """Return the probes of a unit.

    Parameters
    ----------
    unit : Unit

    Returns
    -------
    Probes
        Float32's bits of operands that the unit's formats represent (any for tf32), and
        the name of each probe's group. No group has a probe twice.
    """
    builder = Builder(unit)
    for name, build in GROUPS.items():
        builder.group = name
        build(builder)
    return builder.finish()
