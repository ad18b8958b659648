"""Names that do not exist, of every kind."""

import numpy as np

import tf32dtype as td

x = np.ones((4, 32), np.float32)
a = x.astype(td.tf32)

td.quantize(x, "fp8")  # error
td.quantize(x, td.tf32, rounding="up")  # error
td.quantize(x, td.tf32, overflow="raise")  # error
td.from_bits([1], "bf17")  # error
td.from_bits([1], td.tf32, dirty="keep")  # error
td.pack(a, order="big")  # error
td.matmul(x, x.T, precision="tf33")  # error
td.matmul(x, x.T, precision="tf32", device="H1000")  # error
td.matmul(x, x.T, precision="tf32", scale="column")  # error
td.matmul_precision("bf16x4")  # error
td.matmul_precision("bf16x3", special_values="raise")  # error
td.set_matmul_precision("f8")  # error
td.arithmetic("float64")  # error
td.tensor_core.matmul(x, x.T, device="P100")  # error
td.tensor_core.matmul(x, x.T, device="H100", instruction="mma")  # error
td.tensor_core.matmul(x, x.T, device="H100", accumulator="bfloat16")  # error
td.tensor_core.explain(x[0], x[0], device="K80")  # error
td.blocks.quantize(x, "mxfp5")  # error
td.blocks.quantize(x, "mxfp4", block_size=48)  # error
td.blocks.quantize(x, "mxfp4", scale="max")  # error
td.blocks.quantize(x, "mxfp4", scale_format="e8m0")  # error
td.blocks.quantize(x, "mxfp4", overflow="ieee")  # error
td.blocks.round(x, "mxfp4", rounding="nearest")  # error
td.blocks.quantize_tiles(x, scale_format="float64")  # error
td.blocks.quantize_tiles(x, division="float32")  # error
td.blocks.quantize(x, "nvfp4", division="amax")  # error
td.blocks.ErrorFeedback("mxfp3")  # error
td.blocks.swizzle_scales(x, "128x8")  # error
td.save("x.npy", x, header="name")  # error
td.load("x.npy", mmap_mode="w+")  # error
td.safetensors.save("x", {"x": x}, scheme="awq")  # error
td.names("numpy")  # error
td.report(precision="tf31")  # error
td.report(device="H1000")  # error
td.report(device=["H100", "A100:wgmma"])  # error
td.bf17  # error  # noqa: B018
td.tensor_core.nothing  # error  # noqa: B018
td.interop.numpy  # error  # noqa: B018


def of_any_text(name: str) -> None:
    td.quantize(x, name)  # error
    td.matmul(x, x.T, precision=name)  # error
    td.tensor_core.matmul(x, x.T, device=name)  # error
    td.blocks.quantize(x, name)  # error
