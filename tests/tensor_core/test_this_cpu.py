"""The dot products of CPUs: the model against the instruction itself, where this CPU
has it, and against its vendor's pseudocode in fused multiply-adds of this CPU.

What a NaN carries is not compared. Source for AVX512_BF16: Intel's Software Developer's
Manual, VDPBF16PS: "FP32 FMA with daz in, ftz out and RNE rounding", the odd element
first, MXCSR not consulted. Bochs has the same order and flushes the same. No document
was found that says more, nor one of AMD's that differs.

tools/bochs runs these tests on a processor that Bochs emulates, which has AVX512-BF16,
AMX-BF16 and AMX-FP16.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.compiled import library
from tests.tensor_core.arrays import floats, operand
from tests.tensor_core.cases import Array, Cases, random_cases
from tests.tensor_core.edge_cases import edges
from tf32dtype import _core
from tf32dtype.tensor_core.look_up import find_model

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]

SOME, MANY = 100_000, 10_000_000
MOST = 50_000  # rows at a time
NAN, SIGN, INF, LEAST = map(np.uint32, (0x7FFFFFFF, 1 << 31, 0x7F800000, 1 << 23))

VDPBF16PS = find_model("AVX512_BF16", "vdpbf16ps", "bfloat16", "bfloat16", "float32")
TDPBF16PS = find_model("AMX", "tdpbf16ps", "bfloat16", "bfloat16", "float32")
TDPFP16PS = find_model("AMX", "tdpfp16ps", "float16", "float16", "float32")
#: Of the same formats: its cases reach all exponents, and have long rows.
OTHER = {
    name: find_model("A100", "mma.sync", name, name, "float32")
    for name in ("bfloat16", "float16")
}

# -- C ---------------------------------------------------------------------------------

#: d = c + a b of rows, a multiple of 16: words of two bfloat16 numbers, the first k in
#: the lower half, word after word of all rows.
SIGNATURE = """
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
void dots(const uint32_t *a, const uint32_t *b, const float *c, size_t words,
          size_t rows, float *d)
"""

INSTRUCTION = f"""
{SIGNATURE}
{{
    for (size_t i = 0; i < rows; i += 16) {{
        __m512 sum = _mm512_loadu_ps(c + i);
        for (size_t w = 0; w < words; w++) {{
            const __m512i x = _mm512_loadu_si512(a + w * rows + i);
            const __m512i y = _mm512_loadu_si512(b + w * rows + i);
            sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
        }}
        _mm512_storeu_ps(d + i, sum);
    }}
}}
"""

#: Row i of a by column i of b, of 16 rows and columns at a time. Bytes stand for an
#: instruction that not every assembler knows.
TILES = """
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
/* Compilers do not know what memory instructions of tiles take and give. */
static inline void all_is_written(void) {{ __asm__ volatile("" ::: "memory"); }}
{signature}
{{
    const struct {{
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    }} shapes __attribute__((aligned(64))) = {{
        .palette = 1, .row_bytes = {{64, 64, 64}}, .rows = {{16, 16, 16}}
    }};
    uint32_t of_a[16][16];
    float sums[16][16] = {{0}};
    all_is_written();
    _tile_loadconfig(&shapes);
    for (size_t i = 0; i < rows; i += 16) {{
        for (size_t row = 0; row < 16; row++) {{
            sums[row][row] = c[i + row];
        }}
        all_is_written();
        _tile_loadd(0, sums, sizeof *sums);
        for (size_t w = 0; w < words; w += 16) {{
            for (size_t row = 0; row < 16; row++) {{
                for (size_t word = 0; word < 16; word++) {{
                    of_a[row][word] = a[(w + word) * rows + i + row];
                }}
            }}
            all_is_written();
            _tile_loadd(1, of_a, sizeof *of_a);
            _tile_loadd(2, b + w * rows + i, rows * sizeof *b);
            __asm__ volatile(".byte 0xC4, 0xE2, {byte}, 0x5C, 0xC1"); /* 0 += 1 by 2 */
        }}
        _tile_stored(0, sums, sizeof *sums);
        all_is_written();
        for (size_t row = 0; row < 16; row++) {{
            d[i + row] = sums[row][row];
        }}
    }}
    _tile_release();
}}
int is_here(void)
{{
    unsigned a = 0, b, c, d;
    const unsigned mask = 1u << {bit};
    enum {{ ASK = 0x1023, TILE_DATA = 18 }}; /* arch_prctl's ARCH_REQ_XCOMP_PERM */
    return __get_cpuid_count(7, {leaf}, &a, &b, &c, &d) && ({register} & mask) &&
           !syscall(SYS_arch_prctl, ASK, TILE_DATA);
}}
"""
#: The byte of its prefixes, and where CPUID has it.
OF_TILES = {
    "tdpbf16ps": {"byte": "0x6A", "leaf": 0, "register": "d", "bit": 22},
    "tdpfp16ps": {"byte": "0x6B", "leaf": 1, "register": "a", "bit": 21},
}

#: Scalars with denormals as zeros, results flushed to zero, to nearest.
PSEUDOCODE = """
#include <immintrin.h>
#include <stdint.h>
static float part(uint32_t word, int odd)
{{
    const uint32_t bits = odd ? word & 0xFFFF0000 : word << 16;
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)bits)));
}}
static float fma_(uint32_t x, uint32_t y, int odd, float z)
{{
    const __m128 a = _mm_set_ss(part(x, odd)), b = _mm_set_ss(part(y, odd));
    return _mm_cvtss_f32(_mm_fmadd_ss(a, b, _mm_set_ss(z)));
}}
static float add(float x, float y)
{{
    return _mm_cvtss_f32(_mm_add_ss(_mm_set_ss(x), _mm_set_ss(y)));
}}
__attribute__((noinline)) static void rows_of(const uint32_t *a, const uint32_t *b,
    const float *c, unsigned long words, unsigned long rows, float *d)
{{
    for (unsigned long i = 0; i < rows; i++) {{
        float sum = c[i];
        {chains}
        d[i] = sum;
    }}
}}
{signature}
{{
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(0x1F80 | 0x8000 | 0x0040);
    rows_of(a, b, c, words, rows, d);
    _mm_setcsr(saved);
}}
"""

CHAINS = {
    "vdpbf16ps": """
        for (unsigned long w = 0; w < words; w++) {
            const uint32_t x = a[w * rows + i], y = b[w * rows + i];
            sum = fma_(x, y, 0, fma_(x, y, 1, sum));
        }""",
    "tdpbf16ps": """
        for (unsigned long w = 0; w < words;) {
            float even = 0, odd = 0;
            for (unsigned long end = w + 16; w < end; w++) {
                const uint32_t x = a[w * rows + i], y = b[w * rows + i];
                even = fma_(x, y, 0, even);
                odd = fma_(x, y, 1, odd);
            }
            sum = add(sum, add(even, odd));
        }""",
}


def pairs(model: Any, x: Array, rows: int) -> Array:
    """Numbers of a model's format of each two k, from float32's bits, with zeros up to
    whole instructions: (words, rows)."""
    k = x.shape[1]
    full = np.zeros((rows, k + -k % model.instruction_depth), "<u2")
    full[: len(x), :k] = operand(model.a, x).view(np.uint16)
    return np.ascontiguousarray(full.view("<u4").T)


Compute = Callable[[Cases], Array]


def computing(made: ctypes.CDLL, model: Any) -> Compute:
    """Compiled C as a function: the bits of its results."""

    def compute(cases: Cases) -> Array:
        rows = -(-len(cases.c) // 16) * 16
        a, b = pairs(model, cases.a, rows), pairs(model, cases.b, rows)
        c, d = np.zeros(rows, np.uint32), np.empty(rows, np.uint32)
        c[: len(cases.c)] = cases.c
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, c, d)]
        sizes = ctypes.c_size_t(len(a)), ctypes.c_size_t(rows)
        made.dots(*pointers[:3], *sizes, pointers[3])
        return d[: len(cases.c)]

    return compute


def instruction(model: Any) -> Compute:
    if model.device == "AMX":
        text = TILES.format(signature=SIGNATURE, **OF_TILES[model.instruction])
        made = library(text, "-mamx-tile")
        if not made.is_here():
            pytest.skip(f"this CPU, or its system, has no {model.instruction}")
        return computing(made, model)
    if "x86-64-v4-bf16" not in _core.available_isas():
        pytest.skip("this CPU, or this build, has no AVX512-BF16")
    return computing(library(INSTRUCTION, "-mavx512bf16"), model)


def pseudocode(model: Any) -> Compute:
    if "x86-64-v3" not in _core.available_isas():
        pytest.skip("this CPU, or this build, has no FMA")
    chains = CHAINS[model.instruction]
    made = library(PSEUDOCODE.format(chains=chains, signature=SIGNATURE), "-mfma")
    return computing(made, model)


# -- rows ------------------------------------------------------------------------------


def numbers(rng: np.random.Generator, exponents: Array) -> Array:
    """Of bfloat16, of either sign. Exponents are clipped to those of subnormal and of
    finite numbers."""
    fields = np.clip(exponents + 127, 0, 254).astype(np.uint32) << 23
    shape = exponents.shape
    rest = rng.integers(0, 1 << 7, shape, np.uint32) << 16
    rest *= rng.random(shape) < 0.7
    return fields | rest | rng.integers(0, 2, shape, np.uint32) << 31


def around(rng: np.random.Generator, rows: int, k: int, low: int, high: int) -> Cases:
    """Products whose exponents lie about a centre between low and high, as c's does."""
    centre = rng.integers(low, high + 1, (rows, 1))
    exponents = centre + rng.integers(-12, 13, (rows, k))
    of_a = rng.integers(-126, 128, (rows, k))
    of_a = np.clip(of_a, exponents - 127, exponents + 126)
    a, b = numbers(rng, of_a), numbers(rng, exponents - of_a)
    c = numbers(rng, centre[:, 0] + rng.integers(-26, 27, rows))
    c |= rng.integers(0, 1 << 16, rows, np.uint32)
    return Cases(a, b, np.where(rng.random(rows) < 0.2, c & SIGN, c))


def any_bits(rng: np.random.Generator, rows: int, k: int) -> Cases:
    a, b = (rng.integers(0, 1 << 16, (rows, k), np.uint32) << 16 for _ in range(2))
    return Cases(a, b, rng.integers(0, 1 << 32, rows, np.uint32))


def specials(rng: np.random.Generator, rows: int, k: int) -> Cases:
    """Inf, NaN, zeros, the largest and the least, few of them in a row."""
    a, b, c = around(rng, rows, k, -120, 120)
    items = [0, 1, 0x7F, 0x80, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x3F80]
    codes = np.array(items, np.uint32) << 16
    for x in (a, b, c):
        drawn = (
            rng.choice(codes, x.shape) | rng.integers(0, 2, x.shape, np.uint32) << 31
        )
        here = rng.random(x.shape) < (0.5 / k if x.ndim == 2 else 0.3)
        x[here] = drawn[here]
    return Cases(a, b, c)


def cancelling(rng: np.random.Generator, rows: int, k: int) -> Cases:
    """c is the negative of one product, or next to it."""
    a, b, _ = around(rng, rows, k, -135, 120)
    which = np.arange(rows), rng.integers(0, k, rows)
    with np.errstate(all="ignore"):
        c = -(floats(a[which]) * floats(b[which]))
    return Cases(a, b, c.view(np.uint32) + rng.integers(-2, 3, rows).astype(np.uint32))


def least_normal(rng: np.random.Generator, rows: int, k: int) -> Cases:
    """c is 2^-126 or next to it, and what is added takes it just below, or not."""
    a, b, _ = around(rng, rows, k, -156, -140)
    keep = rng.random((rows, k)) < 1.5 / k
    c = LEAST + rng.integers(-2, 3, rows).astype(np.uint32)
    return Cases(a * keep, b, c | rng.integers(0, 2, rows, np.uint32) << 31)


Kind = Callable[[np.random.Generator, int, int], Cases]
KINDS: tuple[Kind, ...] = (
    any_bits,
    specials,
    cancelling,
    least_normal,
    lambda rng, rows, k: around(rng, rows, k, -250, 120),
    lambda rng, rows, k: around(rng, rows, k, -135, -115),
    lambda rng, rows, k: around(rng, rows, k, 115, 130),
)


def adversarial(count: int, seed: int) -> Iterator[Cases]:
    """So many rows at least, of all kinds and some lengths; few of the longest."""
    lengths = 1, 2, 3, 8
    each = -(-count // (len(KINDS) * len(lengths)))
    for number, kind in enumerate(KINDS):
        for k, rows in [*((k, each) for k in lengths), (34, each // 8)]:
            rng = np.random.default_rng([seed, number, k])
            for first in range(0, rows, MOST):
                yield kind(rng, min(MOST, rows - first), k)


def all_rows(model: Any, count: int) -> Iterator[Cases]:
    other = OTHER[model.a]
    yield from edges(other)
    narrow = model.a == "float16"
    for k in (1, 2, 16, 33):
        yield random_cases(other, count // 5 if narrow else 2000, k, 3)
    if not narrow:
        yield from adversarial(count, 4)


# -- differences -----------------------------------------------------------------------

TININESS = "2^-126 against zero: tininess before or after the rounding"
#: Differences that are no failure of a CPU's instruction, and why.
TOLERATED = {
    TININESS: "manuals say that denormal results are flushed; not whether what is below"
    " 2^-126 and rounds to it is one",
}

#: What an instruction could do instead.
OTHERWISE = {
    "the even element comes first": {"odd_first": False},
    "subnormal operands are kept": {"flushed": "kept"},
    "subnormal operands become +0": {"flushed": "+0"},
    "subnormal results are kept": {"flushes_results": False},
    "both products and c are rounded once": {"depth": 2, "odd_first": False},
    "each product and sum is rounded": {
        "depth": 2, "odd_first": False, "arithmetic": "stepwise",
    },
}  # fmt: skip


def canonical(bits: Array) -> Array:
    return np.where((bits & ~SIGN) > INF, NAN, bits)


def modelled(model: Any, cases: Cases) -> Array:
    return canonical(_core.mma_accumulate(model, *cases))


def classes(model: Any, cases: Cases, got: Array, want: Array) -> dict[str, int]:
    """By name, how many of rows that differ are of a class; a row may be of several."""
    magnitudes = np.sort([got & ~SIGN, want & ~SIGN], axis=0)
    found = {
        "the sign of a zero": magnitudes[1] == 0,
        TININESS: (magnitudes[0] == 0) & (magnitudes[1] == LEAST),
        "a subnormal number against zero": (magnitudes[0] == 0)
        & (magnitudes[1] > 0) & (magnitudes[1] < LEAST),
        "NaN against a number": (got == NAN) != (want == NAN),
        "Inf against a finite number": (magnitudes[1] == INF) & (magnitudes[0] < INF),
        "one unit in the last place": np.diff(magnitudes, axis=0)[0] == 1,
    }  # fmt: skip
    if model.odd_first:
        for name, changes in OTHERWISE.items():
            found[name] = modelled(replace(model, **changes), cases) == got
    known = np.any([*found.values()], axis=0)
    counts = {name: int(there.sum()) for name, there in found.items()}
    return {name: n for name, n in counts.items() if n} | (
        {"none of these": int((~known).sum())} if not known.all() else {}
    )


def assert_model(
    model: Any, compute: Compute, groups: Iterable[Cases], tolerated: dict[str, str]
) -> int:
    """Hold the model against what computes. Returns how many rows there were."""
    count, tolerable, differ = 0, 0, 0
    found: Counter[str] = Counter()
    shown: list[str] = []
    for cases in groups:
        got, want = canonical(compute(cases)), modelled(model, cases)
        wrong = got != want
        count += len(got)
        if not wrong.any():
            continue
        rows, got, want = cases.take(wrong), got[wrong], want[wrong]
        here = classes(model, rows, got, want)
        if any(here.get(name) == len(got) for name in tolerated):
            tolerable += len(got)
            continue
        differ += len(got)
        found.update(here)
        shown += [
            f"  c = {rows.c[i]:#010x}, a = {[hex(x) for x in rows.a[i].tolist()]},"
            f" b = {[hex(x) for x in rows.b[i].tolist()]}:"
            f" computed {got[i]:#010x}, the model has {want[i]:#010x}"
            for i in range(min(2, len(got), 8 - len(shown)))
        ]
    lines = [f"{model.name}: {differ} of {count} rows differ. Of these classes are:"]
    lines += [f"  {name}: {n}" for name, n in found.most_common()]
    assert not differ, "\n".join([*lines, *shown])
    if tolerable:
        pytest.xfail(f"{tolerable} of {count} rows: {', '.join(tolerated)}")
    return count


def of_models(*models: Any) -> Any:
    return pytest.mark.parametrize("model", models, ids=lambda m: m.instruction)


@of_models(VDPBF16PS, TDPBF16PS, TDPFP16PS)
def test_the_model_is_the_instruction(model, compared):
    compute = instruction(model)
    compared(assert_model(model, compute, all_rows(model, SOME), TOLERATED))


@pytest.mark.exhaustive
@of_models(VDPBF16PS, TDPBF16PS)
def test_the_model_is_the_instruction_in_many_rows(model, compared):
    groups = adversarial(MANY, 5)
    compared(assert_model(model, instruction(model), groups, TOLERATED))


@of_models(VDPBF16PS, TDPBF16PS)
def test_the_model_is_the_pseudocode(model, compared):
    compared(assert_model(model, pseudocode(model), all_rows(model, SOME), {}))


@pytest.mark.exhaustive
@of_models(VDPBF16PS, TDPBF16PS)
def test_the_model_is_the_pseudocode_in_many_rows(model, compared):
    compared(assert_model(model, pseudocode(model), adversarial(MANY // 10, 5), {}))


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_differs_is_named(name):
    """The rows tell what a CPU could do instead, and the message says which it is."""
    other = replace(VDPBF16PS, **OTHERWISE[name])
    groups = list(adversarial(SOME // 4, 6))
    with pytest.raises(AssertionError) as error:
        assert_model(VDPBF16PS, lambda cases: modelled(other, cases), groups, {})
    differ = str(error.value).split(" of ")[0].split()[-1]
    assert f"  {name}: {differ}\n" in str(error.value)


def test_what_is_tolerated_is_no_pass():
    """Results that are flushed by what they are before the rounding."""
    cases = adversarial(SOME // 4, 6)

    def compute(cases: Cases) -> Array:
        bits = modelled(VDPBF16PS, cases)
        exact = modelled(replace(VDPBF16PS, flushes_results=False), cases)
        rounds_up = (bits & ~SIGN == LEAST) & (cases.c & ~SIGN != LEAST)
        return np.where(rounds_up & (exact == bits), bits & SIGN, bits)

    with pytest.raises(pytest.xfail.Exception, match="tininess"):
        assert_model(VDPBF16PS, compute, cases, TOLERATED)
