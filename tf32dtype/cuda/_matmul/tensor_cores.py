"""Multiply on this GPU's tensor cores, by cuBLAS or by kernels of this package.

The order in which cuBLAS adds is not known. The order of the kernels is documented in
`native` and `wgmma`. Overflow and invalid operations are not reported.
"""

from __future__ import annotations

from functools import partial

from ..._base.wording import brief
from .._runtime import cublas
from .._runtime.backend import View, current
from . import cublaslt, native, wgmma
from .mode import OWN
from .tile_options import Matrices, Writer


def plan(a: Matrices, b: Matrices, c: Matrices, instruction: str | None) -> Writer:
    """Plan a product of stacks of matrices on this GPU's tensor cores.

    Parameters
    ----------
    a, b : Matrices
        Operands (s, m, k) and (s, k, n), with any strides.
    c : Matrices
        float32 result (s, m, n). Each matrix, and for an instruction also the stack, is
        in C order.
    instruction : {None, "mma.sync", "wgmma"}
        Instruction of this package's kernels. None means cuBLAS, or cublasLt for FP8.

    Raises
    ------
    ValueError
        If this GPU's tensor cores do not support the formats or the instruction.
    """
    check_instruction(instruction)
    formats = a.dtype.name, b.dtype.name
    _check(formats, instruction)
    if instruction == "mma.sync":
        return native.plan(a, b, c)
    if instruction == "wgmma":
        return wgmma.plan(a, b, c)
    if "float8" in formats[0]:
        return partial(cublaslt.gemm, formats=formats)
    return partial(by_cublas, kind=formats[0])


def by_cublas(a: View, b: View, out: View, kind: str, beta: float = 0.0) -> None:
    """Compute out = a @ b + beta out, for formats of `Backend.gemm`."""
    x, y = (cublas.arranged(x.view(cublas.DTYPES[kind])) for x in (a, b))
    current().gemm(x, y, out, kind, 1.0, beta)


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


def _check(formats: tuple[str, str], instruction: str | None) -> None:
    arch = current().architecture()
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
