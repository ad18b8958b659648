"""Arrays of blocks, and contents of files."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tf32dtype as td
from tf32dtype.blocks import BlockArray, TileArray

numbers = np.ones((64, 64), np.float32)

# -- blocks ----------------------------------------------------------------------------

w = td.blocks.quantize(numbers, "nvfp4", block_size=16, rounding="ties_to_away")
assert_type(w, BlockArray)
assert_type(w.T, BlockArray)
assert_type(w[0], BlockArray)
assert_type(w @ w.T, npt.NDArray[np.float32])
assert_type(w @ numbers, npt.NDArray[np.float32])
assert_type(w.dequantize(), npt.NDArray[np.float32])
assert_type(w.dequantize(np.float64), npt.NDArray[np.float64])
assert_type(w.dequantize(td.bfloat16), npt.NDArray[td.bfloat16])
assert_type(w.dequantize("bf16"), npt.NDArray[Any])
assert_type(np.asarray(w), npt.NDArray[np.float32])
assert_type(w.codes, npt.NDArray[np.uint8])
assert_type(w.residuals, npt.NDArray[np.uint8] | None)
assert_type(w.block_scales, npt.NDArray[np.float32])
assert_type(w.format, td.typing.BlockFormatName)
assert_type(td.blocks.matmul(w, w.T), npt.NDArray[np.float32])
assert_type(td.blocks.matmul(w, numbers, dtype=td.tf32, terms=1), npt.NDArray[td.tf32])
assert_type(td.blocks.round(numbers, "mxfp4", scale="even"), npt.NDArray[np.float32])
td.blocks.quantize(numbers, w.format, w.axis, scale_format=w.scale_format)
td.blocks.quantize(numbers, td.blocks.formats["tcfp8"])
for format in td.blocks.formats:
    td.blocks.quantize(numbers, format)

t = td.blocks.quantize_tiles(numbers, td.fp8_e4m3, (1, None), scale_format="float32")
assert_type(t, TileArray)
assert_type(t @ numbers, npt.NDArray[np.float32])
assert_type(t.dequantize(np.float16), npt.NDArray[np.float16])
td.blocks.quantize_tiles(numbers, "int8")
td.blocks.quantize_tiles(numbers, division="amax")
td.blocks.quantize(numbers, "nvfp4", tile=(16, 16), division="divide", scale="amax")
assert_type(td.blocks.recode(t, "float8_e4m3fnuz"), TileArray)
assert_type(td.blocks.recode(w, "mxfp8"), BlockArray)

swizzled = td.blocks.swizzle_scales(w.scales, "8x4")
assert_type(swizzled, npt.NDArray[Any])
td.blocks.unswizzle_scales(swizzled, w.scales.shape, layout="8x4")

feedback = td.blocks.ErrorFeedback("mxfp8_e4m3", axis=0, overflow="saturate")
assert_type(feedback(numbers), BlockArray)
assert_type(feedback.error, npt.NDArray[np.float32] | None)

assert_type(
    td.tensor_core.matmul(w, w.T, device="B200", instruction="tcgen05.mxf4nvf4"),
    npt.NDArray[np.float32],
)

# -- files -----------------------------------------------------------------------------

Held = npt.NDArray[Any] | BlockArray | TileArray

td.save("w.npy", w, header=None)
td.savez("w.npz", numbers, w=w, header="names")
loaded = td.load("w.npy", mmap_mode="r")
assert_type(loaded, Held | td.typing.Archive)
if isinstance(loaded, np.ndarray):
    assert_type(loaded, npt.NDArray[Any])
    weights: npt.NDArray[td.bfloat16] = loaded
elif isinstance(loaded, BlockArray | TileArray):
    loaded.dequantize()
else:
    with loaded as archive:
        assert_type(archive["w"], Held)
        assert_type(archive.files, list[str])

tensors = {"w": numbers}
td.safetensors.save("w.safetensors", tensors, scheme="vllm")
read = td.safetensors.load("w.safetensors", names="w*")
assert_type(read, dict[str, npt.NDArray[Any]])
with_blocks = td.safetensors.load("w.safetensors", blocks=True)
assert_type(with_blocks, dict[str, Held])
with td.safetensors.open("w.safetensors") as file:
    assert_type(file["w"], npt.NDArray[Any])
    assert_type(file.info("w").shape, tuple[int, ...])
assert_type(td.hdf5.load("w.h5"), dict[str, Held])
assert_type(td.interop.gguf.load("w.gguf"), dict[str, Held])
