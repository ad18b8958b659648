"""Tell the user's files from those of libraries, to choose the call site to report."""

from __future__ import annotations

import site
import sysconfig
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from .. import _core


def set_folders(stop_at: Iterable[str] = ()) -> None:
    """Set the folders whose frames count as code of libraries or of the user.

    Parameters
    ----------
    stop_at : iterable of str
        Packages and modules that count as the user's.

    Raises
    ------
    ValueError
        If there is no such package.
    """
    paths = sysconfig.get_paths()
    libraries = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    libraries += [*site.getsitepackages(), site.getusersitepackages()]
    own = [str(Path(__file__).parents[1])]
    libraries += own
    users = [folder for name in stop_at for folder in _folders(name)]
    _core.set_source_folders(*map(_without_links, (libraries, users, own)))


def _without_links(folders: list[str]) -> list[str]:
    return [str(Path(folder).resolve()) for folder in folders]


def _folders(package: str) -> list[str]:
    """Return the folders of a package's files, or the file of a module."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise ValueError(f"package must be importable; got {package!r}")
    found = [*(spec.submodule_search_locations or [])]
    return found or ([spec.origin] if spec.origin else [])
