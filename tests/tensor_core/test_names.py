"""Devices by names that users type: from drivers and PyTorch, and architectures."""

import pytest

from tf32dtype.tensor_core import devices

PRINTED = {
    "V100": [
        "Tesla V100-SXM2-16GB", "Tesla V100-PCIE-32GB", "NVIDIA TITAN V",
        "Tesla V100S-PCIE-32GB", "Tesla V100-FHHL-16GB", "GRID V100D-8C",
    ],
    "T4": [
        "Tesla T4", "NVIDIA T4", "NVIDIA GeForce RTX 2080 Ti", "Quadro RTX 8000",
        "NVIDIA TITAN RTX", "GeForce RTX 2060", "Quadro RTX 4000",
    ],
    "A100": [
        "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB",
        "NVIDIA A10", "NVIDIA A10G", "NVIDIA A2", "NVIDIA A30", "NVIDIA A40",
        "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3080 Ti", "NVIDIA RTX A6000",
        "NVIDIA RTX A4000", "NVIDIA GeForce RTX 3070 Laptop GPU",
        "NVIDIA A800-SXM4-80GB", "NVIDIA GeForce RTX 2050", "NVIDIA A100X",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "GRID A100-10C", "NVIDIA A40-48Q",
        "NVIDIA A800 40GB Active", "GRID A100D-10C",
    ],
    "L40S": [
        "NVIDIA L40S", "NVIDIA L40", "NVIDIA L4", "NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce RTX 4070 Ti SUPER", "NVIDIA GeForce RTX 4060 Laptop GPU",
        "NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 4000 SFF Ada Generation",
        "NVIDIA RTX 2000 Ada Generation", "NVIDIA L20", "NVIDIA L2", "NVIDIA L40S-48Q",
        "Ada Lovelace",
    ],
    "H100": [
        "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200",
        "NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e", "NVIDIA H20", "NVIDIA H800",
        "NVIDIA H20-3e", "NVIDIA H100XM-80C", "NVIDIA H100L-94C",
        "sm_90a", "SM90", "hopper", "Grace Hopper", "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    ],
    "B200": ["NVIDIA B200", "NVIDIA GB200", "sm_100"],
    "RTX Blackwell": [
        "NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5070 Ti",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "NVIDIA RTX PRO 4000 Blackwell", "sm_120",
    ],
    "MI100": ["AMD Instinct MI100", "gfx908:sramecc+:xnack-"],
    "MI250X": [
        "AMD Instinct MI250X / MI250", "AMD Instinct MI210", "gfx90a",
        "AMD Instinct MI250X/MI250", "AMD Instinct MI250X MCM OAM AC MBA",
        "gfx90a:sramecc+:xnack-",
    ],
    "MI300X": [
        "AMD Instinct MI300X", "AMD Instinct MI325X OAM", "gfx942", "CDNA3",
        "AMD Instinct MI308X", "AMD Instinct MI300X VF",
    ],
    "AVX512_BF16": ["avx512-bf16", "zen 5", "znver4"],
    "AMX": ["Sapphire Rapids", "Emerald Rapids", "AMX-BF16"],
    "Arm BF16": ["FEAT_BF16", "neoverse-v2"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "board"), [(x, board) for board, all in PRINTED.items() for x in all]
)
def test_what_drivers_print(name, board):
    assert devices[name].name == board
    assert devices[name.upper()].name == board
    assert name in devices


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce GTX 1660", "NVIDIA B300 SXM6",
        "NVIDIA GB10", "Tesla P100-PCIE-16GB", "Tesla K80", "RTX", "NVIDIA", "80GB", "",
        "H100 or so", "A100 clone", "H100:mma.sync", "H100!", 5,
        "NVIDIA RTX A6000000", "NVIDIA GeForce RTX 50900", "gfx950", "sm_87",
    ],
)  # fmt: skip
def test_what_has_no_model_is_unknown(name):
    with pytest.raises(
        KeyError,
        match=r"device must be one of td\.tensor_core\.devices; got .*\. (Did|Other)",
    ):
        devices[name]
