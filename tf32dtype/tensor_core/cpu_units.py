"""The units of CPU libraries: chains of float32 or float64 operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from .models import Accumulator, Board, Instruction, Model, Operand
from .products import matmul

Array = NDArray[Any]
#: A function of one model that returns a @ b with accumulators that begin with c.
Product = Callable[[Array, Array, Array], Array]
#: Units of CPU libraries, by the dtype that they add in.
SumType = Literal["float32", "float64"]
#: How they add. "even and odd k": even k are one chain and odd k are another, up to the
#: last multiple of 8 k. The rest continues the chain of even k. The two are added.
Arithmetic = Literal[
    "fused multiply-add",
    "multiply, then add",
    "fused multiply-add, even and odd k",
]
#: Devices whose models are chains of fused multiply-adds.
_CHAINS = {"float32": "MI100", "float64": "A100"}
#: k of one round of OpenBLAS's kernel for AVX2.
_ROUND = 8


@dataclass(frozen=True)
class CpuUnit(Model):
    """The arithmetic of a CPU library: a dtype that sums have, and operations."""

    @property
    def title(self) -> str:
        """The dtype and the operations in words."""
        return f"{self.device}, {self.instruction}"

    @property
    def name(self) -> str:
        """The dtype, the operations and the formats in words."""
        formats = self.a if self.a == self.b else f"{self.a} x {self.b}"
        return f"{self.title}: {formats} -> {self.accumulator}"

    @property
    def has_lanes(self) -> bool:
        """Whether chains may be the lanes of vectors."""
        return "even and odd" not in self.instruction

    @property
    def product(self) -> Product:
        """The function that computes chains."""
        kind = np.dtype(self.accumulator)
        device: Any = _CHAINS[self.accumulator]
        chain = partial(matmul, device=device, accumulator=kind)

        def of(product: Product, a: Array, b: Array, c: Array) -> Array:
            return product(a.astype(kind, copy=False), b.astype(kind, copy=False), c)

        found: dict[str, Product] = {
            "fused multiply-add": chain,
            "multiply, then add": _rounded_twice,
            "fused multiply-add, even and odd k": partial(_even_and_odd, chain),
        }
        return partial(of, found[self.instruction])


def _rounded_twice(a: Array, b: Array, c: Array) -> Array:
    """Return a chain in which each product is rounded, and each sum."""
    total = c
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            total = total + a[..., k, np.newaxis] * b[..., k, np.newaxis, :]
    return np.broadcast_to(total, (*total.shape[:-2], a.shape[-2], b.shape[-1]))


def _even_and_odd(chain: Product, a: Array, b: Array, c: Array) -> Array:
    k = a.shape[-1]
    whole = k - k % _ROUND
    even = np.concatenate([np.arange(0, whole, 2), np.arange(whole, k)])
    odd = np.arange(1, whole, 2)
    first = chain(a[..., even], b[..., even, :], c)
    if not len(odd):
        return first
    second = chain(a[..., odd], b[..., odd, :], np.zeros_like(c))
    with np.errstate(all="ignore"):
        return first + second


def cpu_units(dtype: SumType, a: str, b: str) -> list[Model]:
    """Return the units that add in a dtype, for operands of these formats."""
    names: tuple[Arithmetic, ...] = (
        "fused multiply-add",
        "fused multiply-add, even and odd k",
        "multiply, then add",
    )
    return [
        CpuUnit(
            cast(Board, dtype),
            cast(Instruction, name),
            cast(Operand, a),
            cast(Operand, b),
            cast(Accumulator, dtype),
            1,
            1,
            "recorded",
        )
        for name in names
    ]
