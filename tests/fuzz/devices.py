"""Calls of td.tensor_core.matmul and precisions of devices, for the fuzzer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tf32dtype as td
from tests.fuzz.calls import Call
from tests.fuzz.products import Products

DEVICES = (
    "V100",
    "t4",
    "Ampere",
    "A100",
    "L40S",
    "H100",
    "h200",
    "B200",
    "RTX Blackwell",
    "AMX",
    "Arm BF16",
)
INSTRUCTIONS = (None, None, None, "mma.sync", "wgmma", "tcgen05")
WRONG = ("", "P100", 3, None)
FLOATS = (np.dtype(np.float32), np.dtype(np.float16))
DOUBLE = np.dtype(np.float64)


class DeviceProducts(Products):
    """Draw products by models of tensor cores, valid and invalid ones."""

    def __init__(self, scalar_types: Sequence[Any]) -> None:
        super().__init__(scalar_types)
        self.kinds |= {self.tensor_core: 8}

    def operand_dtype(self) -> np.dtype:
        """Draw a dtype, often one that some device multiplies."""
        r = self.random
        if r.random() < 0.1:
            return self.dtype()
        name = r.choice(
            ("e", "e", "f", "tf32", "bfloat16", "float8_e4m3fn", "float8_e5m2")
        )
        dtype = np.dtype(name) if len(name) == 1 else np.dtype(getattr(td, name))
        swaps = dtype.char in "ef" and r.random() < 0.1
        return dtype.newbyteorder() if swaps else dtype

    def modeled(self, keywords: dict[str, Any], dtypes: Sequence[np.dtype]) -> bool:
        """Return whether the table has a row for the call."""
        names = ["tf32" if d.name == "float32" else d.name for d in dtypes]
        try:
            td.tensor_core.look_up.find_model(
                keywords["device"],
                keywords.get("instruction"),
                *names,
                self.result(keywords, dtypes).name,
            )
        except ValueError:
            return False
        return True

    def result(
        self, keywords: dict[str, Any], dtypes: Sequence[np.dtype]
    ) -> np.dtype[Any]:
        """Return the dtype of accumulators."""
        usual = DOUBLE if DOUBLE in dtypes else FLOATS[0]
        return np.dtype(keywords.get("accumulator", usual))

    def tensor_core(self) -> Call:
        """Call td.tensor_core.matmul with every keyword."""
        r = self.random
        dtypes = [self.operand_dtype(), self.operand_dtype()]
        if r.random() < 0.8:
            dtypes[1] = dtypes[0]
        keywords: dict[str, Any] = {"device": r.choice(DEVICES)}
        if r.random() < 0.4:
            keywords["instruction"] = r.choice(INSTRUCTIONS)
        if r.random() < 0.3:
            keywords["accumulator"] = r.choice(FLOATS)
        if r.random() < 0.03:
            keywords["device"] = r.choice(WRONG)
        natives = [d.newbyteorder("=") for d in dtypes]
        result = self.result(keywords, natives)
        errors: tuple[type[Exception], ...] = ()
        formats = [d in self.ours or d in FLOATS for d in natives]
        if not all(formats) and natives != [DOUBLE, DOUBLE]:
            errors += (TypeError,)
        elif not self.modeled(keywords, natives):
            errors += (ValueError,)
        if r.random() < 0.2:
            rounding = r.choice(("ties_to_even", "ties_to_away", "toward_zero", "up"))
            keywords["rounding"] = rounding
            if rounding == "up" or FLOATS[0] not in natives:
                errors += (ValueError,)
        if r.random() < 0.15:
            every = r.choice((32, 128, 64, 256, 7, 0, -32))
            keywords["promote_every"] = every
            if every in (7, 0, -32) or result != np.float32:
                errors += (ValueError,)
        factors = self.factors(["td.matmul"], dtypes)
        errors += factors.errors
        starts = []
        if r.random() < 0.4:
            starts = [self.factor(result, ())]
            if r.random() < 0.1:
                starts = [self.factor(self.dtype(), ())]
                if starts[0].dtype.newbyteorder("=") != result:
                    errors += (TypeError,)
        operands = [*factors.operands, *starts]

        def call(*arrays: Any) -> Any:
            return td.tensor_core.matmul(*arrays, **keywords)

        seen = [(x.dtype.str, x.shape) for x in operands]
        return Call(f"{keywords} {seen}", call, operands, (result,), "exact", errors)
