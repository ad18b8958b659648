"""Use PyTorch on the CPU: tensors as arrays, and models with block-scaled weights.

`from_numpy` and `to_numpy` share memory between tensors and arrays of the formats that
both have. `convert` makes the Linear and Embedding layers of a model, and on request
its LayerNorm layers, round their weights to a block format whenever they run. The
parameters do not change, so optimizers, state dicts and checkpoints work as before.
"""

from ..._base.requirements import install

try:
    import torch
except ImportError as _error:
    raise ImportError(
        f"tf32dtype.interop.torch needs PyTorch, which cannot be imported ({_error}):"
        f" {install('torch')} (any build will do: it computes on the CPU)"
    ) from _error

del install, torch

from .layer_report.making import report  # noqa: E402
from .layer_report.result import LayerReport  # noqa: E402
from .layer_report.rows import (  # noqa: E402
    GroupRow,
    LayerRow,
    ProductErrors,
    RangeLost,
)
from .layers import Embedding, LayerNorm, Linear, convert  # noqa: E402
from .plan.apply import apply  # noqa: E402
from .plan.plan import Plan  # noqa: E402
from .plan.tune import tune  # noqa: E402
from .precision import matmul_precision  # noqa: E402
from .rounding import dequantize, fake_quantize, quantize  # noqa: E402
from .tensors import from_numpy, to_numpy  # noqa: E402

__all__ = [
    "Embedding",
    "GroupRow",
    "LayerNorm",
    "LayerReport",
    "LayerRow",
    "Linear",
    "Plan",
    "ProductErrors",
    "RangeLost",
    "apply",
    "convert",
    "dequantize",
    "fake_quantize",
    "from_numpy",
    "matmul_precision",
    "quantize",
    "report",
    "to_numpy",
    "tune",
]


def __dir__() -> list[str]:
    return __all__
