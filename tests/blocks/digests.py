"""Digests of codes and products, in this process or with another instruction set.

Such interpreters run this file, so that it must not import a test.
"""

from __future__ import annotations

import hashlib
import json
import sys
from functools import cache
from itertools import product

import numpy as np

import tf32dtype as td
from tests.blocks.core_calls import (
    ROWS,
    core,
    dequantize,
    layout_of,
    quantize,
    samples,
)
from tests.blocks.operands import items_of, random_blocks, random_numbers
from tests.reference.blocks import RULES
from tests.support.interpreters import run
from tf32dtype.blocks import formats
from tf32dtype.blocks.products import matmul


@cache
def of_codes() -> dict[str, str]:
    """Return digests of quantized numbers by format, scale, kind and rule."""
    found = {}
    kinds = (("float8_e8m0fnu", "heavy"), ("ue3m5", "scattered"))
    for row, (scale, kind), rule in product(ROWS, kinds, RULES[:5]):
        x = samples(kind, (3, 331))
        layout = layout_of(row, scale, rule, 32, x)
        parts = quantize(layout, x)
        bits = b"".join(p.tobytes() for p in parts if p is not None)
        bits += dequantize(layout, parts, x.shape).tobytes()
        found[f"{row} {scale} {kind} {rule}"] = hashlib.sha256(bits).hexdigest()
    return found


@cache
def of_products() -> str:
    """Return a digest of products of every kind, one large enough for two threads."""
    found = hashlib.sha256()
    with np.errstate(all="ignore"):
        for number, name in enumerate(formats):
            size = formats[name].block_size
            a = random_blocks(name, (20, 330), 1, number)
            b = random_blocks(name, (330, 40), 0, number + 1)
            c = random_blocks("tcfp16", (330, 20), 0, number, block_size=size)
            x = random_numbers("float32", (330, 9), number)
            y = random_numbers("bfloat16", (20, 330), number)
            for result in (
                matmul(a, b),
                matmul(a, c, terms=3),
                matmul(a, x),
                matmul(y, b, dtype=td.bfloat16),
            ):
                found.update(items_of(result).tobytes())
        a = random_blocks("tcfp16", (130, 520), 1)
        b = random_blocks("tcfp8", (520, 80), 0)
        found.update(items_of(matmul(a, b)).tobytes())
    return found.hexdigest()


@cache
def of_another(isa: str) -> tuple[str, dict[str, str], str]:
    """Return the instruction set of a new interpreter, and its digests. Every second
    instruction set runs in one thread, the others in five."""
    threads = "15"[core.available_isas().index(isa) % 2]
    text = run("-m", __name__, timeout=None, TF32DTYPE_ISA=isa, OMP_NUM_THREADS=threads)
    used, codes, products = json.loads(text)
    return used, codes, products


if __name__ == "__main__":
    json.dump([core.isa(), of_codes(), of_products()], sys.stdout)
