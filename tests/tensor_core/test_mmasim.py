"""Every instruction of mmasim: the bits of thousands of rows, except for NaN payloads.

Lists below name what only mmasim or only this package has, and why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mmasim")

import tf32dtype as td  # noqa: E402
from tests.tensor_core import scaled_cases  # noqa: E402
from tests.tensor_core.arrays import accumulator, operand  # noqa: E402
from tests.tensor_core.cases import (  # noqa: E402
    WITH_CASES,
    Cases,
    parameters,
    random_cases,
)
from tests.tensor_core.edge_cases import edges  # noqa: E402
from tests.tensor_core.mmasim_peer import (  # noqa: E402
    Array,
    Facts,
    Instruction,
    Rows,
    instructions,
    together,
)
from tf32dtype.tensor_core.block_scaled import BLOCK_SCALED, BlockScaled  # noqa: E402
from tf32dtype.tensor_core.device import MODELS  # noqa: E402

pytestmark = pytest.mark.once

SOME, MANY = 400, 10_000  # rows of each instruction, at least

#: Models without an instruction of mmasim, by name, with the reason.
NOT_THERE = {
    "H100 mma.sync float8_*": "an assembler makes float16 instructions of it",
    "B200 mma.sync float8_*": "an assembler makes float16 instructions of it",
    "AVX512_BF16 *": "a CPU's",
    "AMX *": "a CPU's",
    "Arm BF16 *": "a CPU's",
}
#: Instructions of mmasim without a model, with the reason.
NOT_MODELED = {
    "* m8n8k4.f32.f16.f16.f16": "accumulators are float16 and results float32",
}


class Difference(NamedTuple):
    """Results that differ from mmasim's, with the reason."""

    reason: str
    #: takes our results and mmasim's
    is_one: Callable[[Array, Array], Array]


#: The key is the name of instructions.
DIFFERENT = {
    "MI100 mfma f32_*16": Difference(
        "a sum of -0 alone is -0, as IEEE 754 has it. mmasim adds to +0 what it has"
        " split exactly; its negative sums that underflow are -0, too",
        lambda ours, mmasim: (ours == 0) & np.signbit(ours) & (mmasim == 0),
    ),
    "MI250X mfma* f32_*bf16*": Difference(
        "an accumulator of -0 becomes +0 where an instruction begins, which in the"
        " model is each group; these are several groups long",
        lambda ours, mmasim: (ours == 0) & (mmasim == 0) & np.signbit(mmasim),
    ),
    "MI300X mfma *_bf8_bf8": Difference(
        "accumulators that are Inf or NaN are kept. mmasim drops those far below the"
        " products, and takes -1 for the exponents of Inf and NaN",
        lambda ours, mmasim: ~np.isfinite(ours) & np.isfinite(mmasim),
    ),
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


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread, as more threads are slower for a thousand rows."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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
    assert [x for x in missing if not named(x, NOT_MODELED)] == []


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
    """Return codes of a format. "few" numbers often cancel, "wide" numbers are any
    finite numbers, and "bits" are any codes."""
    dtype = as_dtype(name)
    if kind in ("wide", "sparse", "bits"):
        bits = 8 * dtype.itemsize if dtype.itemsize > 1 else td.formats[name].bits
        codes = rng.integers(0, 1 << bits, shape, np.uint64)
        codes = codes.astype(f"u{dtype.itemsize}")
        if kind == "sparse":
            codes[rng.random(shape) > 2 / shape[-1]] = 0
        with np.errstate(invalid="ignore"):
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
    with np.errstate(over="ignore"):
        return as_codes(numbers.astype(dtype))


def drawn_rows(model: Any, count: int, k: int, seed: int) -> Rows:
    """Return rows of all kinds, about equally many of each kind."""
    rng = np.random.default_rng([seed, k])
    rows = math.ceil(count / len(KINDS))
    found = []
    for kind in KINDS:
        a = drawn(rng, model.a, (rows, k), kind)
        b = drawn(rng, model.b, (rows, k), "normal" if kind == "tiny" else kind)
        found.append(Rows(a, b, drawn(rng, model.accumulator, (rows,), kind)))
    return together(found)


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
    """Return k for both. An instruction shorter than a group of the model is padded
    with zeros."""
    if instruction.k % model.depth:
        return instruction.k
    if isinstance(model, BlockScaled):
        return model.depth
    return math.lcm(instruction.k, model.instruction_depth)


def some_rows(model: Any, count: int, k: int, seed: int) -> Rows:
    if isinstance(model, BlockScaled):
        return scaled_rows(model, count, k, seed)
    if model.accumulator == "float64":
        return drawn_rows(model, count, k, seed)
    half = count // 2
    more = random_cases(model, count - half, k, seed)
    return together([drawn_rows(model, half, k, seed), of_cases(model, more)])


def scaled_rows(model: Any, count: int, k: int, seed: int) -> Rows:
    """Return the rows of scaled_cases.py, and rows of two more kinds."""
    rng = np.random.default_rng([seed, k])
    count = math.ceil(count / (len(scaled_cases.KINDS) + 2))
    by_kind = {
        kind: of_scaled_cases(model, scaled_cases.cases(model, kind, count, k, seed))
        for kind in scaled_cases.KINDS
    }
    more = [
        below_the_accumulators(model, by_kind["normal"], rng),
        with_sums_of_zero(model, by_kind["wide"], rng),
    ]
    return together([*by_kind.values(), *more])


def below_the_accumulators(model: Any, rows: Rows, rng: np.random.Generator) -> Rows:
    """Return few small products, in two bands at a distance of about the kept bits."""
    a = rows.a * (rng.random(rows.a.shape) < 0.1)
    c = drawn(rng, model.accumulator, rows.c.shape, "tiny")
    c *= rng.random(c.shape) < 0.3
    if model.scale != "float8_e8m0fnu":  # the smallest scales are larger
        return rows._replace(a=a, c=c)
    shape = rows.scales[0].shape
    exponents = rng.integers(-165, -130, (len(c), 1))
    lower = exponents - model.fraction + rng.integers(-3, 4, shape)
    exponents = np.where(rng.random(shape) < 0.5, exponents, lower)
    halves = exponents // 2, exponents - exponents // 2
    codes = tuple((127 + half).astype(np.uint8) for half in halves)
    return rows._replace(a=a, c=c, scales=codes)


def with_sums_of_zero(model: Any, rows: Rows, rng: np.random.Generator) -> Rows:
    """Replace half of the groups of 16 k by pairs that cancel or, in every other row,
    zeros."""
    shape = rows.a.shape
    here = np.repeat(rng.random((shape[0], shape[1] // 16)) < 0.5, 16, axis=1)
    a, b = (np.repeat(x[:, ::2], 2, axis=1) for x in (rows.a, rows.b))
    a[:, 1::2] ^= np.uint8(1 << td.formats[model.a].bits - 1)
    a[::2] = 0
    return rows._replace(a=np.where(here, a, rows.a), b=np.where(here, b, rows.b))


@cache
def edge_rows(model: Any) -> list[Rows]:
    return [of_cases(model, cases) for cases in edges(model)]


# -- results ---------------------------------------------------------------------------


def results(model: Any, rows: Rows) -> Array:
    """Return the package's results: row by row of a stack."""
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
    for name, difference in DIFFERENT.items():
        if fnmatchcase(str(instruction), name):
            wrong &= ~difference.is_one(*numbers)
    lines = [f"{model.name}, {instruction}: {wrong.sum()} of {len(got)} differ"]
    for i in np.flatnonzero(wrong)[:4]:
        a, b = rows.a[i].view(as_dtype(model.a)), rows.b[i].view(as_dtype(model.b))
        there = np.flatnonzero((a != 0) | (b != 0))
        terms = ", ".join(f"{k}: {a[k]} * {b[k]}" for k in there[:16])
        lines.append(
            f"  k = {len(a)}, c = {rows.c[i]:#x}, {terms}, scales"
            f" {[x[i].tolist() for x in rows.scales]}: {got[i]:#x} = {numbers[0][i]},"
            f" mmasim {want[i]:#x} = {numbers[1][i]}"
        )
    assert not wrong.any(), "\n".join(lines)
    return len(got)


def check(instruction: Instruction, count: int, seed: int) -> int:
    """Check one instruction, and two instructions if their groups are the model's."""
    model = MODEL_OF[instruction.facts]
    k = length(model, instruction)
    longer = k if k % model.depth else 2 * k
    half = count // 2
    return assert_equal(instruction, some_rows(model, half, k, seed)) + assert_equal(
        instruction, some_rows(model, count - half, longer, seed + 1)
    )


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
    whole = instruction.k % model.depth == 0
    if whole and model in WITH_CASES:
        for rows in edge_rows(FIRST[parameters(model)]):
            count += assert_equal(instruction, rows)
    compared(count)
