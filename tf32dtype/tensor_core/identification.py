"""Which tensor core computed this?"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .device import MODELS
from .models import Model
from .products import as_operand, format_name, matmul

#: What models that compute the same may differ in. Zeros that fill up an instruction
#: change nothing.
_NAMES = ("device", "instruction", "instruction_depth", "verified")


def identify(
    a: ArrayLike, b: ArrayLike, c: ArrayLike | None, d: ArrayLike
) -> list[Model]:
    """Find the models that give the results d of a @ b + c, in all bits.

    Parameters
    ----------
    a, b : array_like
        As for `matmul`; their dtypes choose the formats. float32 is read raw, as tf32.
    c : array_like or None
        What the accumulators began with, as for `matmul`: of the dtype of `d`, or a
        number; None is +0.
    d : array_like
        The results to explain, of the product's shape: float32 or float16, whatever the
        accumulators are.

    Returns
    -------
    list of Model
        In the table's order; empty if no model of these formats and accumulators gives
        all of `d`. Any NaN counts as the model's NaN; all else must be equal in every
        bit, the sign of zero included.

    Raises
    ------
    TypeError
        For a `d` of another dtype, and as `matmul` does.
    ValueError
        For shapes that do not fit, a `d` of another shape than the product's, and for
        formats that no model multiplies into these accumulators.

    See Also
    --------
    explain : How one element comes about.

    Notes
    -----
    Many models agree on small integers, or where k is below both depths: results tell
    more if exponents differ widely and k is long. All of k is one chain: where a GEMM
    library splits k, no model agrees.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x, y = np.float16([1, 2**-12, -1]), np.float16([1, 2**-13, 1])
    >>> for model in td.tensor_core.identify(x, y, None, np.float32(2**-25)):
    ...     print(model.name)
    H100 wgmma float16 -> float32
    H100 mma.sync float16 -> float32
    B200 tcgen05 float16 -> float32
    B200 mma.sync float16 -> float32
    RTX Blackwell mma.sync float16 -> float32
    MI100 mfma float16 -> float32
    AMX tdpfp16ps float16 -> float32
    """
    results = np.asarray(d)
    results = results.astype(results.dtype.newbyteorder("="), copy=False)
    if results.dtype not in (np.float32, np.float16):
        raise TypeError(
            f"d is {results.dtype}: results are float32 or float16, as accumulators are"
        )
    accumulator = results.dtype.name
    x, y = as_operand(a, "a"), as_operand(b, "b")
    known = [
        m
        for m in MODELS
        if (m.a, m.b) == (format_name(x, m.device), format_name(y, m.device))
        and m.accumulator == accumulator
    ]
    if not known:
        raise ValueError(f"no model multiplies {x.dtype} x {y.dtype} -> {accumulator}")
    agrees: dict[tuple[Any, ...], bool] = {}
    for model in known:
        if _parameters(model) not in agrees:
            product = matmul(
                a,
                b,
                c,
                device=model.device,
                instruction=model.instruction,
                accumulator=results.dtype,
            )
            agrees[_parameters(model)] = _equal(np.asarray(product), results)
    return [model for model in known if agrees[_parameters(model)]]


def _parameters(model: Model) -> tuple[Any, ...]:
    """Models that share them compute the same."""
    names = (field.name for field in fields(model))
    return tuple(getattr(model, name) for name in names if name not in _NAMES)


def _equal(product: NDArray[Any], results: NDArray[Any]) -> bool:
    """Whether all bits are equal, but for those of NaN."""
    if product.shape != results.shape:
        raise ValueError(f"d has shape {results.shape}, the product {product.shape}")
    bits = f"u{product.dtype.itemsize}"
    same = product.view(bits) == results.view(bits)
    return bool((same | (np.isnan(product) & np.isnan(results))).all())
