"""Classes of inputs that loops treat separately, on every unit, against the integers.

Each class once was computed one element at a time, which is hundreds of times slower.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run
from tests.tensor_core.rounded_cases import UNLIKE, dtype_of
from tests.tensor_core.test_matmul import DISTINCT, one_by_one

Array = np.ndarray[Any, Any]
MODELS = [m for m in chain(DISTINCT, UNLIKE) if m.accumulator != "float64"]
M, K, N = 7, 300, 37  # more than a loop's k-step, and than a vector

FINITE = {
    "wide": (-60, 60, -60, 60),
    "all exponents": (-140, 120, -140, 120),
    "subnormal": (-131, -126, -131, -126),
    "subnormal by large": (-131, -126, 90, 110),
    "subnormal by ordinary": (-131, -126, -1, 1),
    "results near the least": (-64, -62, -64, -62),
    "results near the floor": (-72, -66, -72, -66),
    "results at the end of the loops": (-56, -50, -56, -50),
    "overflow": (60, 70, 60, 70),
    "near overflow": (60, 64, 58, 62),
}
SPECIAL = {
    "Inf": (np.inf,),
    "both Inf": (np.inf, -np.inf),
    "NaN": (np.nan,),
    "all of them": (np.inf, -np.inf, np.nan, 0.0, -0.0),
}


def scaled(rng: np.random.Generator, shape: tuple[int, int], least: int, most: int):
    x = rng.choice([-1, 1], shape) * rng.uniform(1, 2, shape)
    return np.ldexp(x, rng.integers(least, most + 1, shape))


def operands(model: Any, kind: str) -> Iterator[tuple[Array, Array, Array]]:
    """Yield operands of only the class, or with others, and c zero or not."""
    rng = np.random.default_rng(sorted([*FINITE, *SPECIAL]).index(kind))
    a, b = scaled(rng, (M, K), -3, 3), scaled(rng, (K, N), -3, 3)
    if kind in FINITE:
        of_a, of_b = FINITE[kind][:2], FINITE[kind][2:]
        x, y = scaled(rng, (M, K), *of_a), scaled(rng, (K, N), *of_b)
        mixed = [(x, y), (np.where(rng.random(a.shape) < 0.1, x, a), b)]
        x, y = x * (rng.random(x.shape) < 0.1), y * (rng.random(y.shape) < 0.5)
        mixed.append((x, y))
    else:
        mixed = []
        for share in (0.001, 0.1):
            x, y = (
                np.where(
                    rng.random(z.shape) < share, rng.choice(SPECIAL[kind], z.shape), z
                )
                for z in (a, b)
            )
            mixed += [(x, y), (x, b), (a, y), (x * 2.0**-127, y), (x * 2.0**100, y)]
    c = np.ldexp(rng.standard_normal((M, N)), rng.integers(-140, 100, (M, N)))
    c[rng.random(c.shape) < 0.3] = 0
    c[0, 0], c[1, 1], c[2, 2], c[3, 3] = np.inf, -np.inf, np.nan, -0.0
    with np.errstate(all="ignore"):
        of_c = [np.zeros((M, N), model.accumulator), c.astype(model.accumulator)]
        for x, y in mixed:
            first, second = x.astype(dtype_of(model.a)), y.astype(dtype_of(model.b))
            yield from ((first, second, z) for z in of_c)


def product(model: Any, a: Array, b: Array, c: Array) -> Array:
    return td.tensor_core.matmul(
        a, b, c, device=model.device, instruction=model.instruction,
        accumulator=model.accumulator,
    )  # fmt: skip


@pytest.mark.sampled(20)
@pytest.mark.parametrize("kind", [*FINITE, *SPECIAL])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_fast_loops_equal_the_integers(model, kind, compared):
    for a, b, c in operands(model, kind):
        got = product(model, a, b, c).astype(np.float32)
        want = one_by_one(model, a, b, c)
        nan = np.isnan(got) & np.isnan(want)  # float16's and float32's bits differ
        unlike = (got.view(np.uint32) != want.view(np.uint32)) & ~nan
        assert not unlike.any(), (np.argwhere(unlike)[:3], got[unlike], want[unlike])
        compared(got.size)


def digests() -> dict[str, str]:
    return {
        f"{model.name}, {kind}": hashlib.sha256(
            b"".join(product(model, *each).tobytes() for each in operands(model, kind))
        ).hexdigest()
        for model in MODELS
        for kind in (*FINITE, *SPECIAL)
    }


PRINT_DIGESTS = """
import json, tf32dtype as td
from tests.tensor_core.test_input_classes import digests
print(json.dumps([td.isa(), digests()]))
"""


@pytest.fixture(scope="module")
def digests_here() -> dict[str, str]:
    return digests()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "isa", [isa for isa in td._core.available_isas() if isa != td.isa()]
)
def test_same_bits_on_every_instruction_set(isa, digests_here, compared):
    there, found = json.loads(run("-c", PRINT_DIGESTS, TF32DTYPE_ISA=isa))
    assert there == isa
    assert [name for name in found if found[name] != digests_here[name]] == []
    assert found.keys() == digests_here.keys()
    compared(len(found))
