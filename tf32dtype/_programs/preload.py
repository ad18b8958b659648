"""Use the library that intercepts BLAS calls in programs that are not Python."""

from __future__ import annotations

import os
from pathlib import Path

from .. import _core
from .._base.errors import UserError
from .._matmul.precisions import Settings, find_precision, whole_name
from .variables import BLAS_VARIABLE, VARIABLE


def library() -> str:
    """Return the path of the library, for ``LD_PRELOAD``.

    Raises
    ------
    UserError
        If the library does not exist on this system.
    """
    path = Path(_core.__file__).with_name("tf32dtype_blas.so")
    if not _core.blas_available() or not path.exists():
        raise UserError(
            "the library that intercepts BLAS is not available on this system; use"
            " Linux on x86-64 or AArch64"
        )
    return str(path)


def words(settings: Settings) -> str:
    """Return the options of a precision in the syntax of ``TF32DTYPE_BLAS``."""
    found = [
        name
        for name in ("float64", "complex64", "dots", "lapack")
        if getattr(settings, name)
    ]
    for name, usual in (
        ("rounding", None),
        ("scale", "tensor"),
        ("special_values", "propagate"),
        ("min_size", 0),
    ):
        value = getattr(settings, name)
        if value != usual:
            found.append(f"{name}={value}")
    return ",".join(found)


def environment(settings: Settings, quiet: bool = False) -> dict[str, str]:
    """Return the variables of a process whose products use the settings.

    With `quiet`, that process prints no report.
    """
    others = os.environ.get("LD_PRELOAD", "")
    found = {"LD_PRELOAD": ":".join(filter(None, [library(), others]))}
    if settings.precision is not None:
        found[VARIABLE] = find_precision(settings.precision).short
        found[BLAS_VARIABLE] = ",".join(
            filter(None, [words(settings), "quiet" * quiet])
        )
    return found


def for_children(settings: Settings, quiet: bool) -> bool:
    """Set the variables that make child processes use the precision.

    They cannot use a device's precision, "exact" and emulated precisions. Then their
    products are only counted.

    Returns
    -------
    bool
        Whether their products are only counted.
    """
    only_counts = settings.device is not None or whole_name(settings.precision)
    if only_counts and os.environ.get(VARIABLE):
        return False  # they use the precision that this variable names
    path = _core.share_counts()
    if path:
        os.environ["TF32DTYPE_BLAS_COUNTS"] = path
    if only_counts and not path:
        return False
    used = Settings(None) if only_counts else settings
    os.environ.update(environment(used, quiet))
    return bool(only_counts)
