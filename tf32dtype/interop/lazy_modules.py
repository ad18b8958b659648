"""Import modules of a package, and their names, when a program first uses them.

If a process forks while another thread imports a module, the child could never import
that module, because the importing thread does not exist in the child. So a fork waits
until such an import is finished.
"""

from collections.abc import Collection
from importlib import import_module
from types import ModuleType
from typing import Any

from .. import _core

# The lock of `_core` is taken while ours is held. So it is made first, because a fork
# takes the locks in the reverse order.

_lock = _core.shared_lock()


def submodule(package: str, name: str, names: Collection[str]) -> ModuleType:
    """Import and return a module of a package, for the `__getattr__` of the package.

    Raises
    ------
    AttributeError
        For another name, and if the module cannot be imported because a library is
        missing. Completion and `help` skip names that raise this error, but fail for
        any other error. An ``import`` of the module raises the ImportError itself.
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
    """Return an attribute of a module of a package, and import the module if needed."""
    with _lock:
        return getattr(import_module(f"{package}.{module}"), name)
