"""td.blocks.quantize with its defaults and its rules: bytes against plain Python."""

from fractions import Fraction

import numpy as np
import pytest

from tests.blocks.arrays import normal
from tests.reference.blocks import (
    SCALES,
    Layout,
    element,
    pack,
    quantize_block,
    tensor_scale,
)
from tests.support.block_rows import ROWS
from tf32dtype import blocks


def lines_of(x, axis, size):
    """Yield the blocks of an array, as lists of floats padded with zeros."""
    moved = np.moveaxis(x, axis, -1)
    for line in moved.reshape(-1, moved.shape[-1]).tolist():
        for i in range(0, len(line), size):
            yield (line[i : i + size] + [0.0] * size)[:size]


def truth(x, name, axis=-1, rule=None, scale_format=None, size=None):
    """Return scale format, tensor scale and bytes by the definition."""
    hi_name, lo_name, own_scale, own_size, own_rule = ROWS[name]
    hi, lo = element(hi_name), lo_name and element(lo_name)
    size, rule = size or own_size, rule or own_rule
    pieces = list(lines_of(x, axis, size))
    finite = [[v for v in map(abs, piece) if v < np.inf] for piece in pieces]
    most = [max(piece, default=0.0) for piece in finite]
    greatest = max(most, default=0.0)
    scale = scale_format or own_scale
    if scale is None and rule == "mse":
        least = min((a for a in most if a), default=np.inf)
        for scale in ("ue3m5", "ue4m4", "ue5m3"):
            t = Fraction(tensor_scale(scale, greatest, hi.greatest))
            if (
                least == np.inf
                or t == Fraction(2) ** -149
                or Fraction(least) >= hi.greatest * t * 2 ** SCALES[scale]
            ):
                break
        else:
            scale = None
    scale = scale or "float8_e8m0fnu"
    tensor = tensor_scale(scale, greatest, hi.greatest)
    layout = Layout(hi, lo or None, scale, size, tensor, rule)
    poison = name.startswith("mx")
    codes, scales, residuals = b"", b"", b""
    for piece in pieces:
        s, r, upper, lower = quantize_block(layout, piece, poison=poison)
        codes += pack(hi.bits, upper)
        scales += bytes([s] if lo is None else [s, r])
        if lo is not None:
            residuals += pack(lo.bits, lower)
    return scale, tensor, codes + scales + residuals


def check(x, name, axis=-1, **options):
    given = {"rule": "scale", "size": "block_size"}
    keywords = {given.get(k, k): v for k, v in options.items()}
    b = blocks.quantize(x, name, axis, **keywords)
    got = b.scale_format, float(b.tensor_scale), b.tobytes()
    assert got == truth(x, name, axis, **options)


@pytest.mark.parametrize("name", ROWS)
def test_defaults(name):
    assert list(ROWS) == list(blocks.formats)
    check(normal((1, 70)), name)
    check(normal((37, 1), 1), name, 0)
    wide = np.ldexp(
        normal((1, 96), 2), np.random.default_rng(1).integers(-9, 9, (1, 96))
    )
    check(wide, name)
    wide[:, 32:64] *= np.float32(2.0**-20)
    check(wide, name)
    check(wide * np.float32(2.0**100), name)


@pytest.mark.parametrize(
    "name", [name for name, row in ROWS.items() if row[4] == "floor"]
)
def test_edges_of_the_floor_rule(name):
    tiny, greatest = 2.0**-149, float(np.finfo(np.float32).max)
    steps = 2.0 ** np.arange(-149, 128)
    for x in (
        np.float32([0, -0.0, 1, -1, tiny, greatest, -greatest, 6, 7, 448, 464, 0.3]),
        np.float32([tiny, 3 * tiny, -tiny]),
        np.float32([0.0, -0.0]),
        steps.astype(np.float32),
        np.nextafter(steps.astype(np.float32), np.float32(0)),
        np.arange(0, 8, 1 / 16, dtype=np.float32),  # ties
    ):
        check(x, name)
        check(x[:, None], name, 0)


@pytest.mark.parametrize("name", [name for name in ROWS if name.startswith("mx")])
def test_poison(name):
    x = normal((2, 100))
    x[0, 40], x[1, 0], x[1, 99] = np.inf, np.nan, -np.inf
    check(x, name)


RULES = ["amax", "floor", "even", "nf", "mse"]
TCFP = ["tcfp8", "tcfp12", "tcfp16"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*TCFP, "mxfp4", "nvfp4", "int8"])
@pytest.mark.parametrize("rule", RULES)
def test_rules(name, rule):
    check(normal((1, 70)), name, rule=rule)
    check(normal((2, 70)), name, rule=rule, size=64)
    for scale_format in SCALES:
        check(normal((1, 40)), name, rule=rule, scale_format=scale_format)


@pytest.mark.parametrize("name", TCFP)
def test_the_published_rule(name):
    check(normal((2, 70)), name, rule="published")
    check(1 + np.float32(0.02) * normal((2, 70)), name, rule="published", size=64)
