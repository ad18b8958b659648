"""The devices that are modeled: a row for each, with its other names and its peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from .block_scaled import BLOCK_SCALED, BlockScaled
from .models import ALIGNED, Board, Instruction, Model
from .rounded import ROUNDED

#: All models.
MODELS: tuple[Model, ...] = (*ALIGNED, *ROUNDED)

#: Other names of a board's matrix unit, by architecture; for CPUs, the processors and
#: cores that have it.
Alias = Literal[
    "Volta", "sm_70", "V100S", "Titan V", "Quadro GV100",
    "Turing", "sm_75", "RTX 20", "RTX 2080", "T4G",
    "Ampere", "sm_80", "sm_86", "A2", "A10", "A10G", "A16", "A30", "A40", "A6000",
    "A100X", "A800", "RTX 30", "RTX 3090", "RTX A6000",
    "Ada", "Ada Lovelace", "sm_89", "L2", "L4", "L20", "L40", "RTX 40", "RTX 4090",
    "RTX Ada", "RTX 6000 Ada",
    "Hopper", "sm_90", "sm_90a", "H200", "H800", "H20", "GH200", "Grace Hopper",
    "Blackwell", "sm_100", "sm_100a", "sm_100f", "B100", "GB200",
    "sm_120", "sm_120a", "sm_120f", "RTX 50", "RTX 5090", "RTX PRO 6000",
    "CDNA1", "gfx908", "CDNA2", "gfx90a", "MI210", "MI250", "CDNA3", "gfx942", "MI300A",
    "MI308X", "MI325X",
    "Cooper Lake", "Zen 4", "Zen 5", "znver4", "znver5",
    "AMX-BF16", "AMX-FP16", "Sapphire Rapids", "Emerald Rapids", "Granite Rapids",
    "FEAT_BF16", "Neoverse V1", "Neoverse N2", "Neoverse V2", "Graviton3", "Graviton4",
    "Grace",
]  # fmt: skip
DeviceName = Literal[Board, Alias]
#: An instruction of a device, in one name for both.
DeviceInstruction = Literal[
    "V100:mma.sync", "T4:mma.sync", "T4:mma.sync.m8n8k4", "A100:mma.sync",
    "L40S:mma.sync", "H100:wgmma", "H100:mma.sync", "B200:tcgen05", "B200:mma.sync",
    "RTX Blackwell:mma.sync", "MI100:mfma", "MI250X:mfma", "MI250X:mfma_1k",
    "MI300X:mfma", "AVX512_BF16:vdpbf16ps", "AMX:tdpbf16ps", "AMX:tdpfp16ps",
    "Arm BF16:bfdot", "Arm BF16:bfmmla", "Arm BF16:bfdot_ebf",
]  # fmt: skip


@dataclass(frozen=True)
class Device:
    """A device whose matrix unit is modeled, and its facts.

    See Also
    --------
    matmul : Multiply matrices as a device does.
    Model : The model of one instruction.

    Examples
    --------
    >>> import tf32dtype as td
    >>> device = td.tensor_core.devices["H200"]
    >>> device.name, device.instructions, device.peak["bfloat16"]
    ('H100', ('wgmma', 'mma.sync'), 989)
    """

    #: the name that other names stand for
    name: Board
    #: the vendor's name of the architecture, and the compilers'
    architecture: str
    #: other names that mean the same matrix unit
    aliases: tuple[Alias, ...]
    #: 10^12 dense operations per second, by format, from the board's data sheet; empty
    #: for CPUs
    peak: Mapping[str, float] = field(hash=False)
    #: the board of the data sheet
    board: str

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The device's models, first those of instructions that GEMM libraries use."""
        return tuple(model for model in MODELS if model.device == self.name)

    @cached_property
    def block_scaled(self) -> tuple[BlockScaled, ...]:
        """The models of its block-scaled instructions."""
        return tuple(model for model in BLOCK_SCALED if model.device == self.name)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The device's instructions, first those that GEMM libraries use."""
        return tuple(dict.fromkeys(model.instruction for model in self.models))


# Sources: NVIDIA's data sheets and architecture white papers of the boards; AMD's data
# sheets, with matrix instructions.
DEVICES = (
    Device(
        "V100",
        "Volta, sm_70",
        ("Volta", "sm_70", "V100S", "Titan V", "Quadro GV100"),
        {"float16": 125},
        "V100 SXM2",
    ),
    Device(
        "T4",
        "Turing, sm_75",
        ("Turing", "sm_75", "RTX 20", "RTX 2080", "T4G"),
        {"float16": 65},
        "T4",
    ),
    Device(
        "A100",
        "Ampere, sm_80, sm_86",
        (
            "Ampere", "sm_80", "sm_86", "A2", "A10", "A10G", "A16", "A30", "A40",
            "A6000", "A100X", "A800", "RTX 30", "RTX 3090", "RTX A6000",
        ),
        {"tf32": 156, "bfloat16": 312, "float16": 312},
        "A100 SXM",
    ),
    Device(
        "L40S",
        "Ada, sm_89",
        (
            "Ada", "Ada Lovelace", "sm_89", "L2", "L4", "L20", "L40", "RTX 40",
            "RTX 4090", "RTX Ada", "RTX 6000 Ada",
        ),
        {"tf32": 183, "bfloat16": 362, "float16": 362, "float8_e4m3fn": 733},
        "L40S",
    ),
    Device(
        "H100",
        "Hopper, sm_90",
        (
            "Hopper", "sm_90", "sm_90a", "H200", "H800", "H20", "GH200", "Grace Hopper",
        ),
        {"tf32": 495, "bfloat16": 989, "float16": 989, "float8_e4m3fn": 1979},
        "H100 SXM",
    ),
    Device(
        "B200",
        "Blackwell, sm_100",
        ("Blackwell", "sm_100", "sm_100a", "sm_100f", "B100", "GB200"),
        {"tf32": 1100, "bfloat16": 2250, "float16": 2250, "float8_e4m3fn": 4500},
        "HGX B200",
    ),
    Device(
        "RTX Blackwell",
        "Blackwell, sm_120",
        ("sm_120", "sm_120a", "sm_120f", "RTX 50", "RTX 5090", "RTX PRO 6000"),
        {"tf32": 104.8, "bfloat16": 209.5, "float16": 209.5, "float8_e4m3fn": 419},
        "RTX 5090",
    ),
    Device(
        "MI100",
        "CDNA1, gfx908",
        ("CDNA1", "gfx908"),
        {"float32": 46.1, "bfloat16": 92.3, "float16": 184.6},
        "MI100",
    ),
    Device(
        "MI250X",
        "CDNA2, gfx90a",
        ("CDNA2", "gfx90a", "MI210", "MI250"),
        {"float64": 95.7, "float32": 95.7, "bfloat16": 383, "float16": 383},
        "MI250X",
    ),
    Device(
        "MI300X",
        "CDNA3, gfx942",
        ("CDNA3", "gfx942", "MI300A", "MI308X", "MI325X"),
        {
            "float64": 163.4, "float32": 163.4, "tf32": 653.7, "bfloat16": 1307.4,
            "float16": 1307.4, "float8_e4m3fnuz": 2614.9,
        },
        "MI300X",
    ),
    Device(
        "AVX512_BF16",
        "x86-64, AVX512_BF16",
        ("Cooper Lake", "Zen 4", "Zen 5", "znver4", "znver5"),
        {},
        "",
    ),
    Device(
        "AMX",
        "x86-64, AMX-BF16, AMX-FP16",
        (
            "AMX-BF16", "AMX-FP16", "Sapphire Rapids", "Emerald Rapids",
            "Granite Rapids",
        ),
        {},
        "",
    ),
    Device(
        "Arm BF16",
        "AArch64, FEAT_BF16",
        (
            "FEAT_BF16", "Neoverse V1", "Neoverse N2", "Neoverse V2", "Graviton3",
            "Graviton4", "Grace",
        ),
        {},
        "",
    ),
)  # fmt: skip
