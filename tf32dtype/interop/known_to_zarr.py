"""Register the formats with zarr when the program imports zarr.

The entry points in pyproject.toml are not enough: they need an installed package, and
zarr before 3.4.1 does not read them when it opens stored arrays.
"""

from contextlib import suppress
from importlib import import_module
from types import ModuleType

from .._base.imports import when_imported


def register() -> None:
    """Register the formats with zarr, once it is imported."""
    when_imported("zarr", _tell)


def _tell(zarr: ModuleType) -> None:
    with suppress(ImportError):  # zarr before 3.1 works without the formats
        import_module("tf32dtype.interop.zarr")
