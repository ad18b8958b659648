"""Time matrix units of AMD and CPUs, and block scales, relative to NumPy's float32.

    python benchmarks/tensor_core/matrix_units.py [--quick] [--runs 3] [--json FILE]

"x" is the time of td.tensor_core.matmul over that of np.matmul with the kernels that
NumPy's BLAS chooses, or with the Haswell kernels for x86-64-v3. Arrays of blocks are
quantized before. Operands, before they are rounded, are N(0, 1) or have exponents over
40 binades, fewer if a format has fewer. One thread is pinned to a core.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from measuring import Row

from tensor_core import Rows, against_numpy, against_one_thread, main

AMD = [
    ("MI300X", "mfma", "float16", "float32"),
    ("MI300X", "mfma", "bfloat16", "float32"),
    ("MI250X", "mfma", "float16", "float32"),
    ("MI250X", "mfma_1k", "bfloat16", "float32"),
    ("MI100", "mfma", "float16", "float32"),
    ("MI100", "mfma", "bfloat16", "float32"),
]
OTHER_AMD = [
    ("MI300X", "mfma", "tf32", "float32"),
    ("MI300X", "mfma", "float8_e4m3fnuz", "float32"),
]
CHAINS = [
    ("MI300X", "mfma", "float32", "float32"),
    ("AVX512_BF16", "vdpbf16ps", "bfloat16", "float32"),
]
CPUS = [
    ("AMX", "tdpbf16ps", "bfloat16", "float32"),
    ("AMX", "tdpfp16ps", "float16", "float32"),
    ("Arm BF16", "bfdot_ebf", "bfloat16", "float32"),
    ("Arm BF16", "bfdot", "bfloat16", "float32"),
    ("Arm BF16", "bfmmla", "bfloat16", "float32"),
]
BLOCK_SCALED = [  # with the block formats of both operands and the result's dtype
    ("B200", "tcgen05.mxf8f6f4", "mxfp8_e4m3 x mxfp8_e4m3", "float32"),
    ("B200", "tcgen05.mxf8f6f4", "mxfp8_e5m2 x mxfp8_e5m2", "float32"),
    ("B200", "tcgen05.mxf8f6f4", "mxfp6_e2m3 x mxfp8_e4m3", "float32"),
    ("B200", "tcgen05.mxf4", "mxfp4 x mxfp4", "float32"),
    ("B200", "tcgen05.mxf4nvf4", "nvfp4 x nvfp4", "float32"),
]


def one_thread(sizes: list[int], where: str = "") -> list[Row]:
    text = ", ".join(str(n) for n in sizes) + where
    return [
        Row(f"MI300X, 16 bits @ {text}", "x", 8, 4,
            lambda: against_numpy(AMD[:2], sizes)),
        Row(f"MI250X, 16 bits @ {text}", "x", 8, 4,
            lambda: against_numpy(AMD[2:4], sizes)),
        Row(f"MI100, 16 bits @ {text}", "x", 8, 4,
            lambda: against_numpy(AMD[4:], sizes)),
        Row(f"MI300X, tf32 and fp8 @ {text}", "x", 16, 8,
            lambda: against_numpy(OTHER_AMD, sizes)),
        Row(f"chains of fused multiply-adds @ {text}", "x", 1.5, 1,
            lambda: against_numpy(CHAINS, sizes)),
        Row(f"AMX @ {text}", "x", 4, 2, lambda: against_numpy(CPUS[:2], sizes)),
        Row(f"Arm BF16 @ {text}", "x", 4, 2, lambda: against_numpy(CPUS[2:], sizes)),
        Row(f"B200 mxf8f6f4 @ {text}", "x", 8, 5,
            lambda: against_numpy(BLOCK_SCALED[:3], sizes)),
        Row(f"B200 mxf4, mxf4nvf4 @ {text}", "x", 8, 5,
            lambda: against_numpy(BLOCK_SCALED[3:], sizes)),
    ]  # fmt: skip


def two_threads(sizes: list[int]) -> list[Row]:
    units = [*AMD, *CHAINS, *CPUS, BLOCK_SCALED[0], *BLOCK_SCALED[3:]]
    return [
        Row(f"two threads @ {sizes[-1]}", "x as fast as one", 1.8, 1.95,
            lambda: against_one_thread(units, sizes[-1])),
    ]  # fmt: skip


def lesser(sizes: list[int]) -> list[Row]:
    return one_thread(sizes, ", x86-64-v3, relative to Haswell kernels")


ROWS: Rows = {"one": one_thread, "two": two_threads, "lesser": lesser}


if __name__ == "__main__":
    sys.exit(main(__doc__, __file__, ROWS, 9, 1.0))
