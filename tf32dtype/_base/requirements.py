"""Check for packages that a function requires; raise an error if one is missing."""

import re
from importlib import import_module
from types import ModuleType

#: The packages that the extras of pyproject.toml install. This package is not on an
#: index: its extras work only in a checkout (`pip install '.[demo]'`). The names of the
#: packages work everywhere.
EXTRAS = {
    "demo": ["rich>=13"],
    "cuda": ["cupy-cuda13x>=14.0.1", "nvidia-cuda-nvrtc>=13"],
    "cuda12": ["cupy-cuda12x>=14.0.1", "nvidia-cuda-nvrtc-cu12>=12.6"],
    "torch": ["torch>=2.13"],
    "hdf5": ["h5py>=3.12"],
    "zarr": ["zarr>=3.1"],
    "onnx": ["onnx>=1.18"],
    "gguf": ["gguf>=0.17"],
    "arrow": ["pyarrow>=19"],
    "numba": ["numba>=0.61"],
    "ml-dtypes": ["ml_dtypes>=0.5"],
    "dask": ["dask>=2025.1", "distributed>=2025.1"],
}


def install(extra: str) -> str:
    """Return the command that installs what an extra names."""
    return f"pip install {' '.join(repr(package) for package in EXTRAS[extra])}"


def need(user: str, extra: str, module: str) -> ModuleType:
    """Return a module of another library, imported.

    Parameters
    ----------
    user : str
        The name that the error gives for the function that needs it: "td.hdf5".
    extra : str
        The extra that installs it; its first package is the module's.
    module : str

    Raises
    ------
    ImportError
        If it cannot be imported, or is older than the extra asks for.
    """
    try:
        found = import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{user} needs {module}, which cannot be imported ({error}). Use"
            f" {install(extra)}, or in a checkout pip install '.[{extra}]'"
        ) from error
    least = EXTRAS[extra][0].partition(">=")[2]
    version = str(getattr(found, "__version__", least))
    if _release(version) < _release(least):
        raise ImportError(
            f"{user} needs {module} {least} or newer; got {version}. Use"
            f" pip install -U {EXTRAS[extra][0]!r}"
        )
    return found


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def check() -> None:
    """Raise ImportError in a subinterpreter or with an old NumPy.

    That is a NumPy that is too old for the DType API in use.
    """
    # First: importing NumPy in a subinterpreter would keep it from the main one.
    if not _is_main_interpreter():
        raise ImportError(
            "tf32dtype cannot be imported in a subinterpreter. Use the main interpreter"
            " or another process (multiprocessing)"
        )
    import numpy as np

    release = tuple(int(part) for part in np.__version__.split(".")[:2])
    if release < (2, 4):
        raise ImportError(
            f"tf32dtype needs NumPy 2.4 or newer; got {np.__version__}. Use"
            " pip install -U 'numpy>=2.4'"
        )


def _is_main_interpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on; before
        try:
            interpreters = import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True  # this Python has no others
