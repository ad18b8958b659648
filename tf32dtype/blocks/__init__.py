"""Arrays with a few bits per value and a scale per block: TCFP, OCP MX and NVFP4.

>>> import numpy as np, tf32dtype as td
>>> weights = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)
>>> td.blocks.quantize(weights, "mxfp4")
BlockArray('mxfp4', shape=(2, 64), axis=1, scale_format='float8_e8m0fnu', 4.25 bits)
"""

from .array import BlockArray
from .error_feedback import ErrorFeedback
from .formats import BlockFormat, formats
from .products import matmul
from .quantization import quantize
from .recoding import recode
from .rounding import round
from .scale_layouts import swizzle_scales, unswizzle_scales
from .tile_quantization import quantize_tiles
from .tiles import TileArray
from .torch_operands import TorchOperand

__all__ = [
    "BlockArray",
    "BlockFormat",
    "ErrorFeedback",
    "TileArray",
    "TorchOperand",
    "formats",
    "matmul",
    "quantize",
    "quantize_tiles",
    "recode",
    "round",
    "swizzle_scales",
    "unswizzle_scales",
]


def __dir__() -> list[str]:
    return __all__
