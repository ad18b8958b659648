"""Multiply on this GPU's tensor cores, by cuBLAS or by kernels of this package.

The order in which cuBLAS adds is not known. The order of the kernels is documented in
`native` and `wgmma`. Overflow and invalid operations are not reported.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ..._base.wording import brief
from .._runtime import cublas
from .._runtime.backend import KEPT, current
from .._runtime.storage import raw
from . import cublaslt, native, wgmma
from .mode import OWN


def product(a: Any, b: Any, out: Any, instruction: str | None) -> None:
    """Multiply stacks of matrices on this GPU's tensor cores, and write them to `out`.

    Parameters
    ----------
    a, b : ndarray
        Arrays of shapes (s, m, k) and (s, k, n), with any strides. Their dtypes
        determine the format. float32 is multiplied as tf32: tensor cores ignore its low
        13 bits.
    out : cupy.ndarray
        float32 array of shape (s, m, n) in C order to write to.
    instruction : {None, "mma.sync", "wgmma"}
        Instruction of this package's kernels. None means cuBLAS, or cublasLt for FP8.

    Raises
    ------
    ValueError
        If this GPU's tensor cores do not support the formats or the instruction.
    """
    check_instruction(instruction)
    formats = _format(a), _format(b)
    _check(formats, instruction)
    if instruction == "mma.sync":
        native.multiply(raw(a), raw(b), out, formats)
    elif instruction == "wgmma":
        wgmma.multiply(raw(a), raw(b), out, formats)
    elif "float8" in formats[0]:
        cublaslt.gemm(raw(a), raw(b), out, formats)
    else:
        dtype = cublas.DTYPES[formats[0]]
        x, y = (cublas.arranged(x.view(dtype, cupy.ndarray)) for x in (a, b))
        current().gemm(x, y, out, formats[0])


def check_instruction(instruction: str | None) -> None:
    """Raise a ValueError for an instruction that this GPU does not support."""
    if instruction not in (None, *OWN):
        raise ValueError(
            "instruction must be None (cuBLAS), 'mma.sync' or 'wgmma' for the tensor"
            f" cores of this GPU; got {brief(instruction)}. Use mode='model' for other"
            " instructions"
        )
    if instruction == "wgmma" and not wgmma.is_here():
        raise ValueError(
            "instruction 'wgmma' needs compute capability 9.0; got"
            f" {current().architecture()}. Use 'mma.sync'"
        )


def _format(x: Any) -> str:
    return "tf32" if x.dtype == np.float32 else str(x.dtype.name)


def _check(formats: tuple[str, str], instruction: str | None) -> None:
    _check_of(current().architecture(), formats, instruction)


@lru_cache(maxsize=KEPT)
def _check_of(arch: str, formats: tuple[str, str], instruction: str | None) -> None:
    version, known = native.number(arch), native.FORMATS.items()
    has = [name for name, (_, first) in known if version >= first]
    eight = [name for name in has if "float8" in name]
    a, b = formats
    if a in has and (a == b or (a in eight and b in eight)):
        if instruction is None and a == b == "float8_e5m2":
            raise ValueError(
                "cublasLt cannot multiply float8_e5m2 by float8_e5m2; use"
                " instruction='mma.sync', or cast one to float8_e4m3fn"
            )
        return
    mixed = f", {' x '.join(eight)}" if eight else ""
    allowed = "no format of tf32dtype"
    if has:
        allowed = f"{', '.join(has)}, each by itself{mixed}"
    raise ValueError(
        f"the tensor cores of {arch} cannot multiply {a} by {b}; they multiply"
        f" {allowed}. Cast a and b, or use mode='chain' or mode='model'"
    )
