"""Blocks with a common scale: codes and numbers of the C code against plain Python."""

from itertools import product

import numpy as np
import pytest

from tests.blocks import digests
from tests.blocks.core_calls import (
    MAXIMUM,
    ROWS,
    core,
    dequantize,
    layout_of,
    plan_of,
    quantize,
    samples,
)
from tests.reference.blocks import (
    RULES,
    SCALES,
    Layout,
    element,
    number_of,
    pack,
    quantize_block,
    single,
)
from tests.reference.codec import ROUNDINGS


def blocks_of(layout, x):
    """Yield each block of each line, padded with zeros."""
    for line in x:
        for i in range(0, len(line), layout.block):
            block = line[i : i + layout.block].tolist()
            yield block + [0.0 * n for n in [0] * (layout.block - len(block))]


def rounded(value, odd: bool) -> float:
    """Round a number to float32, if `odd` to odd; a finite number stays finite."""
    if isinstance(value, float):
        return value
    near = min(max(single(value), -float(MAXIMUM)), float(MAXIMUM))
    if not odd or near == value:
        return near
    toward = np.inf if value > near else -np.inf
    if np.float32(near).view(np.uint32) & 1 or abs(value) > MAXIMUM:
        return near
    return float(np.nextafter(np.float32(near), np.float32(toward)))


def check(layout, x, rounding="ties_to_even", poison=False, draws=None) -> int:
    """Compare codes and their values with plain Python; return the number of values."""
    found = quantize(layout, x, rounding, poison, draws)
    codes, scales, residuals, numbers, odd_numbers = b"", [], b"", [], []
    padded = None
    if draws is not None:
        padded = [[int(d) for d in block] for block in blocks_of(layout, draws)]
    for i, block in enumerate(blocks_of(layout, x)):
        s, r, hi, lo = quantize_block(
            layout, block, rounding, poison, padded and padded[i]
        )
        codes += pack(layout.hi.bits, hi)
        scales += [s] if layout.lo is None else [s, r]
        if layout.lo is not None:
            residuals += pack(layout.lo.bits, lo)
        exact = [number_of(layout, s, r, h, low) for h, low in zip(hi, lo, strict=True)]
        start = i % -(-x.shape[1] // layout.block) * layout.block
        left = x.shape[1] - start
        numbers += [rounded(value, False) for value in exact[:left]]
        odd_numbers += [rounded(value, True) for value in exact[:left]]
    what = f"{layout} {rounding}"
    assert found[1].tolist() == scales, f"scales of {what}"
    assert found[0].tobytes() == codes, f"codes of {what}"
    assert (b"" if found[2] is None else found[2].tobytes()) == residuals, what
    for odd, wanted in ((False, numbers), (True, odd_numbers)):
        out = dequantize(layout, found, x.shape, odd=odd)
        np.testing.assert_array_equal(
            out, np.array(wanted, np.float32).reshape(x.shape), what
        )
    out = np.full_like(x, 7)
    core.block_round(x, *plan_of(layout, rounding, poison), draws, out)
    once = dequantize(layout, found, x.shape)
    np.testing.assert_array_equal(out.view(np.uint32), once.view(np.uint32), what)
    wide = dequantize(layout, found, x.shape, np.float64)
    clipped = np.clip(wide, -MAXIMUM, MAXIMUM).astype(np.float32)
    np.testing.assert_array_equal(once, clipped, what)
    return x.size


KINDS = (
    "normal",
    "heavy",
    "scattered",
    "lines",
    "constant",
    "subnormal",
    "least",
    "greatest",
    "ties",
    "zeros",
)


def choices():
    """Return every row with every rule and scale that goes with it."""
    return [
        pytest.param(row, rule, scale, id=f"{row}-{rule}-{scale}")
        for row, rule, scale in product(ROWS, RULES, SCALES)
        if rule != "published" or (row.startswith("tcfp") and scale == "float8_e8m0fnu")
    ]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("row", "rule", "scale"), choices())
def test_every_choice(row, rule, scale, compared):
    """Use some kinds of numbers per choice; the exhaustive tier has all kinds."""
    searches = rule == "mse"
    turn = len(row) + RULES.index(rule) + list(SCALES).index(scale)
    two = ROWS[row][1] is not None
    kinds = KINDS[turn % 3 :: 6] if searches and two else KINDS[turn % 4 :: 4]
    for kind in kinds:
        x = samples(kind, (1, 24 if searches and two else 40))
        compared(check(layout_of(row, scale, rule, 32, x), x))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("row", "rule", "scale"), choices())
def test_every_choice_at_length(row, rule, scale, compared):
    for kind in KINDS:
        x = samples(kind, (1, 72), 1)
        compared(check(layout_of(row, scale, rule, 32, x), x))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", [16, 64, 128])
@pytest.mark.parametrize("row", ROWS)
def test_other_blocks(row, block, compared):
    x = samples("heavy", (1, block + 8))
    for rule, scale in (("amax", "ue4m3"), ("mse", "float8_e8m0fnu")):
        compared(check(layout_of(row, scale, rule, block, x), x))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("row", ROWS)
def test_roundings(row, rounding, compared):
    for kind, scale in product(("ties", "scattered"), ("float8_e8m0fnu", "ue4m3")):
        x = samples(kind, (1, 40))
        draws = np.random.default_rng(7).integers(0, 2**64, x.shape, np.uint64)
        draws[0, ::2] >>= np.uint64(44)
        given = draws if rounding == "stochastic" else None
        for rule in ("amax", "floor"):
            layout = layout_of(row, scale, rule, 32, x)
            compared(check(layout, x, rounding, False, given))


@pytest.mark.parametrize("rounding", ["toward_zero", "stochastic"])
@pytest.mark.parametrize("row", ["tcfp8", "tcfp12", "tcfp16", "int8"])
def test_roundings_after_a_search(row, rounding, compared):
    x = samples("normal", (1, 64))
    draws = np.random.default_rng(8).integers(0, 2**64, x.shape, np.uint64)
    given = draws if rounding == "stochastic" else None
    layout = layout_of(row, "float8_e8m0fnu", "mse", 32, x)
    compared(check(layout, x, rounding, False, given))


def test_toward_zero():
    """Compare each rounded number with the number itself: toward zero.

    A residual may have another sign than its number, and a residual of few bits may
    lead past zero (tcfp12).
    """
    for row, kind in product(ROWS, ("heavy", "normal")):
        x = samples(kind, (4, 96))
        layout = layout_of(row, "ue4m4", "amax", 32, x)
        parts = quantize(layout, x, "toward_zero")
        out = dequantize(layout, parts, x.shape, np.float64)
        assert (np.sign(x) * out <= np.abs(x)).all(), row
        if row != "tcfp12":
            assert (np.abs(out) <= np.abs(x)).all(), row


@pytest.mark.parametrize("rule", ["amax", "mse"])
@pytest.mark.parametrize("row", ["tcfp12", "tcfp16"])
def test_directions_of_what_is_far_below(row, rule, compared):
    """Round numbers below the bits of the normalized block in the right direction."""
    x = np.zeros((1, 32), np.float32)
    x[0, :6] = [1.3 * 2.0**127, 2.0**-149, -(2.0**-149), 1e-20, -1e-20, 2.0**100]
    layout = layout_of(row, "float8_e8m0fnu", rule, 32, x)
    for rounding in ROUNDINGS:
        draws = np.full(x.shape, 1 << 40, np.uint64)
        given = draws if rounding == "stochastic" else None
        compared(check(layout, x, rounding, False, given))
    for rounding, sign in (("toward_positive", 1), ("toward_negative", -1)):
        parts = quantize(layout, x, rounding)
        out = dequantize(layout, parts, x.shape, np.float64)
        assert (sign * out >= sign * x).all()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rule", ["amax", "floor", "nf", "mse"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("poison", [True, False])
def test_not_finite(row, poison, rule, compared):
    x = samples("heavy", (6, 73))
    x[0, 3], x[0, 40], x[1, 70] = np.inf, -np.inf, np.inf
    x[3, :32] = -np.inf
    x[4, :32] = 0
    x[4, 5] = np.inf
    if not ROWS[row][0].startswith(("float6", "float4", "int", "mxint")):
        x[2, 9], x[5, 60] = np.nan, -np.nan
        x[5, 64:] = np.nan
    layout = layout_of(row, "float8_e8m0fnu", rule, 32, x)
    compared(check(layout, x, poison=poison))
    if not poison:
        layout = layout_of(row, "ue4m4", rule, 32, x)
        compared(check(layout, x))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("row", ROWS)
def test_codes_have_their_numbers(row, compared):
    """Decode also codes never written: Inf, NaN, the smallest integer."""
    check_codes(row, 67 if row == "int16" else 1, compared)


@pytest.mark.exhaustive
def test_more_codes_have_their_numbers(compared):
    check_codes("int16", 5, compared)


def check_codes(row, step, compared):
    """Check every `step`-th code. An odd step includes the smallest integer."""
    hi, lo = (name and element(name) for name in ROWS[row])
    rng = np.random.default_rng(3)
    for scale in SCALES:
        layout = Layout(
            hi,
            lo,
            scale,
            128,
            float(np.float32(0.37)) if scale == "ue4m3" else 0.5,
            "amax",
        )
        tops = layout.top + 1
        count = max(8, 2 * (1 << hi.bits) // 128 // step)
        s = rng.integers(0, tops, count).tolist()
        r = rng.integers(0, tops, count).tolist()
        codes = (np.arange(count * 128) * step + (1 << hi.bits - 1)) % (1 << hi.bits)
        lows = np.zeros(count * 128, int)
        if lo is not None:
            lows = rng.integers(0, 0x7F if lo.bits == 8 else 16, count * 128)
        parts = [np.frombuffer(pack(hi.bits, codes.tolist()), np.uint8), None, None]
        parts[1] = np.array(s, np.uint8)
        if lo is not None:
            parts[1] = np.array([s, r], np.uint8).T.copy().reshape(-1)
            parts[2] = np.frombuffer(pack(lo.bits, lows.tolist()), np.uint8)
        wanted = [
            number_of(layout, s[i // 128], r[i // 128], int(codes[i]), int(lows[i]))
            for i in range(count * 128)
        ]
        for odd in (False, True):
            out = dequantize(layout, parts, (1, count * 128), odd=odd)
            numbers = np.array([rounded(v, odd) for v in wanted], np.float32)
            np.testing.assert_array_equal(out[0], numbers, f"{layout} {odd}")
        compared(len(wanted))


def test_scales_of_nan():
    for row in ROWS:
        x = samples("normal", (1, 32))
        layout = layout_of(row, "float8_e8m0fnu", "amax", 32, x)
        parts = quantize(layout, x)
        parts[1][0] = 0xFF
        assert np.isnan(dequantize(layout, parts, x.shape)).all()
        assert np.isnan(dequantize(layout, parts, x.shape, np.float64)).all()


def test_bounds():
    x = np.zeros((3, 70), np.float32)
    assert core.block_bounds(x, 32) == (0, np.inf, -1)
    x[0, 3], x[1, 69], x[2, 40], x[2, 41] = -4, 2.0**-149, 3, 5
    assert core.block_bounds(x, 32) == (5, 2.0**-149, -1)
    assert core.block_bounds(x, 128) == (5, 2.0**-149, -1)
    x[1, 69] = 0
    assert core.block_bounds(x, 16) == (5, 4, -1)
    x[2, 43], x[2, 69] = np.nan, np.inf
    assert core.block_bounds(x, 32) == (5, 4, 2 * 70 + 43)


def test_no_lines():
    x = np.zeros((0, 64), np.float32)
    layout = layout_of("tcfp12", "ue5m3", "mse", 32, x)
    for shape in ((0, 64), (3, 0), (0, 0), (0, 5)):
        parts = quantize(layout, np.zeros(shape, np.float32))
        assert [len(part) for part in parts] == [0, 0, 0]
        assert dequantize(layout, parts, shape).shape == shape


def test_unaligned_lines(compared):
    """Quantize lines that do not begin at the alignment of vectors."""
    wide = samples("heavy", (5, 303)).reshape(-1)
    for offset in (1, 3):
        x = wide[offset : offset + 5 * 301].reshape(5, 301)
        layout = layout_of("tcfp8", "float8_e8m0fnu", "amax", 32, x)
        compared(check(layout, x))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"layout": (99, -1, 0, 32)}, "must be those of a block"),
        ({"layout": (0, 5, 0, 32)}, "must be those of a block"),
        ({"layout": (0, -1, 0, 33)}, "must be those of a block"),
        ({"rule": 6}, "must be those of a block"),
        ({"rounding": 7}, "must be those of a block"),
        ({"tensor_scale": 0.0}, "must be those of a block"),
        ({"layout": (0, -1, 1, 32), "poison": True}, "which ue4m3 does not have"),
        ({"draws": np.zeros((1, 31), np.uint64)}, "draws must be uint64"),
    ],
)
def test_what_does_not_fit_raises(change, error):
    given = {
        "layout": (0, -1, 0, 32),
        "rule": 0,
        "tensor_scale": 1.0,
        "rounding": 0,
        "poison": False,
        "draws": None,
    }
    x = np.zeros((1, 32), np.float32)
    with pytest.raises(ValueError, match=error):
        core.block_quantize(x, **(given | change))


# -- instruction sets and threads ------------------------------------------------------


@pytest.mark.parametrize("isa", [i for i in core.available_isas() if i != core.isa()])
def test_instruction_sets_agree(isa, compared):
    used, found, _ = digests.of_another(isa)
    assert used == isa
    mine = digests.of_codes()
    assert found.keys() == mine.keys()
    assert [key for key in mine if found[key] != mine[key]] == []
    compared(len(mine) * 3 * 331)


def test_threads_change_nothing(compared):
    """Quantize one large array in threads as its lines one by one."""
    x = samples("heavy", (700, 1500))
    for row, rule in (("tcfp8", "amax"), ("tcfp12", "floor")):
        layout = layout_of(row, "float8_e8m0fnu", rule, 32, x)
        parts = quantize(layout, x)
        apart = [quantize(layout, line[None]) for line in x]
        for i, part in enumerate(parts):
            if part is not None:
                np.testing.assert_array_equal(
                    part, np.concatenate([a[i] for a in apart])
                )
        out = dequantize(layout, parts, x.shape)
        one = [dequantize(layout, part, (1, 1500)) for part in apart]
        np.testing.assert_array_equal(out, np.concatenate(one))
    compared(x.size * 2)
