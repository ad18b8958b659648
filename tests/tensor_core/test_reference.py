"""The reference of tensor cores: facts from its sources, and exact sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite, nan
from typing import Any

import numpy as np
import pytest

from tests.reference import matrix_units
from tests.reference.codec import encode_code, from_fraction
from tests.reference.formats import FLOAT16, FLOAT32
from tests.tensor_core.cases import Cases, by_parameters, exact, lists, random_cases
from tf32dtype.tensor_core.look_up import find_model
from tf32dtype.tensor_core.models import ALIGNED

pytestmark = pytest.mark.once

#: Short names of formats, for rows: device, format, accumulator, instruction.
NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "f32": "float32",
    "e4m3z": "float8_e4m3fnuz",
    "e5m2z": "float8_e5m2fnuz",
}
LEAST = 2.0**-149


def row(name: str) -> Any:
    device, given, accumulator, *instruction = name.split()
    f = NAMES[given]
    return find_model(device, *(instruction or [None]), f, f, accumulator)


def bits(numbers: Any) -> list[int]:
    return np.array(numbers, np.float32).view(np.uint32).tolist()


#: A row, the factors of a and b, c, and the result, by hand from the sources.
FACTS = [
    # Bits below the largest term: 23 on Volta, 24 on Ampere and Ada, 25 since.
    ("V100 f16 float32", [1, 2**-23, -1], [1, 1, 1], 0, 2**-23),
    ("V100 f16 float32", [1, 2**-24, -1], [1, 1, 1], 0, 0),
    ("A100 f16 float32", [1, 2**-24, -1], [1, 1, 1], 0, 2**-24),
    ("A100 f16 float32", [1, 2**-12, -1], [1, 2**-13, 1], 0, 0),
    ("H100 f16 float32", [1, 2**-12, -1], [1, 2**-13, 1], 0, 2**-25),
    ("H100 f16 float32", [1, 2**-13, -1], [1, 2**-13, 1], 0, 0),
    # c is a term like the others: it is truncated, and may truncate others.
    ("A100 f16 float32", [1, -1], [1, 1], 2**-25, 0),
    ("A100 f16 float32", [-1, 2**-12], [1, 2**-12], 1, 2**-24),
    # Sums are truncated toward zero, and terms, whatever their sign, are too.
    ("A100 bf16 float32", [2**-24], [1], 1, 1),
    ("A100 bf16 float32", [-(2**-24)], [1], 1, 1 - 2**-24),
    ("A100 bf16 float32", [-(2**-25)], [1], 1, 1),
    ("A100 bf16 float32", [2**-24, 2**-24], [1, 1], 1, 1 + 2**-23),
    # Blocks of four or eight products, the lowest k first.
    ("A100 tf32 float32", [1, -1, 0, 0, 2**-25], [1] * 5, 0, 2**-25),
    ("A100 tf32 float32", [1, 0, 0, 0, -1, 2**-25], [1] * 6, 0, 0),
    ("A100 f16 float32", [1, -1, *[0] * 6, 2**-24], [1] * 9, 2**-25, 2**-24),
    # Products are not normalized: 1.5 * 1.5 counts with the exponent 0.
    ("A100 f16 float32", [1.5, 2**-24, -1.5], [1.5, 1, 1.5], 0, 2**-24),
    # Subnormal operands count with the format's smallest exponent.
    ("A100 f16 float32", [2**-24, -(2**-24)], [2**14, 2**14], 2**-24, 2**-24),
    ("A100 f16 float32", [2**-24, -(2**-24)], [2**14, 2**14], 2**-25, 0),
    # Products out of the result's range cancel.
    ("A100 bf16 float32", [2**127, -(2**127)], [2**127, 2**127], 1, 0),
    ("A100 bf16 float32", [2**127], [2], 0, inf),
    # fp8 on Ada and in wgmma: 13 bits, even of c without products.
    ("L40S e4m3 float32", [0], [0], 1 + 2**-13 + 2**-14, 1 + 2**-13),
    ("H100 e4m3 float32", [0], [0], -1 - 2**-13 - 2**-14, -1 - 2**-13),
    # fp8 in mma.sync on Hopper: c is added last, to nearest.
    ("H100 e5m2 float32 mma.sync", [1], [1], 2**24, 2**24),
    ("H100 e5m2 float32 mma.sync", [1, 2], [1, 1], 2**24, 2**24 + 4),
    ("H100 e5m2 float16 mma.sync", [1, -1, 2**-11], [1, 1, 1], 1, 1),
    # float16 results round to nearest, once, and overflow where float16 does.
    ("V100 f16 float16", [2**-11], [1], 1, 1),
    ("V100 f16 float16", [2**-11, 2**-23], [1, 1], 1, 1 + 2**-10),
    ("V100 f16 float16", [15.9921875], [1], 65504, 65504),
    ("V100 f16 float16", [16], [1], 65504, inf),
    ("V100 f16 float16", [2**-24], [0.5], 0, 0),
    # Subnormal results are kept. A negative result that is truncated to zero is +0.
    ("A100 bf16 float32", [2**-100], [2**-49], 0, LEAST),
    ("A100 bf16 float32", [-(2.0**-100)], [2**-50], -0.0, 0.0),
    ("V100 f16 float32", [-0.0], [1], -0.0, 0.0),
    # A zero product does not count.
    ("A100 f16 float32", [0], [2**15], LEAST, LEAST),
    # Inf and NaN.
    ("A100 f16 float32", [inf], [0], 0, nan),
    ("A100 f16 float32", [inf, -inf], [1, 1], 0, nan),
    ("A100 f16 float32", [inf, 1], [2, 1], -inf, nan),
    ("A100 f16 float32", [-inf, 65504], [2, 65504], 1, -inf),
    ("V100 f16 float16", [65504], [65504], -inf, -inf),
    ("V100 f16 float16", [1], [1], nan, nan),
]

#: Such facts of units that round otherwise than aligned sums.
OTHER_FACTS = [
    # CDNA1: the exact sum of four products, or two, and c, rounded once.
    ("MI100 f16 float32", [2**-12], [2**-12], 1, 1),
    ("MI100 f16 float32", [2**-12, 2**-24], [2**-12, 2**-24], 1, 1 + 2**-23),
    ("MI100 bf16 float32", [2**-24, 2**-24], [1, 1], 1, 1 + 2**-23),
    ("MI100 bf16 float32", [2**-24, 0, 2**-24], [1, 1, 1], 1, 1),
    ("MI100 bf16 float32", [2**127, -(2**127)], [2**127, 2**127], LEAST, LEAST),
    ("MI100 bf16 float32", [-0.0, -0.0], [1, 1], -0.0, -0.0),
    ("MI100 bf16 float32", [-0.0], [1], -0.0, 0.0),  # the padding is +0
    ("MI100 bf16 float32", [-(2**-75)], [2**-76], 0, -0.0),
    ("MI100 f32 float32", [1 + 2**-23], [1 + 2**-23], -1, 2**-22 + 2**-46),
    # CDNA2: in steps, neighbors first. Subnormal numbers become zero.
    ("MI250X f16 float32", [1, 2**-12, 2**-12], [1, 2**-12, 2**-12], 0, 1),
    ("MI250X f16 float32", [1, 0, 2**-12, 2**-12], [1, 0, 2**-12, 2**-12], 0,
     1 + 2**-23),
    ("MI250X f16 float32", [2**-15], [2**15], 1, 1),
    ("MI250X f16 float32", [2**-14], [2**14], 1, 2),
    ("MI250X f16 float32", [1], [0], -LEAST, 0.0),
    ("MI250X bf16 float32", [2**-63], [2**-64], 0, 0.0),
    ("MI250X bf16 float32", [2**-127], [2**127], 0, 0.0),
    ("MI250X bf16 float32", [2**127, -(2**127)], [2, 2], 0, nan),
    # CDNA3: products are truncated toward zero, sums downward. Results therefore drift.
    ("MI300X f16 float32", [1, -(2**-13)], [1, 2**-12], 0, 1),
    ("MI300X f16 float32", [1, -(2**-12)], [1, 2**-12], 0, 1 - 2**-24),
    ("MI300X f16 float32", [1], [1], 2.0**-60, 1),
    ("MI300X f16 float32", [1], [1], -(2.0**-60), 1 - 2**-24),
    ("MI300X f16 float32", [2**-12, 2**-16], [2**-12, 2**-16], 1, 1),
    ("MI300X f16 float32", [-(2**-12), 2**-16], [2**-12, -(2**-16)], -1, -1 - 2**-23),
    ("MI300X f16 float32", [2**-12, 2**-15], [2**-12, 2**-16], 1, 1 + 2**-23),
    ("MI300X bf16 float32", [2**64, -(2**64)], [2**64, 2**64], 0, nan),
    ("MI300X bf16 float32", [2**64], [2**64], 0, inf),
    # FP8 on CDNA3: even and odd k are added separately, and a small c is dropped.
    ("MI300X e5m2z float32", [1, 0, -(2**-13)], [1, 0, 2**-13], 0, 1),
    ("MI300X e5m2z float32", [1, -(2**-13)], [1, 2**-13], 0, 1 - 2**-24),
    ("MI300X e4m3z float32", [1], [1], -(2.0**-25), 1 - 2**-24),
    ("MI300X e4m3z float32", [1], [1], -(2.0**-26), 1),
    # AVX-512: the second k of each pair comes first. AMX: two chains, then c.
    ("AVX512_BF16 bf16 float32", [2**-24, 1], [1, 1], -1, 2**-24),
    ("AVX512_BF16 bf16 float32", [1, 2**-24, -1], [1, 1, 1], 0, 0),
    ("AMX bf16 float32", [2**-24, 1], [1, 1], -1, 0),
    ("AMX bf16 float32", [1, 2**-24, -1], [1, 1, 1], 0, 2**-24),
    ("AMX bf16 float32", [1, *[0] * 31, 2**-24], [1] * 33, 2**-24, 1),
    # AVX-512 and AMX: subnormal numbers, found after rounding, become zeros of their
    # sign.
    ("AVX512_BF16 bf16 float32", [-(2**-64)], [2**-64], 0, -0.0),
    ("AVX512_BF16 bf16 float32", [-(2**-76)], [2**-76], 2.0**-126, 2.0**-126),
    ("AVX512_BF16 bf16 float32", [-(2**-75)], [2**-75], 2.0**-126, 0),
    ("AVX512_BF16 bf16 float32", [0, 2**-127], [0, 2**127], 1, 1),
    ("AMX f16 float32", [2**-24], [1], 0, 2**-24),
    ("AMX f16 float32", [0], [0], -LEAST, 0.0),
    # Arm: each step rounds to odd, and with FPCR.EBF = 1 there is only one step.
    ("Neoverse_V2 bf16 float32", [2**-15], [2**-15], 1, 1 + 2**-23),
    ("Neoverse_V2 bf16 float32", [-(2**-15)], [2**-15], 1, 1 - 2**-24),
    ("Neoverse_V2 bf16 float32", [2**-15], [2**-15], 1 + 2**-23, 1 + 2**-23),
    ("Neoverse_V2 bf16 float32", [2**127], [2], 0, inf),
    ("Neoverse_V2 bf16 float32", [2**-64], [2**-64], 0, 0),
    ("Neoverse_V2 bf16 float32 bfdot_ebf", [2**-12, 2**-30], [2**-12, 2**-30], 1, 1),
    ("Neoverse_V2 bf16 float32 bfdot_ebf", [-0.0, -0.0], [1, 1], -0.0, -0.0),
    ("Neoverse_V2 bf16 float32 bfdot_ebf", [2**-64], [2**-64], 0, 2.0**-128),
    # Inf and NaN.
    ("AMX bf16 float32", [inf], [0], 0, nan),
    ("MI300X bf16 float32", [inf], [1], -inf, nan),
    ("MI250X bf16 float32", [-inf], [2], 1, -inf),
    ("MI300X e5m2z float32", [1], [1], nan, nan),
]  # fmt: skip


@pytest.mark.parametrize(
    "fact", [*FACTS, *OTHER_FACTS], ids=lambda fact: fact[0].replace(" ", "-")
)
def test_facts(fact):
    name, a, b, c, want = fact
    model = row(name)
    (got,) = matrix_units.dots(model, [bits(a)], [bits(b)], bits([c]))
    expected = bits(want)
    if want != want:
        expected = 0x7FFFFFFF if model.accumulator == "float32" else 0x7FFFE000
    assert got == expected, f"{got:#010x}, not {expected:#010x}"


def test_low_bits_of_tf32_are_not_seen():
    model = row("A100 tf32 float32")
    one, low = bits(1), 0x1FFF
    assert matrix_units.dots(model, [[one | low]], [[one | low]], [0]) == [one]
    infinity, nan_in_low_bits = 0x7F800000, 0x7F801FFF
    assert matrix_units.dots(model, [[nan_in_low_bits]], [[one]], [0]) == [infinity]


def test_promotion():
    """fp8 as DeepGEMM adds it: 13 bits in the unit, float32 outside."""
    model = row("H100 e4m3 float32")
    ones, c = [bits(1)] * 128, bits(2.0**20 + 2.0**-3)
    inside = matrix_units.product(model, [ones], [ones], [[c]])
    outside = matrix_units.product(model, [ones], [ones], [[c]], promote_every=64)
    assert inside == [[bits(2.0**20)]]  # 32 is below the unit's kept bits
    assert outside == [[bits(2.0**20 + 128 + 2.0**-3)]]


def exact_sums(model: Any, cases: Cases) -> Iterator[tuple[Any, Fraction]]:
    """Yield the cases of finite numbers, and the exact c + products of each case."""
    for a, b, c in zip(*lists(cases), strict=True):
        x, y, z = values(model.a, a), values(model.b, b), values("float32", [c])
        if all(map(isfinite, [*x, *y, *z])):
            terms = (Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True))
            yield (a, b, c), sum(terms, Fraction(z[0]))


def test_fused_sums_are_exact(compared):
    """Sums are rounded once from the exact sum of Python's fractions."""
    for name in ("MI100 f16 float32", "MI100 bf16 float32", "MI100 f32 float32"):
        model = row(name)
        for (a, b, c), total in exact_sums(
            model, random_cases(model, 600, model.depth, 12)
        ):
            want, _ = encode_code(FLOAT32, from_fraction(total), "ties_to_even")
            (got,) = matrix_units.dots(model, [a], [b], [c])
            assert got == want or total == 0, f"{got:#010x}, not {want:#010x}"
            compared(1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("accumulator", ["float32", "float16"])
def test_units_that_cut_nothing_are_exact(accumulator, compared):
    """With enough bits, a block is the exact sum, rounded once."""
    f = FLOAT32 if accumulator == "float32" else FLOAT16
    rounding = "toward_zero" if accumulator == "float32" else "ties_to_even"
    for models in by_parameters([m for m in ALIGNED if not m.emulated]):
        if models[0].accumulator != accumulator:
            continue
        model = replace(models[0], fraction=700, kept=f.mantissa_bits)
        for (a, b, c), total in exact_sums(
            model, random_cases(model, 24, model.depth, 11)
        ):
            want, _ = encode_code(f, from_fraction(total), rounding)
            if f is FLOAT16:
                want = bits(np.uint16(want).view(np.float16))
            if abs(total) >= 2 ** (f.bias + 1):  # Inf, even if sums are truncated
                want = 0xFF800000 if total < 0 else 0x7F800000
            if want == 0x80000000:
                want = 0
            (got,) = matrix_units.dots(model, [a], [b], [c])
            assert got == want, f"{got:#010x}, not {want:#010x}"
            compared(1)


def values(name: str, items: list[int]) -> list[float]:
    with np.errstate(invalid="ignore"):  # signaling NaNs
        seen = exact(name, np.array(items, np.uint32)).view(np.float32)
        return [float(x) for x in seen.astype(np.float64)]
