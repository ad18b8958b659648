"""zarr is told of the formats when the program imports it.

The entry points of pyproject.toml need an installed package, and zarr before 3.4.1
opens what is stored without a look at them.
"""

from contextlib import suppress
from importlib import import_module
from types import ModuleType

from .._base.imports import when_imported


def register() -> None:
    """Have zarr know the formats, once it is imported."""
    when_imported("zarr", _tell)


def _tell(zarr: ModuleType) -> None:
    with suppress(ImportError):  # it is older than 3.1, and goes on without
        import_module("tf32dtype.interop.zarr")
