"""Compute the results of a device's matrix unit on the CPU, bit for bit.

>>> import numpy as np, tf32dtype as td
>>> a = np.full((1, 4), 0.1, np.float16)
>>> td.tensor_core.matmul(a, a.T, device="V100")
array([[0.03998047]], dtype=float32)
"""

from .block_scaled import BLOCK_SCALED, BlockScaled
from .device import MODELS, Device
from .explanation import explain
from .hypotheses import Hypothesis, Identification
from .identification import identify
from .look_up import devices
from .models import CONTESTED, Aligned, Contested, Model
from .products import matmul
from .rounded import Rounded

__all__ = [
    "BLOCK_SCALED",
    "CONTESTED",
    "MODELS",
    "Aligned",
    "BlockScaled",
    "Contested",
    "Device",
    "Hypothesis",
    "Identification",
    "Model",
    "Rounded",
    "devices",
    "explain",
    "identify",
    "matmul",
]


def __dir__() -> list[str]:
    return __all__
