"""Every instruction that mmasim has, too: bits of thousands of rows, NaN's payload aside.

mmasim is no truth about a device: where the two differ, a table says which one is right,
and how that is known.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mmasim", reason="needs the extra test-mmasim")

import tf32dtype as td  # noqa: E402
from tests.tensor_core import scaled_cases  # noqa: E402
from tests.tensor_core.arrays import accumulator, operand  # noqa: E402
from tests.tensor_core.cases import Cases, parameters, random_cases  # noqa: E402
from tests.tensor_core.edge_cases import edges  # noqa: E402
from tests.tensor_core.mmasim_peer import (  # noqa: E402
    Array,
    Facts,
    Instruction,
    Rows,
    instructions,
)
from tf32dtype.tensor_core.block_scaled import BLOCK_SCALED, BlockScaled  # noqa: E402
from tf32dtype.tensor_core.models import MODELS  # noqa: E402

pytestmark = pytest.mark.once

SOME, MANY = 400, 10_000  # rows of each instruction, at least

#: Models of which mmasim has no instruction, by name, and why.
NOT_THERE = {
    "H100 mma.sync float8_*": "an assembler makes float16 instructions of it",
    "B200 mma.sync float8_*": "an assembler makes float16 instructions of it",
}
#: Instructions of mmasim without a model, and why.
NOT_MODELLED = {
    "* m8n8k4.f32.f16.f16.f16": "accumulators are float16 and results float32",
    "T4 mma.sync.m8n8k4 *": "no model yet",
    "*.f64.f64.*": "no model yet",
    "*e2m3*": "no model yet",
    "*e3m2*": "no model yet",
    "MI* mfma*": "no model yet",
}


def facts(model: Any) -> Facts:
    names = model.device, model.instruction, model.a, model.b, model.accumulator
    if isinstance(model, BlockScaled):
        return Facts(*names, model.scale, model.block_size)
    return Facts(*names)


MODEL_OF = {facts(model): model for model in (*MODELS, *BLOCK_SCALED)}
FIRST = {parameters(model): model for model in MODELS[::-1]}
ALL = [*instructions()]
BOTH = [x for x in ALL if x.facts in MODEL_OF]

each_instruction = pytest.mark.parametrize("instruction", BOTH, ids=str)


def named(name: str, patterns: dict[str, str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def test_every_model_is_compared_or_named():
    compared = {x.facts for x in BOTH}
    missing = [m.name for which, m in MODEL_OF.items() if which not in compared]
    assert [x for x in missing if not named(x, NOT_THERE)] == []
    there = [m.name for which, m in MODEL_OF.items() if which in compared]
    assert [x for x in there if named(x, NOT_THERE)] == []


def test_every_instruction_is_compared_or_named():
    missing = [str(x) for x in ALL if x.facts not in MODEL_OF]
    assert [x for x in missing if not named(x, NOT_MODELLED)] == []


# -- codes -----------------------------------------------------------------------------


def as_dtype(name: str) -> np.dtype[Any]:
    numpys = name in ("float16", "float32", "float64")
    return np.dtype(getattr(np if numpys else td, name))


def as_codes(numbers: Array) -> Array:
    return np.ascontiguousarray(numbers).view(f"u{numbers.dtype.itemsize}")


KINDS = ("normal", "few", "tiny", "wide", "sparse", "bits")


def drawn(
    rng: np.random.Generator, name: str, shape: tuple[int, ...], kind: str
) -> Array:
    """Codes of a format. "few" numbers are different, so that they cancel; all of "wide"
    and "sparse" are finite, and most of "bits"."""
    dtype = as_dtype(name)
    if kind in ("wide", "sparse", "bits"):
        bits = 8 * dtype.itemsize if dtype.itemsize > 1 else td.formats[name].bits
        codes = rng.integers(0, 1 << bits, shape, np.uint64)
        codes = codes.astype(f"u{dtype.itemsize}")
        if kind == "sparse":
            codes[rng.random(shape) > 2 / shape[-1]] = 0
        finite = np.isfinite(codes.view(dtype).astype(np.float64))
        kept = finite | (kind == "bits") & (rng.random(shape) < 0.5 / shape[-1])
        return codes * kept
    if kind == "few":
        numbers = rng.integers(-4, 5, shape) / 2
    else:
        numbers = rng.standard_normal(shape)
    if kind == "tiny":
        least = np.finfo(dtype)
        numbers *= float(least.smallest_normal)
        numbers *= 2.0 ** rng.integers(-least.nmant, 4, shape)
    return as_codes(numbers.astype(dtype))


def drawn_rows(model: Any, count: int, k: int, seed: int) -> list[Rows]:
    """About equally many of each kind."""
    rng = np.random.default_rng([seed, k])
    rows = math.ceil(count / len(KINDS))
    found = []
    for kind in KINDS:
        a = drawn(rng, model.a, (rows, k), kind)
        b = drawn(rng, model.b, (rows, k), "normal" if kind == "tiny" else kind)
        found.append(Rows(a, b, drawn(rng, model.accumulator, (rows,), kind)))
    return found


def of_cases(model: Any, cases: Cases) -> Rows:
    return Rows(
        as_codes(operand(model.a, cases.a)),
        as_codes(operand(model.b, cases.b)),
        as_codes(accumulator(model.accumulator, cases.c)),
    )


def of_scaled_cases(model: Any, cases: scaled_cases.Cases) -> Rows:
    scales = cases.scales_a, cases.scales_b
    unscaled = Cases(cases.a, cases.b, cases.c)
    return of_cases(model, unscaled)._replace(scales=scales)


# -- rows ------------------------------------------------------------------------------


def length(model: Any, instruction: Instruction) -> int:
    """k of both: where an instruction has less than a group, the model gets zeros."""
    if instruction.k % model.depth:
        return instruction.k
    if isinstance(model, BlockScaled):
        return model.depth
    return math.lcm(instruction.k, model.instruction_depth)


def has_cases(model: Any) -> bool:
    """Whether cases.py knows the formats, of which float32 holds all numbers."""
    return not {model.a, model.b, model.accumulator} & {"float64"} and model.a != "float32"


def some_rows(model: Any, count: int, k: int, seed: int) -> list[Rows]:
    if isinstance(model, BlockScaled):
        return scaled_rows(model, count, k, seed)
    if not has_cases(model):
        return drawn_rows(model, count, k, seed)
    return [
        *drawn_rows(model, count // 2, k, seed),
        of_cases(model, random_cases(model, count - count // 2, k, seed)),
    ]


def scaled_rows(model: Any, count: int, k: int, seed: int) -> list[Rows]:
    kinds = scaled_cases.KINDS
    rows = math.ceil(count / (len(kinds) + 1))
    found = [
        of_scaled_cases(model, scaled_cases.cases(model, kind, rows, k, seed))
        for kind in kinds
    ]
    # Small ones: scales by which products come near the least accumulators.
    normal = found[0]
    rng = np.random.default_rng([seed, k])
    small = rng.integers(40, 70, normal.scales[0].shape, np.uint8)
    c = drawn(rng, model.accumulator, normal.c.shape, "tiny")
    found.append(normal._replace(c=c, scales=(small, normal.scales[1] // 2)))
    return found


@cache
def edge_rows(model: Any) -> list[Rows]:
    return [of_cases(model, cases) for cases in edges(model)]


# -- results ---------------------------------------------------------------------------


def results(model: Any, rows: Rows) -> Array:
    """The package's: row by row of a stack."""
    a, b = rows.a.view(as_dtype(model.a)), rows.b.view(as_dtype(model.b))
    left: Any = a[:, np.newaxis]
    right: Any = b[:, :, np.newaxis]
    if rows.scales:
        s, t = (x[:, np.newaxis] for x in rows.scales)
        size, scale = model.block_size, model.scale
        left = scaled_cases.Blocks(f"{model.a}", left, s, 2, size, scale)
        right = scaled_cases.Blocks(f"{model.b}", right, t, 1, size, scale)
    dtype = as_dtype(model.accumulator)
    got = td.tensor_core.matmul(
        left,
        right,
        rows.c.view(dtype)[:, np.newaxis, np.newaxis],
        device=model.device,
        instruction=model.instruction,
        accumulator=dtype.type,
    )
    return as_codes(got.ravel())


def assert_equal(instruction: Instruction, rows: Rows) -> int:
    model = MODEL_OF[instruction.facts]
    got, want = results(model, rows), instruction.results(rows)
    numbers = [x.view(as_dtype(model.accumulator)) for x in (got, want)]
    wrong = (got != want) & ~np.isnan(numbers).all(0)
    lines = [f"{model.name}, {instruction.name}: {wrong.sum()} of {len(got)} differ"]
    for i in np.flatnonzero(wrong)[:4]:
        terms = [
            f"{k}: {x} * {y}"
            for k, x, y in zip(
                range(rows.a.shape[1]),
                rows.a[i].view(as_dtype(model.a)),
                rows.b[i].view(as_dtype(model.b)),
                strict=True,
            )
            if x != 0 or y != 0
        ]
        lines.append(
            f"  c = {rows.c[i]:#x}, scales {[x[i].tolist() for x in rows.scales]},"
            f" {', '.join(terms)}: {got[i]:#x} = {numbers[0][i]},"
            f" mmasim {want[i]:#x} = {numbers[1][i]}"
        )
    assert not wrong.any(), "\n".join(lines)
    return len(got)


def check(instruction: Instruction, count: int, seed: int) -> int:
    model = MODEL_OF[instruction.facts]
    k = length(model, instruction)
    groups = some_rows(model, count // 2, k, seed)
    chained = k if k % model.depth else 2 * k
    groups += some_rows(model, count - count // 2, chained, seed + 1)
    return sum(assert_equal(instruction, rows) for rows in groups)


@each_instruction
def test_some_rows(instruction, compared):
    count = check(instruction, SOME, 1)
    assert count >= SOME
    compared(count)


@pytest.mark.exhaustive
@each_instruction
def test_many_rows(instruction, compared):
    count = check(instruction, MANY, 3)
    assert count >= MANY
    model = MODEL_OF[instruction.facts]
    if not isinstance(model, BlockScaled) and has_cases(model):
        for rows in edge_rows(FIRST[parameters(model)]):
            if rows.a.shape[1] % instruction.k == 0 and not instruction.k % model.depth:
                count += assert_equal(instruction, rows)
    compared(count)
