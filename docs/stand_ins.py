"""Stand-ins for libraries that the reference needs only to import our modules.

Any module of such a library can be imported, and any attribute of it is a class, which
can be called, subscripted and subclassed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Anything(type):
    """The class of those classes."""

    def __getattr__(cls, name: str) -> Anything:
        return made(name, cls.__module__)

    def __getitem__(cls, item: Any) -> Anything:
        return cls

    def __iter__(cls) -> Any:
        return iter(())


def call(cls: Anything, *args: Any, **options: Any) -> Any:
    """What a class makes. As a decorator it leaves what it decorates as it is."""
    return args[0] if args and callable(args[0]) else cls


def made(name: str, module: str) -> Anything:
    """A class of a library."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything(name, (), {"__module__": module, "__new__": call})


class Library(ModuleType):
    """A module of a library."""

    #: newer than any that is asked for
    __version__ = "9999"
    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Anything:
        found = made(name, self.__name__)
        setattr(self, name, found)
        return found


class Finder(MetaPathFinder, Loader):
    """Finds the modules of some libraries."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self.libraries = libraries

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        known = name.partition(".")[0] in self.libraries
        return ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Library(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def use(libraries: Sequence[str], facts: dict[str, Any]) -> None:
    """Take stand-ins for these from now on; `facts` are what some names stand for."""
    sys.meta_path.insert(0, Finder(libraries))
    for path, value in facts.items():
        module, _, name = path.rpartition(".")
        setattr(import_module(module), name, value)
