"""What to do with an operation of PyTorch: replace it, take it apart, or leave it."""

from __future__ import annotations

import enum
from functools import cache
from typing import Any, NamedTuple

import torch
from torch._C import DispatchKey

from . import attention, convolution  # noqa: F401  they register their operations
from .operations import OPERATIONS, Operation

#: Operations that multiply matrices, and that cannot be replaced: their names.
_OTHERS = {
    "_int_mm",
    "_weight_int4pack_mm",
    "_weight_int4pack_mm_for_cpu",
    "_weight_int4pack_mm_with_scales_and_zeros",
    "_weight_int8pack_mm",
    "_dyn_quant_matmul_4bit",
    "_sparse_mm",
    "_grouped_mm",
    "_scaled_grouped_mm",
    "_transformer_encoder_layer_fwd",
    "_native_multi_head_attention",
    "_triton_multi_head_attention",
    "mkldnn_rnn_layer",
    "mkldnn_rnn_layer_backward",
    "mkldnn_linear",
    "mkldnn_convolution",
    "_trilinear",
    "_cdist_forward",
    "_cdist_backward",
    "linalg_matrix_exp",
    "sspaddmm",
    "_addmm_sparse",
}
#: Namespaces whose operations PyTorch's own functions call.
_OWN = {"aten", "prim", "prims", "profiler", "debugprims", "inductor", "_c10d"}


class Kind(enum.Enum):
    """What is done with an operation."""

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


@cache
def known(func: Any) -> Known:
    """Return what is done with an overload."""
    if operation := OPERATIONS.get(func):
        return Known(Kind.REPLACE, operation)
    schema = func._schema
    namespace, _, name = schema.name.partition("::")
    if schema.is_mutable and namespace == "aten":
        bare = name.removesuffix("_")
        packet = getattr(torch.ops.aten, bare, None)
        base = packet and getattr(packet, "default", None)
        if operation := OPERATIONS.get(base):
            return Known(Kind.REPLACE, operation, "self" if bare != name else "out")
    if name in _OTHERS or namespace not in _OWN:
        return Known(Kind.UNREACHED)
    if func.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd):
        return Known(Kind.TAKE_APART)
    return Known(Kind.LEAVE)
