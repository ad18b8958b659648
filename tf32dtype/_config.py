"""The configuration of this build and the instruction sets of this machine."""

import platform
from typing import Any, Literal, overload

import numpy as np

from . import _core
from ._base.version import __version__
from ._base.wording import one_of


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, Any]: ...
def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, Any] | None:
    """Show versions and instruction sets, and whether a better build is possible.

    Parameters
    ----------
    mode : {"stdout", "dicts"}, optional
        "stdout" prints the configuration; "dicts" returns it as a dictionary.

    Returns
    -------
    dict or None
        With ``mode="dicts"``, a dictionary. It has the versions of the package, of
        Python and of NumPy. It has the instruction sets of this build, those that the
        CPU supports, and the one in use. It also says whether calls of a BLAS library
        can be intercepted. With ``mode="stdout"``, None.

    Raises
    ------
    ValueError
        If `mode` is neither "stdout" nor "dicts".

    See Also
    --------
    isa : Return only the instruction set in use.
    numpy.show_config : Show the configuration of NumPy.

    Notes
    -----
    ``pip install .`` compiles the kernels twice: for the best instruction set of the
    machine on which it runs, and for the baseline, which every machine supports. The
    package also works on a machine with a better set. This function then prints how to
    build for that set. Wheels contain all sets. The set affects only the speed, never
    the results.

    Examples
    --------
    >>> import tf32dtype as td
    >>> config = td.show_config(mode="dicts")
    >>> config["instruction_sets"]["built"]  # doctest: +SKIP
    ['baseline', 'x86-64-v3']
    >>> config["instruction_sets"]["used"] == td.isa()
    True
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(one_of("mode", mode, ("stdout", "dicts")))
    known = _core.instruction_sets()
    sets: dict[str, Any] = {
        "built": [name for name, built, _ in known if built],
        "cpu": [name for name, _, runs in known if runs],
        "used": _core.isa(),
    }
    config = {
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "instruction_sets": sets,
        "blas_interception": _core.blas_available(),
    }
    if mode == "dicts":
        return config
    interception = "available" if config["blas_interception"] else "not available"
    print(
        f"tf32dtype {config['version']}, NumPy {config['numpy']},"
        f" Python {config['python']}\n"
        f"instruction set in use: {sets['used']}\n"
        f"instruction sets of this build: {', '.join(sets['built'])}\n"
        f"instruction sets of this CPU: {', '.join(sets['cpu'])}\n"
        f"BLAS interception: {interception}"
    )
    best = sets["cpu"][-1]
    if best not in sets["built"]:
        print(
            f"This CPU has {best}, which this build leaves out. For more speed install"
            " again on this machine, or with TF32DTYPE_ISAS=all in the environment."
        )
    return None
