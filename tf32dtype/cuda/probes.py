"""What a golden run asks: dot products whose results tell one arithmetic from another.

Everything is float32's bits, and follows from formats, accumulator and k alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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


def probes(unit: Unit, groups: Iterable[str] | None = None) -> Probes:
    """The probes of a unit.

    Parameters
    ----------
    unit : Unit
    groups : iterable of str, optional
        Names in `GROUPS`; all by default.
    """
    builder = Builder(unit.a, unit.b, unit.accumulator, unit.k)
    for name in GROUPS if groups is None else groups:
        builder.group = name
        GROUPS[name](builder)
    return builder.finish()
