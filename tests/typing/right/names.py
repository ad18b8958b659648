"""Names in variables: kept as Literals, or looked up in a table."""

import numpy as np
import numpy.typing as npt

import tf32dtype as td
from tf32dtype import typing as tdt


def rounded(
    x: npt.NDArray[np.float32], rounding: tdt.Rounding, format: tdt.FormatName
) -> npt.NDArray[np.floating]:
    return td.quantize(x, format, rounding=rounding)


def from_text(x: npt.NDArray[np.float32], name: str) -> npt.NDArray[np.floating]:
    """Look up any string in a table, whose rows then serve as names."""
    if name in td.blocks.formats:
        return td.blocks.round(x, td.blocks.formats[name])
    return td.quantize(x, td.formats[name])


def on_device(x: npt.NDArray[np.float16], name: str) -> npt.NDArray[np.float32]:
    return td.tensor_core.matmul(x, x, device=td.tensor_core.devices[name].name)


options: tdt.PrecisionName = "tf32"
with td.matmul_precision(options):
    pass
