"""What the package needs of its surroundings, said plainly if it is missing."""

import numpy as np

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
    """Raise ImportError if NumPy is too old for the DType API in use."""
    release = tuple(int(part) for part in np.__version__.split(".")[:2])
    if release < (2, 4):
        raise ImportError(
            f"tf32dtype needs NumPy 2.4 or newer; this is NumPy {np.__version__}:"
            " pip install -U 'numpy>=2.4'"
        )
