"""Fill values of masked arrays: infinities where there are, as for NumPy's floats.

`numpy.ma` makes its tables when it is imported, from the largest and least finite
numbers of the types that it finds registered then. A masked maximum of infinities
would come out finite, or fail if `numpy.ma` came first. It is not imported for this:
that would double the time that importing this package takes.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import numpy as np

from tf32dtype.format import Format

_MODULE = "numpy.ma.core"


class _Fillers:
    """A finder that corrects the tables once `numpy.ma.core` has been executed."""

    def __init__(self, least: Mapping[Any, float], greatest: Mapping[Any, float]):
        self._least = least
        self._greatest = greatest

    def correct(self, module: ModuleType) -> None:
        module.max_filler.update(self._least)
        module.min_filler.update(self._greatest)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_correct(module: ModuleType) -> None:
                execute(module)
                self.correct(module)

            spec.loader.exec_module = execute_and_correct  # type: ignore[method-assign]
        return spec


def register(formats: Mapping[str, Format]) -> None:
    """Fill with the least or greatest number of each format, Inf if it has it."""
    fillers = _Fillers(
        {f.type: -np.inf if f.has_infinity else f.min for f in formats.values()},
        {f.type: np.inf if f.has_infinity else f.max for f in formats.values()},
    )
    if _MODULE in sys.modules:
        fillers.correct(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, fillers)
