"""Import modules of a package, and their names, when a program first uses them.

A child that is forked while another thread imports a module could never import it: the
thread that has begun does not live there. So a fork waits until such an import is done.
"""

from collections.abc import Collection
from importlib import import_module
from types import ModuleType
from typing import Any

from .. import _core

# Its lock is taken inside ours, so it is made first: a fork takes the last one first.

_lock = _core.shared_lock()


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
            f"module {package!r} has no attribute {name!r}; use one of"
            f" {', '.join(names)}"
        )
    try:
        with _lock:
            return import_module(f"{package}.{name}")
    except ImportError as error:
        raise AttributeError(str(error)) from error


def attribute(package: str, module: str, name: str) -> Any:
    """What a package has of one of its modules."""
    with _lock:
        return getattr(import_module(f"{package}.{module}"), name)
