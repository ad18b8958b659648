"""identify: the right model stays, and models with other parameters are excluded."""

from __future__ import annotations

import doctest
import io
import sys
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest

import tf32dtype as td
from tests.tensor_core.arrays import Array, accumulator, blocks, operand
from tests.tensor_core.cases import Cases, by_parameters, parameters, random_cases
from tests.tensor_core.rows import each_row
from tests.tensor_core.test_recordings import each_recording
from tf32dtype._formats.table import find_dtype
from tf32dtype.tensor_core import identification
from tf32dtype.tensor_core.bundles import bundles, whole
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.look_up import find_model
from tf32dtype.tensor_core.models import ALIGNED
from tf32dtype.tensor_core.splits import More, Split, balanced, equal, in_turns
from tf32dtype.tensor_core.ways import Facts, ways

pytestmark = pytest.mark.once

identify = td.tensor_core.identify

LENGTH = 67  # two of the longest instructions, and a rest


def models(*arguments: Any, **keywords: Any) -> list[Any]:
    """Return the models that explain results as one chain."""
    found = identify(*arguments, one_chain=True, **keywords)
    assert all(len(h.parts) == 1 and h.compared == h.explains for h in found)
    return [h.model for h in found if h.c_begins == "sum" and not h.rounded_to]


def found(model: Any, cases: Cases, results: Array) -> list[Any]:
    """Return the models that `identify` finds for rows of the model's formats."""
    return models(
        operand(model.a, cases.a)[:, None, :],
        operand(model.b, cases.b)[:, :, None],
        accumulator(model.accumulator, cases.c)[:, None, None],
        accumulator(model.accumulator, results)[:, None, None],
    )


def candidates(model: Any) -> list[Any]:
    """Return all models of the same formats and accumulators."""
    formats = model.a, model.b, model.accumulator
    return [m for m in ALIGNED if (m.a, m.b, m.accumulator) == formats]


def alike(model: Any) -> list[Any]:
    """Return the models that compute the same; an instruction's depth has no effect."""

    def others(m: Any) -> tuple[Any, ...]:
        return m.depth, m.fraction, m.kept, m.emulated, m.floor

    return [m for m in candidates(model) if others(m) == others(model)]


# -- recordings ----------------------------------------------------------------


@pytest.mark.sampled(5)
@each_recording
def test_recordings(recording, compared):
    """For each sample, `identify` returns exactly the models that give its rows. The
    right models are always among them. Every sample excludes a model that is wrong in
    more than a tenth of all rows."""
    cases, recorded = recording.rows()
    model = recording.models[0]
    wrong = {m: blocks(m, cases) != recorded for m in candidates(model)}
    right = [m for m in wrong if not wrong[m].any()]
    assert all(m in right for m in recording.models)
    assert found(model, cases, recorded) == right
    rng = np.random.default_rng([7, len(str(recording))])
    for _ in range(5):
        some = rng.choice(len(recorded), 64, replace=False)
        named = found(model, cases.take(some), recorded[some])
        assert named == [m for m in wrong if not wrong[m][some].any()]
        assert all(m in named for m in right)
        assert not any(wrong[m].mean() > 0.1 for m in named)
        compared(len(some))


@each_recording
def test_a_bit_of_a_recording(recording):
    """After one bit of one row changes, no model explains the results."""
    cases, recorded = recording.rows()
    some = np.arange(470, 530)
    other = recorded[some]
    other[30] ^= 1 << (13 if recording.accumulator == "float16" else 0)
    assert found(recording.models[0], cases.take(some), other) == []


# -- what models compute -------------------------------------------------------


@pytest.mark.sampled(2)
@each_row("models", by_parameters(ALIGNED), lambda m: m.name)
def test_those_of_other_parameters_are_excluded(models, compared):
    cases = random_cases(models[0], 100, LENGTH, 21)
    results = blocks(models[0], cases)
    names = found(models[0], cases, results)
    for model in models:  # which share their cases
        assert names == alike(model)
        compared(len(results))


def test_alike_is_little():
    """The models in `alike` have equal parameters of blocks."""
    for model in ALIGNED:
        for other in alike(model):
            same = parameters(model), parameters(other)
            differ = [x for x in zip(*same, strict=True) if x[0] != x[1]]
            assert differ in ([], [(model.instruction_depth, other.instruction_depth)])


def test_matrices():
    rng = np.random.default_rng(22)
    a = rng.standard_normal((3, 20, 70)).astype(td.bfloat16)
    b = rng.standard_normal((70, 30)).astype(td.bfloat16)
    c = rng.standard_normal(30).astype(np.float32)
    d = td.tensor_core.matmul(a, b, c, device="A100")
    assert [h.model.device for h in identify(a, b, c, d)] == ["A100", "L40S"]
    assert models(a, b, None, d) == []
    assert models(a, b, c, d.astype(">f4")) == models(a, b, c, d)
    assert models(a, b, c, d.tolist()) == models(a, b, c, d)
    assert models(a[0, 0], b[:, 0], c[0], d[0, 0, 0])
    assert models(a[0, 0], b[:, 0], c[0], float(d[0, 0, 0]))
    # float32 operands are read as tf32.
    wide = rng.standard_normal((20, 70)).astype(np.float32)
    d = td.tensor_core.matmul(wide, b.astype(np.float32), device="H100")
    names = [m.name for m in models(wide, b.astype(np.float32), None, d)]
    assert names[0] == "H100 wgmma tf32 -> float32"
    assert names == [
        m.name for m in models(wide.view(td.tf32), b.astype(td.tf32), 0, d)
    ]


def test_nan_and_zero():
    """Any NaN equals any NaN, and a zero has its sign."""
    x = np.array([np.inf, 1], np.float16)
    y = np.array([0, 1], np.float16)
    everything = [m for m in MODELS if m.name.endswith(" float16 -> float32")]
    assert models(x, y, None, np.float32(np.nan)) == everything
    assert models(x, y, None, np.float32(np.inf)) == []
    other = np.uint32(0xFFA00000).view(np.float32)
    assert models(x, y, None, other) == everything
    assert models(y, y, -1, np.float32(0)) == everything
    assert models(y, y, -1, np.float32(-0.0)) == []
    assert models(x, y, None, np.float16(np.nan))[0].accumulator == "float16"


def test_errors():
    x = np.ones((2, 2), np.float16)
    with pytest.raises(ValueError, match="into float64; got float16 x float16"):
        identify(x, x, None, np.ones((2, 2)))
    with pytest.raises(TypeError, match=r"d must be .*; got int64"):
        identify(x, x, None, np.int64(1))
    with pytest.raises(TypeError, match=r"d must .*; got float8_e8m0fnu"):
        identify(x, x, None, x.astype(td.float8_e8m0fnu))
    with pytest.raises(ValueError, match=r"represents exactly; got \[0\.1, 1\.0\]"):
        identify(x, x[0], None, [0.1, 1.0])
    with pytest.raises(TypeError, match=r"b must .*; got int64"):
        identify(x, x.astype(np.int64), None, x)
    with pytest.raises(TypeError, match=r"c must .* float32; got float16"):
        identify(x, x, np.float16(1), x.astype(np.float32))
    with pytest.raises(ValueError, match=r"d must .* \(2, 2\); got \(2,\)"):
        identify(x, x, None, x[0])
    with pytest.raises(ValueError, match="must have the same k"):
        identify(x, x[:1], None, x)
    with pytest.raises(ValueError, match="c must broadcast"):
        identify(x, x, np.ones(3, np.float32), x.astype(np.float32))
    with pytest.raises(ValueError, match="got bfloat16 x float16"):
        identify(x.astype(td.bfloat16), x, None, x)


# -- how a library added -------------------------------------------------------


def drawn_split(rng: Any, k: int, depth: int) -> Split:
    """Draw one of the kinds of splits that the documentation names."""
    unit = max(16, depth)
    parts = int(rng.integers(2, min(64, k // unit) + 1))
    tile = unit * int(rng.integers(1, 256 // unit + 1))
    match rng.integers(6):
        case 0:
            return equal(k, -(-k // parts))
        case 1:
            return equal(k, min(-(-k // (parts * tile)) * tile, k))
        case 2:
            more = get_args(More)[int(rng.integers(3))]
            return balanced(k, max(1, min(parts, k // tile)), tile, more)
        case 3:
            turn = unit << int(rng.integers((256 // unit).bit_length()))
            return in_turns(k, parts, turn) if parts * turn < k else Split((k,))
        case 4:
            promoted = depth * int(rng.integers(1, min(512, k) // depth + 1))
            return equal(k, promoted)
        case _:
            length = unit * int(rng.integers(max(2, k // 64 // unit + 1), k // unit))
            first = unit * int(rng.integers(1, length // unit))
            ends = [*range(first, k, length), k]
            return Split((first, *np.diff(ends).tolist()))


def added(model: Any, split: Split, h: dict[str, Any], a: Array, b: Array, c: Any):
    """Return the results of rows as a hypothesis adds them, computed step by step."""

    def part(k: Any, c: Any) -> Array:
        x, y = a[:, None, k], b[:, k, None]
        keywords = {"device": model.device, "instruction": model.instruction}
        kind = np.dtype(model.accumulator)
        start = np.zeros((len(a), 1, 1), kind) if c is None else c[:, None, None]
        return td.tensor_core.matmul(x, y, start, accumulator=kind, **keywords)[:, 0, 0]

    ks = split.indices()
    if h["chained"]:
        total = c if h["c_begins"] == "sum" else None
        for k in ks if h["order"] == "ascending" else ks[::-1]:
            total = part(k, total)
        total = total.astype(np.float32)
    else:
        of_first = c if h["c_begins"] == "first part" or len(ks) == 1 else None
        if len(ks) == 1 and h["c_begins"] == "end":
            of_first = None
        sums = [part(ks[0], of_first), *(part(k, None) for k in ks[1:])]
        sums = [x.astype(np.float32) for x in sums]
        if h["order"] == "pairwise":
            while len(sums) > 1:
                sums = [
                    sums[i] + sums[i + 1] if i + 1 < len(sums) else sums[i]
                    for i in range(0, len(sums), 2)
                ]
            total = sums[0]
        elif len(ks) == 1:
            total = sums[0]
        else:
            begins = c is not None and h["c_begins"] == "sum"
            total = c.astype(np.float32) if begins else np.zeros(len(a), np.float32)
            for x in sums if h["order"] == "ascending" else sums[::-1]:
                total = total + x
    if c is not None and h["c_begins"] == "end":
        total = total + c.astype(np.float32)
    return total


CHOSEN = [
    ("A100", None, "float16", "float32", "float32"),
    ("V100", None, "float16", "float32", "bfloat16"),
    ("H100", None, "float8_e4m3fn", "float32", "float32"),
    ("H100", "mma.sync", "float8_e4m3fn", "float32", "bfloat16"),
    ("H100", None, "tf32", "float32", "float32"),
    ("B200", None, "bfloat16", "float32", "float8_e4m3fn"),
    ("A100", None, "float16", "float16", "float16"),
    ("T4", None, "float16", "float32", "float16"),
    ("MI300X", None, "float16", "float32", "float32"),
    ("AVX512_BF16", None, "bfloat16", "float32", "float32"),
]
#: Rounded results, of operands that few models multiply.
QUICK = [
    ("B200", None, "float8_e4m3fn", "float32", "float8_e4m3fn"),
    ("L40S", None, "float8_e5m2", "float32", "float16"),
]
LONG = [(chosen, k, 64) for k in (272, 1000) for chosen in CHOSEN]
#: For operands that many models multiply, rounded results have the most hypotheses.
SHORT = [
    (chosen, 56, 16)
    for chosen in (*CHOSEN, *QUICK)
    if chosen[0] not in ("B200", "T4", "V100") or chosen in QUICK
]


def as_case(case: tuple[tuple[str | None, ...], int, int], *marks: Any) -> Any:
    chosen, k, _ = case
    return pytest.param(*case, id="-".join(map(str, (k, *chosen))), marks=marks)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("chosen", "k", "rows"),
    [*map(as_case, SHORT), *(as_case(case, pytest.mark.exhaustive) for case in LONG)],
)
def test_the_true_one_is_never_excluded(chosen, k, rows, compared):
    """The hypothesis that made the results is among those that explain them."""
    device, instruction, form, accumulated, results = chosen
    model = find_model(device, instruction, form, form, accumulated)
    k = max(k, 3 * model.instruction_depth + 8)  # a shorter k has fewer kinds of splits
    rng = np.random.default_rng([k, (*CHOSEN, *QUICK).index(chosen)])
    dtype = td.tf32 if form == "tf32" else find_dtype(form)
    a, b = rng.standard_normal((2, rows, k)).astype(dtype)
    for with_c in (False, True):
        c = rng.standard_normal(rows).astype(accumulated) if with_c else None
        split = drawn_split(rng, k, model.instruction_depth)
        parts = len(split.lengths)
        bundle = next(
            x
            for x in (whole(k), *bundles(k, model.instruction_depth))
            if x.parts == parts and split in [x.split(i) for i in range(len(x))]
        )
        way = ways(parts, bundle.chains, Facts(with_c))
        way = way[int(rng.integers(len(way)))]
        facts = {"order": way.order, "c_begins": way.begins, "chained": way.chained}
        total = added(model, split, facts, a, b, c)
        saturates = results.startswith("float8") and bool(rng.integers(2))
        if saturates:
            total = np.clip(total, -448, 448)
        with np.errstate(all="ignore"):
            d = total.astype(find_dtype(results))
        abc = a[:, None, :], b[:, :, None], None if c is None else c[:, None, None]
        found = identify(*abc, d[:, None, None])
        (true,) = [
            h
            for h in found
            if h.model == model
            and (h.parts, h.turn, h.rest) == split
            and (h.order, h.c_begins, h.chained) == way[:3]
            and h.epilogue.words in ("sum", "sum + c")
            and h.partials is None is h.running
        ]
        assert true.explains == true.compared == rows
        assert true.rounded_to == (None if results == accumulated else results)
        if not saturates or (np.abs(total) < 440).all():
            assert not true.saturates
        np.testing.assert_array_equal(
            true.matmul(*abc).ravel().astype(np.float32), d.astype(np.float32)
        )
        if true.promote_every:
            promoted = td.tensor_core.matmul(
                *abc, device=model.device, instruction=model.instruction,
                accumulator=model.accumulator, promote_every=true.promote_every,
            )  # fmt: skip
            np.testing.assert_array_equal(promoted, d[:, None, None])
        compared(len(found))


@pytest.mark.parametrize("cuts", [(32, 80, 112), (32, 64, 112), (64, 128)])
def test_tiles_that_do_not_divide(cuts):
    """Only later components have one tile more. They take turns of one tile."""
    rng = np.random.default_rng(23)
    k = 160
    a, b = rng.standard_normal((2, 32, k)).astype(td.tf32)  # which few models multiply
    ends = [0, *cuts, k]
    rows = a[:, None, :], b[:, :, None]
    total = np.zeros((32, 1, 1), np.float32)
    for first, last in pairwise(ends):
        x, y = rows[0][..., first:last], rows[1][:, first:last]
        total = total + td.tensor_core.matmul(x, y, device="A100")
    found = identify(*rows, None, total)
    assert tuple(np.diff(ends).tolist()) in {h.parts for h in found}


@pytest.mark.parametrize("accumulator", ["float16", "float64"])
def test_only_float32_is_promoted(accumulator):
    rng = np.random.default_rng(24)
    dtype = np.dtype(accumulator)
    a, b = rng.standard_normal((2, 64, 128)).astype(dtype)
    rows = a[:, None, :], b[:, :, None]
    keywords = {"device": "H100", "accumulator": accumulator}
    parts = [
        td.tensor_core.matmul(rows[0][..., k], rows[1][:, k], **keywords)
        for k in (slice(0, 64), slice(64, 128))
    ]
    found = identify(*rows, None, (parts[0] + parts[1].astype(np.float32)).astype(dtype)
                     if accumulator == "float16" else parts[0] + parts[1])  # fmt: skip
    assert (64, 64) in {h.parts for h in found}
    assert {h.promote_every for h in found if h.model.accumulator == accumulator} == {
        None
    }


def test_what_identify_cannot_read():
    x = np.ones((2, 3), np.float16)
    d = np.ma.masked_array(np.ones((2, 2), np.float32), [[0, 1], [0, 0]])
    with pytest.raises(TypeError, match="d must not be a masked array"):
        identify(x, x.T, None, d)
    with pytest.raises(ValueError, match=r"d must be an array; got \[\[1"):
        identify(x, x.T, None, [[1, 2], [3]])
    with pytest.raises(TypeError, match=r"dtype=np\.int32"):
        identify(x.astype(np.int8), x.T.astype(np.int8), None, np.ones((2, 2), int))
    y = x.T.astype(td.float8_e4m3b11fnuz)
    with pytest.raises(ValueError, match=r"The formats are .*tf32"):
        identify(x.astype(y.dtype), y, None, np.ones((2, 2), np.float32))


def test_infinities_among_parts():
    """Inf and NaN in d and in partial sums exclude no model, and cause no warning."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 64, 96)).astype(np.float16)
    a[::3, 5], a[::4, 70] = np.inf, -np.inf
    a[7, 9], a[8, 8], b[8, 8] = np.nan, np.inf, 0
    c = np.zeros(64, np.float32)
    c[::5] = np.inf
    half = slice(0, 48), slice(48, 96)
    sums = [
        td.tensor_core.matmul(a[:, None, k], b[:, k, None], device="V100")[:, 0, 0]
        for k in half
    ]
    with np.errstate(all="ignore"):
        d = c + sums[0] + sums[1]
    d.view(np.uint32)[np.isnan(d)] = 0xFFC12345
    rows = a[:, None], b[:, :, None], c[:, None, None], d[:, None, None]
    found = identify(*rows)
    assert any(
        h.parts == (48, 48) and h.model.device == "V100" and h.promote_every == 48
        for h in found
    )


def test_the_table():
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((2, 48, 48)).astype(np.float16)
    d = td.tensor_core.matmul(x, y, device="H100")
    found = identify(x, y, None, d)
    text = str(found)
    assert text == repr(found)
    first, *lines = text.splitlines()
    assert first == (
        f"5 of {found.tried:,} hypotheses explain all, and these results do not"
        " distinguish them"
    )
    assert lines[0] == "  2,304 of 2,304  one chain"
    assert lines[1].startswith("    H100 wgmma, H100 mma.sync, B200 tcgen05, B200 mma")
    assert lines[2] == "closest other hypotheses"
    counts = [h.explains for h in found.nearest]
    assert counts == sorted(counts, reverse=True)
    assert 0 < counts[0] < 2304
    assert found[-1] == found[4] == found[3:][1]
    assert found[0].how == "one chain"
    with pytest.raises(IndexError):
        found[5]
    d[0, 0] += 1
    nothing = identify(x, y, None, d)
    assert not nothing
    assert nothing.nearest[0].explains == 2303


def test_nothing_at_all():
    """There is no k, or there are no elements."""
    x = np.ones((3, 0), np.float16)
    assert len(identify(x, x.T, None, np.zeros((3, 3), np.float32)))
    assert not identify(x, x.T, None, np.ones((3, 3), np.float32))
    none = np.zeros((0, 64), np.float16)
    assert len(identify(none, none.T, None, np.zeros((0, 0), np.float32)))


def test_example():
    results = doctest.testmod(identification)
    assert results.attempted > 0
    assert results.failed == 0


def test_results_that_tell_nothing():
    """With sums of one sign, rounded to 8 bits, the search ends, and says what it
    needs."""
    a, b = np.random.default_rng(8).standard_normal((2, 16, 512)).astype(td.bfloat16)
    sums = td.tensor_core.matmul(a, b.T, device="H100")
    found = identify(a, b.T, None, sums.astype(td.float8_e4m3fn))
    assert found.tells_nothing
    assert len(found) >= 100
    assert {h.model.device for h in found} >= {"A100", "H100", "B200"}
    assert "the search stopped" in str(found)
    assert "Give the float32 results" in str(found)
    told = identify(a, b.T, None, sums)
    assert not told.tells_nothing
    assert "the search stopped" not in str(told)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("after", "drawn"), [(0.0, True), (1e9, False)])
def test_a_bar_is_drawn_after_a_while(after, drawn, monkeypatch):
    pytest.importorskip("rich")
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(identification, "_PATIENCE", after)
    monkeypatch.setenv("TERM", "xterm")
    x = np.eye(4, dtype=np.float16)
    identify(x, x, None, np.eye(4, dtype=np.float32))
    assert ("identifying" in terminal.getvalue()) == drawn


def test_one_unit():
    """Only models of the unit and of the instruction are tried."""
    rng = np.random.default_rng(30)
    x, y = rng.standard_normal((2, 16, 64)).astype(np.float16)
    d = td.tensor_core.matmul(x, y.T, device="H100")
    every = identify(x, y.T, None, d)
    assert {h.model.device for h in every} == {"H100", "B200", "RTX Blackwell"}
    found = identify(x, y.T, None, d, unit="H200")
    assert {h.model.name for h in found} == {
        "H100 wgmma float16 -> float32",
        "H100 mma.sync float16 -> float32",
    }
    assert found.tried < every.tried
    found = identify(x, y.T, None, d, unit="Hopper", instruction="wgmma")
    assert {h.model.instruction for h in found} == {"wgmma"}
    found = identify(x, y.T, None, d, instruction="tcgen05")
    assert {h.model.device for h in found} == {"B200"}
    assert not identify(x, y.T, None, d, unit="A100")
    with pytest.raises(ValueError, match="device must be one of"):
        identify(x, y.T, None, d, unit="Z80")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="instruction of A100 must be"):
        identify(x, y.T, None, d, unit="A100", instruction="wgmma")
    with pytest.raises(ValueError, match="instruction must be one of"):
        identify(x, y.T, None, d, instruction="fma")  # type: ignore[arg-type]
