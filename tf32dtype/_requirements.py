"""What the package needs of its surroundings, said plainly if it is missing."""

import numpy as np


def check() -> None:
    """Raise ImportError if NumPy is too old for the DType API in use."""
    release = tuple(int(part) for part in np.__version__.split(".")[:2])
    if release < (2, 4):
        raise ImportError(
            f"tf32dtype needs NumPy 2.4 or newer; this is NumPy {np.__version__}:"
            " pip install -U 'numpy>=2.4'"
        )
