"""Types for annotations of arguments that this package's functions take.

>>> import numpy as np, numpy.typing as npt, tf32dtype as td
>>> def halved(
...     x: npt.NDArray[td.bfloat16], how: td.typing.Rounding
... ) -> npt.NDArray[td.bfloat16]:
...     return td.quantize(x / 2, td.bfloat16, rounding=how)

Most are a `typing.Literal` of all valid strings, so that type checkers find a wrong
one. At run time, `typing.get_args` returns the strings.
"""

from ._files.arrays import Archive
from ._files.npy import Header
from ._files.safetensors.writing import Scheme
from ._formats.aliases import (
    BlockFormatAlias,
    BlockFormatName,
    FormatAlias,
    FormatName,
    NumPyName,
)
from ._formats.codes import Dirty
from ._formats.naming import Owner
from ._formats.packing import Order
from ._formats.quantize import Overflow, Rounding, Tf32Rounding
from ._formats.typed import FormatLike, Terms
from ._matmul.explain import MatmulPlan
from ._matmul.precisions import PrecisionName, Scale, SpecialValues
from .blocks.divisions import Division, TileDivision
from .blocks.formats import BlockFormatLike, BlockSize, Rule, ScaleFormat
from .blocks.quantization import Overflow as BlockOverflow
from .blocks.scale_layouts import ScaleLayout
from .blocks.tiles import TileElement, TileScaleFormat
from .tensor_core.block_scaled import BlockInstruction
from .tensor_core.device import DeviceInstruction, DeviceName
from .tensor_core.models import Accumulator, Board, Instruction

__all__ = [
    "Accumulator",
    "Archive",
    "BlockFormatAlias",
    "BlockFormatLike",
    "BlockFormatName",
    "BlockInstruction",
    "BlockOverflow",
    "BlockSize",
    "Board",
    "DeviceInstruction",
    "DeviceName",
    "Dirty",
    "Division",
    "FormatAlias",
    "FormatLike",
    "FormatName",
    "Header",
    "Instruction",
    "MatmulPlan",
    "NumPyName",
    "Order",
    "Overflow",
    "Owner",
    "PrecisionName",
    "Rounding",
    "Rule",
    "Scale",
    "ScaleFormat",
    "ScaleLayout",
    "Scheme",
    "SpecialValues",
    "Terms",
    "Tf32Rounding",
    "TileDivision",
    "TileElement",
    "TileScaleFormat",
]


def __dir__() -> list[str]:
    return __all__
