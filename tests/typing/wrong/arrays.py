"""Arrays of one format where another is needed, and calls that do not exist."""

import numpy as np
import numpy.typing as npt

import tf32dtype as td

x = np.ones((4, 32), np.float32)
a = x.astype(td.tf32)
b = x.astype(td.bfloat16)
w = td.blocks.quantize(x, "mxfp4")
product = td.matmul(a, a.T)


def needs_bfloat16(x: npt.NDArray[td.bfloat16]) -> None: ...


def needs_float16(x: npt.NDArray[np.float16]) -> None: ...


needs_bfloat16(a)  # error
needs_bfloat16(x)  # error
needs_float16(b)  # error
rounded: npt.NDArray[td.bfloat16] = td.quantize(x, td.tf32)  # error
needs_bfloat16(product)  # error
needs_bfloat16(w @ x.T)  # error
needs_bfloat16(w.dequantize())  # error
number: td.tf32 = td.quantize(1.5, td.bfloat16)  # error
codes: npt.NDArray[np.uint16] = td.bits(a)  # error
td.tensor_core.matmul(x, x.T, device="AMX", instruction="bfdott")  # error
small: npt.NDArray[np.float16] = td.tensor_core.matmul(a, a.T, device="A100")  # error
d = np.ones((4, 4))
short: npt.NDArray[np.float32] = td.tensor_core.matmul(d, d, device="A100")  # error
loaded: npt.NDArray[np.float32] = td.load("x.npy")  # error
half: td.tf32 = 0.5  # error
td.tf32([1, 2])  # error
td.tf32(1, 2)  # error
td.quantize(x)  # error
td.quantize(x, td.tf32, mode="to_odd")  # error
td.matmul(x, x.T, precisions="tf32")  # error
td.tensor_core.matmul(x, x.T)  # error
td.blocks.quantize(x, "mxfp4", size=32)  # error
w + w  # error
w.values  # error  # noqa: B018
