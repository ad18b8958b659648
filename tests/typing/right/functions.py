"""Types of the results of the package's functions, by their arguments."""

from collections.abc import Iterable
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tf32dtype as td

numbers = np.ones((4, 32), np.float32)
a = numbers.astype(td.tf32)
b = numbers.astype(td.bfloat16)
c = numbers.astype(td.float8_e4m3fn)

# -- rounding and codes ----------------------------------------------------------------

assert_type(td.quantize(numbers, td.bf16), npt.NDArray[td.bfloat16])
assert_type(td.quantize([0.1, 0.2], np.dtype(td.tf32)), npt.NDArray[td.tf32])
assert_type(td.quantize(0.1, td.tf32, rounding="to_odd"), td.tf32)
assert_type(td.quantize(a, np.float16), npt.NDArray[np.float16])
assert_type(td.quantize(numbers, "fp4", overflow="saturate"), npt.NDArray[Any])
assert_type(td.quantize(numbers, td.formats["bf16"]), npt.NDArray[Any])
rng = np.random.default_rng(1)
td.quantize(numbers, "float16", rounding="stochastic", rng=rng)

assert_type(td.bits(a), npt.NDArray[np.uint32])
assert_type(td.bits(b), npt.NDArray[np.uint16])
assert_type(td.bits(c), npt.NDArray[np.uint8])
assert_type(td.bits(td.tf32(1)), np.uint32)
assert_type(td.bits(td.bfloat16(1)), np.uint16)
assert_type(td.bits(td.fp4(1)), np.uint8)
assert_type(td.from_bits([1, 2], td.bfloat16), npt.NDArray[td.bfloat16])
assert_type(td.from_bits([1, 2], "bf16", dirty="ignore"), npt.NDArray[Any])
assert_type(td.pack(c, order="high"), npt.NDArray[np.uint8])
assert_type(td.unpack(td.pack(c), td.fp8_e4m3, 128), npt.NDArray[td.float8_e4m3fn])
assert_type(td.unpack(b"\0", "fp4", (1, 2)), npt.NDArray[Any])

# -- distances -------------------------------------------------------------------------

assert_type(td.ulp_distance(b, numbers), npt.NDArray[np.uint64])
assert_type(td.ulp_distance(td.bfloat16(1), 1.5), np.uint64)
assert_type(td.testing.assert_max_ulp(b, [1.0, 2.0], 3), npt.NDArray[np.uint64])
assert_type(td.testing.assert_max_ulp(1.0, td.tf32(1)), np.uint64)

# -- products --------------------------------------------------------------------------

assert_type(td.matmul(a, a.T), npt.NDArray[td.tf32])
assert_type(td.matmul(b, b.T), npt.NDArray[td.bfloat16])
assert_type(td.matmul(a, a.T, dtype=np.float32), npt.NDArray[np.float32])
assert_type(td.matmul(numbers, numbers.T, precision="bf16x9"), npt.NDArray[np.float32])
assert_type(
    td.matmul(numbers, numbers.T, precision="tf32", dtype=td.tf32, device="H100"),
    npt.NDArray[td.tf32],
)
rows: npt.NDArray[td.tf32] = td.einsum("ij->i", a)
rows = td.einsum("ij->i", a, precision="exact", rounding="toward_positive")
td.einsum("ij,kj", numbers, numbers, precision="tf32", device="H100")

with td.matmul_precision("tf32", rounding="toward_zero") as scope:
    assert_type(scope, td.matmul_precision)
assert_type(td.linalg.lu(a, precision="bf16"), td.linalg.LU)
assert_type(td.linalg.cholesky(numbers, device=None), npt.NDArray[Any])
assert_type(td.linalg.solve(a, b, precision="tf32", device="H100"), td.linalg.Solution)
assert_type(td.linalg.backward_error(a, b, b), td.linalg.BackwardError)
td.set_matmul_precision("BF16_BF16_F32_X3", special_values="saturate")
td.set_matmul_precision(None)


@td.matmul_precision("fp8_e4m3", scale="row")
def gram(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return td.matmul(x, x.T, precision="f32")


assert_type(gram(numbers), npt.NDArray[np.float32])

with td.arithmetic("bf16"), td.arithmetic(td.bfloat16, float64=False):
    assert_type(td.arithmetic.functions(), tuple[str, ...])

# -- tensor cores ----------------------------------------------------------------------

half = numbers.astype(np.float16)
multiply = td.tensor_core.matmul
assert_type(multiply(half, half.T, device="V100"), npt.NDArray[np.float32])
assert_type(
    multiply(half.astype(td.bfloat16), half.T.astype(td.bfloat16), device="H100"),
    npt.NDArray[np.float32],
)
assert_type(
    multiply(a, a.T, 0.5, device="Hopper", instruction="wgmma", terms=None),
    npt.NDArray[np.float32],
)
assert_type(
    multiply(half, half.T, device="RTX 4090", accumulator=np.float16),
    npt.NDArray[np.float16],
)
assert_type(
    multiply(half, half.T, device="A100", accumulator="float16"),
    npt.NDArray[np.float16],
)
double = numbers.astype(np.float64)
assert_type(multiply(double, double.T, device="H100"), npt.NDArray[np.float64])
assert_type(
    multiply(double, double.T, device="MI300X", accumulator="float64"),
    npt.NDArray[np.float64],
)
assert_type(
    multiply(double.tolist(), double, device="A100", accumulator=np.float64),
    npt.NDArray[np.float64],
)
assert_type(
    multiply(b, b.T, device="Zen 5", instruction="vdpbf16ps", accumulator=None),
    npt.NDArray[np.float32],
)
assert_type(td.tensor_core.explain(half[0], half[0], device="T4"), str)
found = td.tensor_core.identify(half, half.T, None, numbers @ numbers.T)
assert_type(found, td.tensor_core.Identification)
assert_type(
    td.tensor_core.identify(
        half,
        half.T,
        None,
        numbers,
        unit="H200",
        instruction="wgmma",
        alpha=2,
        beta=0.5,
        bias=[1.0],
        scale_a=1.0,
        scale_b=numbers,
    ),
    td.tensor_core.Identification,
)
td.tensor_core.identify(numbers, numbers.T, None, numbers, unit="float32")
for hypothesis in found:
    assert_type(hypothesis, td.tensor_core.Hypothesis)
    model = hypothesis.model
    multiply(half, half.T, device=model.device, instruction=model.instruction)
    td.tensor_core.explain(half[0], half[0], device=["T4", model])
for device in td.tensor_core.devices:
    multiply(half, half.T, device=device)

# -- functions that return their output argument ---------------------------------------


class Matrix(np.ndarray[tuple[int, int], np.dtype[np.float32]]): ...


def written(out: Matrix) -> None:
    assert_type(td.quantize(numbers, np.float32, out=out), Matrix)
    assert_type(td.matmul(a, b.T, out=out), Matrix)
    assert_type(td.matmul(a, b.T, out=(out,)), Matrix)
    assert_type(td.einsum("ij,kj->ik", a, a, out=out), Matrix)
    assert_type(td.einsum("ij->i", a, precision="exact", out=out), Matrix)
    assert_type(multiply(half, half.T, device="A100", out=out), Matrix)
    w = td.blocks.quantize(numbers, "tcfp8")
    assert_type(td.blocks.matmul(w, w.T, out=out), Matrix)
    assert_type(w.dequantize(out=out), Matrix)


# -- others ----------------------------------------------------------------------------

assert_type(td.from_dlpack(numbers, device="cpu"), npt.NDArray[Any])
assert_type(td.as_ml_dtypes(b), npt.NDArray[Any])
assert_type(td.isa(), str)
assert_type(td.error_bound(b, b, unit="H100"), npt.NDArray[np.float64])
assert_type(td.testing.check_matmul(b, b, b, unit="H100"), td.testing.Check)
assert_type(td.testing.assert_matmul(b, b, b, unit="H100", alpha=2), td.testing.Check)
assert_type(td.exact_sum(b, axis=0, rounding="toward_zero"), Any)
assert_type(td.matmul(b, b, precision="exact"), npt.NDArray[td.bfloat16])
assert_type(td.explain_matmul(b, b, precision=None), td.typing.MatmulPlan)
assert_type(td.show_config(), None)
assert_type(td.show_config("dicts"), dict[str, Any])
for name in td.formats:
    td.quantize(numbers, name)


def reported(
    precisions: Iterable[td.typing.PrecisionName], board: td.typing.DeviceName
) -> td.report:
    devices: list[td.typing.DeviceName | td.typing.DeviceInstruction]
    devices = [board, "H100:mma.sync"]
    td.report(device=["Hopper", "B200:tcgen05"])
    with td.report(precision=precisions, device=devices) as report:
        gram(numbers)
    return report
