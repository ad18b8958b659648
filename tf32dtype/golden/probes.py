"""What a golden run asks: dot products whose results tell one arithmetic from another.

Everything is float32's bits, and follows from formats, accumulator and k alone.
"""

from __future__ import annotations

from collections.abc import Callable

from . import extreme, ordinary
from .builder import Builder, Probes
from .units import Unit

_BUILDERS: tuple[Callable[[Builder], None], ...] = (
    ordinary.align, ordinary.alignr, ordinary.tie, ordinary.final, ordinary.pnorm,
    ordinary.group, ordinary.order, ordinary.perm,
    extreme.sub, extreme.subexp, extreme.zexp, extreme.zeroc, extreme.floor,
    extreme.negzero, extreme.carry, extreme.over, extreme.sign0, extreme.spec,
    extreme.nan, extreme.lowbits, extreme.czero, extreme.twice,
    ordinary.rand,
)  # fmt: skip

#: The groups of probes by name; what each pins is its first line of documentation.
GROUPS = {build.__name__: build for build in _BUILDERS}


def probes(unit: Unit) -> Probes:
    """What is asked of a unit.

    Parameters
    ----------
    unit : Unit

    Returns
    -------
    Probes
        Float32's bits of operands that the unit's formats hold (of tf32: of any), and
        the name of each probe's group. No group has a probe twice.
    """
    builder = Builder(unit)
    for name, build in GROUPS.items():
        builder.group = name
        build(builder)
    return builder.finish()
