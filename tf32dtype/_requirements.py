"""What the package needs of its surroundings, said plainly if it is missing."""

from importlib import import_module

#: What the extras of pyproject.toml install. This package is on no index, so that its
#: extras are for a checkout alone (`pip install '.[demo]'`); these names are for all.
EXTRAS = {
    "demo": ["rich>=13", "scikit-learn>=1.5"],
    "cuda": ["cupy-cuda13x>=14.0.1", "nvidia-cuda-nvrtc>=13"],
    "cuda12": ["cupy-cuda12x>=14.0.1", "nvidia-cuda-nvrtc-cu12>=12.6"],
    "torch": ["torch>=2.13"],
}


def install(extra: str) -> str:
    """The command that installs what an extra names."""
    return f"pip install {' '.join(repr(package) for package in EXTRAS[extra])}"


def check() -> None:
    """Raise ImportError in a subinterpreter, or if NumPy is too old for the DType API
    in use."""
    # First: importing NumPy in a subinterpreter would keep it from the main one.
    if not _is_main_interpreter():
        raise ImportError(
            "tf32dtype cannot be imported in a subinterpreter: its dtypes, as NumPy's,"
            " belong to the process. Import it in the main interpreter, or in a process"
            " of its own (multiprocessing)"
        )
    import numpy as np

    release = tuple(int(part) for part in np.__version__.split(".")[:2])
    if release < (2, 4):
        raise ImportError(
            f"tf32dtype needs NumPy 2.4 or newer; this is NumPy {np.__version__}:"
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
