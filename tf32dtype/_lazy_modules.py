"""Modules of a package that are imported when a program first names them."""

from collections.abc import Collection
from importlib import import_module
from types import ModuleType


def submodule(package: str, name: str, names: Collection[str]) -> ModuleType:
    """What `__getattr__` of a package returns for one of its modules.

    Raises
    ------
    AttributeError
        For another name; and if the module cannot be imported, as a library that it
        needs is missing. Completion and `help` go over what has this error, and over
        nothing that has another. ``import`` of the module raises the ImportError.
    """
    if name not in names:
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}; it has {', '.join(names)}"
        )
    try:
        return import_module(f"{package}.{name}")
    except ImportError as error:
        raise AttributeError(str(error)) from error
