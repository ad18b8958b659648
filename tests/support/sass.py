"""Check the machine instructions of kernels, without a GPU."""

from __future__ import annotations

from functools import cache

import pytest

from tf32dtype._base import nvrtc
from tf32dtype.cuda._runtime.backend import Kernel

ARCHITECTURES = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]


@cache
def _compiled(file: str, options: tuple[str, ...], arch: str) -> tuple[bytes, str]:
    try:
        return nvrtc.compile_and_log(file, options, arch)
    except nvrtc.CudaError as error:
        if "cannot be loaded" in str(error):
            pytest.skip(str(error))
        raise


@cache
def _counts(file: str, options: tuple[str, ...], arch: str) -> dict[str, int]:
    found = nvrtc.opcodes(_compiled(file, options, arch)[0])
    if found is None:
        pytest.skip("no nvdisasm")
    return found


def check(
    kernel: Kernel, arch: str, needs: tuple[str, ...] = (), but: tuple[str, ...] = ()
) -> dict[str, int]:
    """Return the machine instructions of a kernel's file, after checks of all of them.

    No instruction uses local memory or flushes subnormals. `but` lists instructions
    that may flush, for reasons in a comment at the call site. Every prefix in `needs`
    occurs.
    """
    found = _counts(kernel.file, kernel.options, arch)
    assert found
    local = [name for name in found if name.startswith(("LDL", "STL"))]
    assert not local, f"{kernel} uses local memory on {arch}: {local}"
    # A step of the division of integers, in either kind of registers.
    harmless = ("F2I.FTZ.U32.TRUNC.NTZ", "UF2I.FTZ.U32.TRUNC.NTZ", *but)
    flushing = [x for x in found if ".FTZ" in x and not x.startswith(harmless)]
    assert not flushing, f"{kernel} flushes subnormals on {arch}: {flushing}"
    for prefix in needs:
        assert any(x.startswith(prefix) for x in found), f"{kernel}: no {prefix}"
    return found


def remarks(kernel: Kernel, arch: str) -> str:
    """Return the remarks of compiler and assembler, as of instructions made to wait."""
    return _compiled(kernel.file, kernel.options, arch)[1]
