"""Instructions as computed by mmasim, the released package of microsoft/MMA-Sim.

mmasim names them as PTX and the ISA of CDNA do. This module gives them the names of
this package, and passes codes as NumPy arrays.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ninja
import numpy as np
import pytest
import torch

# The import of mmasim compiles a file. It needs ninja on the PATH, and writes to a
# folder that outlives the process.
with tempfile.TemporaryDirectory() as _folder, pytest.MonkeyPatch.context() as _patch:
    _patch.setenv("TORCH_EXTENSIONS_DIR", _folder)
    _patch.setenv("PATH", ninja.BIN_DIR, prepend=os.pathsep)
    from mmasim import amd, nv_ptx
    from mmasim.amd import isa_mfma
    from mmasim.nv_ptx import isa_mma, isa_tcgen05mma, isa_wgmma

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """Codes: operands a and b (rows, k), c (rows,), and any scales (rows, blocks)."""

    a: Array
    b: Array
    c: Array
    scales: tuple[Array, ...] = ()


def together(groups: Sequence[Rows]) -> Rows:
    """Join rows of the same k."""
    a, b, c, scales = zip(*groups, strict=True)
    joined = map(np.concatenate, zip(*scales, strict=True))
    return Rows(*map(np.concatenate, (a, b, c)), tuple(joined))


class Facts(NamedTuple):
    """The facts that an instruction and its model share."""

    device: str
    instruction: str
    a: str
    b: str
    accumulator: str
    scale: str = ""
    block_size: int = 0


DEVICES = {
    "Volta": "V100",
    "Turing": "T4",
    "Ampere": "A100",
    "Ada Lovelace": "L40S",
    "Hopper": "H100",
    "Blackwell": "B200",
    "RTX Blackwell": "RTX Blackwell",
    "CDNA1": "MI100",
    "CDNA2": "MI250X",
    "CDNA3": "MI300X",
}
FORMATS = {
    "f64": "float64",
    "f32": "float32",
    "tf32": "tf32",
    "xf32": "tf32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "fp8": "float8_e4m3fnuz",
    "bf8": "float8_e5m2fnuz",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn",
    "ue8m0": "float8_e8m0fnu",
    "ue4m3": "ue4m3",
}


@dataclass(frozen=True)
class Instruction:
    """An instruction of mmasim."""

    name: str
    facts: Facts
    k: int
    operation: Any

    def __str__(self) -> str:
        return f"{self.facts.device} {self.facts.instruction} {self.name}"

    def results(self, rows: Rows) -> Array:
        """Return the codes of the accumulators after a chain of instructions."""
        facts, op = self.facts, self.operation
        packed = facts.instruction.endswith(("mxf4", "mxf4nvf4"))
        c = _tensor(rows.c, op.c_type)
        for start in range(0, rows.a.shape[1], self.k):
            here = slice(start, start + self.k)
            a = _tensor(_stored(rows.a[:, here], facts.a, packed), op.a_type)
            b = _tensor(_stored(rows.b[:, here], facts.b, packed), op.b_type)
            scales = []
            if facts.scale:
                size = facts.block_size
                blocks = slice(start // size, (start + self.k) // size)
                scales = [_tensor(x[:, blocks], op.s_type) for x in rows.scales]
            c = op.dpa(a, b, c, *scales)
        return c.numpy().view(rows.c.dtype)


def _tensor(codes: Array, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(codes).view(np.uint8)).view(dtype)


def _stored(codes: Array, name: str, packed: bool) -> Array:
    """Return codes as the instruction stores them. FP6 is in bits 5 to 0, FP4 in bits 5
    to 2. If packed, two FP4 share a byte, the first above."""
    if name != "float4_e2m1fn":
        return codes
    return codes[:, ::2] << 4 | codes[:, 1::2] if packed else codes << 2


# -- all of them -----------------------------------------------------------------------

Lists = Mapping[str, list[str]]  # by architecture


def instructions() -> Iterator[Instruction]:
    """Yield one instruction for each k and types, as m and n do not matter."""
    nvidia: list[tuple[str, Any, Lists]] = [
        ("mma.sync", nv_ptx.MMA, isa_mma.mma_shape_and_type),
        ("mma.sync", nv_ptx.MMABlockScale, isa_mma.mma_block_scale_shape_and_type),
        ("wgmma", nv_ptx.WGMMA, isa_wgmma.wgmma_shape_and_type),
        ("tcgen05", nv_ptx.TCGen05MMA, isa_tcgen05mma.tcgen05mma_shape_and_type),
        (
            "tcgen05",
            nv_ptx.TCGen05MMABlockScale,
            isa_tcgen05mma.tcgen05mma_block_scale_shape_and_type,
        ),
    ]
    for instruction, operation, lists in nvidia:
        for architecture, names in lists.items():
            for name in _distinct(r"m\d+n\d+", names):
                op = operation(architecture, name)
                facts = _of_nvidia(DEVICES[architecture], instruction, name)
                yield Instruction(name, facts, op.k, op)
    for architecture, names in isa_mfma.arch_mfma_suffix.items():
        for name in _distinct(r"\d+x\d+(?=x)|_\d+b(?=_)", names):
            op = amd.MFMA(architecture, name)
            yield Instruction(name, _of_amd(DEVICES[architecture], name), op.k, op)


def _distinct(left_out: str, names: list[str]) -> list[str]:
    """Return the first of the names that are equal without what `left_out` matches."""
    return [*{re.sub(left_out, "", name): name for name in names[::-1]}.values()][::-1]


def _of_nvidia(device: str, instruction: str, name: str) -> Facts:
    """Return the facts of m16n8k32[.kind::KIND][.blockSIZE].D.A.B[.C][.SCALE]."""
    shape, *parts = name.split(".")
    kind = parts.pop(0).removeprefix("kind::") if "kind::" in name else ""
    scaled = kind.startswith("mx")
    size = int(parts.pop(0).removeprefix("block")) if scaled else 0
    scale = FORMATS[parts.pop()] if scaled else ""
    result, a, b, *rest = (FORMATS[x] for x in parts)
    if device == "T4" and shape == "m8n8k4":  # Volta's, which Turing also has
        instruction += ".m8n8k4"
    return Facts(
        device,
        f"{instruction}.{kind}" if scaled else instruction,
        a,
        b,
        result if rest in ([], [result]) else f"{rest[0]} to {result}",
        scale,
        size,
    )


def _of_amd(device: str, name: str) -> Facts:
    """Return the facts of D_MxNxKA[_1k], or D_MxNxK[_4b]_A[_B]."""
    found = re.fullmatch(
        r"(f\d+)_\d+x\d+x\d+(?:_\d+b)?_?(x?b?fp?\d+)(?:_(b?fp?\d))?(_1k)?", name
    )
    assert found, name
    result, a, b, of_one_k = found.groups()
    return Facts(
        device,
        f"mfma{of_one_k or ''}",
        FORMATS[a],
        FORMATS[b or a],
        FORMATS[result],
    )
