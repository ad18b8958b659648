"""Choose for an operation of PyTorch: replace it, take it apart, or leave it."""

from __future__ import annotations

import enum
from functools import cache
from typing import Any, NamedTuple

import torch
from torch._C import DispatchKey
from torch._ops import OpOverload

from . import attention, convolution  # noqa: F401  they register their operations
from .operations import OPERATIONS, Operation

#: Operations that multiply matrices, and that cannot be replaced: their names.
_OTHERS = {
    # with integers and packed weights
    "_int_mm",
    "_weight_int4pack_mm",
    "_weight_int4pack_mm_for_cpu",
    "_weight_int4pack_mm_with_scales_and_zeros",
    "_weight_int8pack_mm",
    "_dyn_quant_matmul_4bit",
    "_mixed_dtypes_linear",
    "_wrapped_quantized_linear_prepacked",
    "fbgemm_linear_fp16_weight",
    "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_int8_weight",
    "fbgemm_linear_int8_weight_fp32_activation",
    "quantized_gru",
    "quantized_gru_cell",
    "quantized_lstm",
    "quantized_lstm_cell",
    "quantized_rnn_relu_cell",
    "quantized_rnn_tanh_cell",
    # of sparse matrices, and of matrices in groups
    "_cslt_sparse_mm",
    "_sparse_addmm",
    "_sparse_mm",
    "_sparse_mm_reduce_impl",
    "_sparse_mm_reduce_impl_backward",
    "_sparse_semi_structured_addmm",
    "_sparse_semi_structured_linear",
    "_sparse_semi_structured_mm",
    "_sparse_sparse_matmul",
    "hspmm",
    "smm",
    "sparse_sampled_addmm",
    "sspaddmm",
    "_grouped_mm",
    "_scaled_grouped_mm",
    "_scaled_grouped_mm_v2",
    # fused layers, and kernels that PyTorch calls below the hook
    "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
    "_triton_multi_head_attention",
    "_triton_scaled_dot_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_fused_attention_overrideable_backward",
    "_nnpack_spatial_convolution",
    "_slow_conv2d_backward",
    "_slow_conv2d_forward",
    "conv_tbc",
    "convolution_backward_overrideable",
    "convolution_overrideable",
    "slow_conv3d_forward",
    "slow_conv_dilated2d",
    "slow_conv_dilated3d",
    "slow_conv_transpose2d",
    "slow_conv_transpose3d",
    "linear_backward",
    "matmul_backward",
    "mkldnn_convolution",
    "mkldnn_linear",
    "mkldnn_linear_backward",
    "mkldnn_linear_backward_input",
    "mkldnn_linear_backward_weights",
    "mkldnn_rnn_layer",
    "mkldnn_rnn_layer_backward",
    # others
    "_cdist_backward",
    "_cdist_forward",
    "_euclidean_dist",
    "_trilinear",
    "linalg_matrix_exp",
    "_compute_linear_combination",
    "linalg_pinv.atol_rtol_tensor",
    "linalg_pinv.atol_rtol_tensor_out",
    "linear.out",
}
#: Operations that have kernels for nested tensors.
OF_NESTED = {
    torch.ops.aten.linear.default,
    torch.ops.aten.matmul.default,
    torch.ops.aten.scaled_dot_product_attention.default,
}
#: Namespaces whose operations PyTorch's own functions call.
_OWN = {"aten", "prim", "prims", "profiler", "debugprims", "inductor", "_c10d"}


class Kind(enum.Enum):
    """The ways to treat an operation."""

    LEAVE = "leave"
    REPLACE = "replace"
    TAKE_APART = "take apart"
    UNREACHED = "unreached"


class Known(NamedTuple):
    """An operation, and what is done with it."""

    kind: Kind
    operation: Operation | None = None
    #: whether it writes its result to an argument: "out", "self"
    target: str = ""
    #: why it is not reached
    why: str = ""


@cache
def known(func: Any) -> Known:
    """Return what is done with an overload."""
    if operation := OPERATIONS.get(func):
        return Known(Kind.REPLACE, operation)
    if not isinstance(func, OpOverload):
        return Known(Kind.UNREACHED, why="is an operation of higher order")
    namespace, _, name = func._schema.name.partition("::")
    try:
        composite = func.has_kernel_for_dispatch_key(
            DispatchKey.CompositeImplicitAutograd
        )
    except RuntimeError:  # it asks a subclass for its size, and has no kernels
        return Known(Kind.LEAVE)
    if namespace not in _OWN and not composite:
        return Known(Kind.UNREACHED, why="may multiply matrices")
    if name in _OTHERS or f"{name}.{func._overloadname}" in _OTHERS:
        return Known(Kind.UNREACHED, why="has no replacement")
    if composite:
        return Known(Kind.TAKE_APART)
    if func._schema.is_mutable and namespace == "aten":
        return _known_of_target(func, name)
    return Known(Kind.LEAVE)


def _known_of_target(func: Any, name: str) -> Known:
    """Return what is done with an operation that writes to an argument."""
    bare = name.removesuffix("_")
    base = getattr(getattr(torch.ops.aten, bare, None), "default", None)
    operation = OPERATIONS.get(base)
    if operation is None:
        return Known(Kind.LEAVE)
    if bare != name:
        return Known(Kind.REPLACE, operation, "self")
    if "out" not in (x.name for x in func._schema.arguments):
        return Known(Kind.UNREACHED, why="writes more than one result")
    return Known(Kind.REPLACE, operation, "out")
