"""Call the C functions of blocks, and draw numbers for the calls."""

import numpy as np

import tf32dtype as td
from tests.reference.blocks import RULES, Layout, element, tensor_scale
from tests.reference.codec import ROUNDINGS
from tests.support.block_rows import ROWS as FORMATS

core = td._core
ELEMENTS = [name for name, _ in core.block_elements]
SCALE_NAMES = [name for name, _ in core.block_scales]
#: Element and residual, by the first format that has this pair.
PAIRS = {row[:2]: name for name, row in reversed(FORMATS.items())}
ROWS = {name: pair for pair, name in reversed(PAIRS.items())}
MAXIMUM = np.finfo(np.float32).max


def layout_of(row: str, scale: str, rule: str, block: int, x: np.ndarray) -> Layout:
    hi, lo = (name and element(name) for name in ROWS[row])
    assert hi is not None
    finite = x[np.isfinite(x)]
    greatest = float(np.abs(finite).max(initial=0))
    tensor = tensor_scale(scale, greatest, hi.greatest)
    return Layout(hi, lo or None, scale, block, tensor, rule)


def indices(layout: Layout) -> tuple[int, int, int, int]:
    lo = -1 if layout.lo is None else ELEMENTS.index(layout.lo.name)
    hi = ELEMENTS.index(layout.hi.name)
    return hi, lo, SCALE_NAMES.index(layout.scale), layout.block


def plan_of(layout, rounding, poison):
    """Return the arguments that the core's functions of quantization share."""
    rule, number = RULES.index(layout.rule), ROUNDINGS.index(rounding)
    return indices(layout), rule, layout.tensor, number, poison


def quantize(layout, x, rounding="ties_to_even", poison=False, draws=None):
    return core.block_quantize(x, *plan_of(layout, rounding, poison), draws)


def dequantize(layout, parts, shape, dtype=np.float32, odd=False):
    out = np.empty(shape, dtype)
    core.block_dequantize(*parts, indices(layout), layout.tensor, shape[1], out, odd)
    return out


def samples(kind: str, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *kind.encode()])
    x = rng.standard_normal(shape)
    if kind == "heavy":
        x = rng.standard_t(1.1, shape) * 10.0 ** rng.integers(-3, 3, shape)
    elif kind == "scattered":
        x *= 2.0 ** rng.integers(-140, 127, shape)
    elif kind == "lines":  # each line has its own magnitude
        x *= 2.0 ** rng.integers(-140, 125, (shape[0], 1))
    elif kind == "constant":
        x = 1 + 0.02 * x
        x[::2] = rng.standard_normal((len(x[::2]), 1))
    elif kind == "subnormal":
        x = rng.integers(-(2**23), 2**23, shape) * 2.0**-149
    elif kind == "least":
        x = rng.integers(-3, 4, shape) * 2.0**-149
    elif kind == "greatest":
        x = MAXIMUM * rng.choice([1, -1, 0.5, 1 - 2**-24, 1e-3, 0], shape)
    elif kind == "ties":  # on and next to the midpoints of narrow grids
        x = rng.integers(-960, 961, shape) / 2.0 ** rng.integers(0, 8, shape)
        x = np.nextafter(x.astype(np.float32), rng.choice([-9e9, 0, 9e9], shape))
        x[rng.random(shape) < 0.5] = 120.0
        x = np.where(rng.random(shape) < 0.5, np.rint(x), x)
    elif kind == "zeros":
        x = x * (rng.random(shape) < 0.1)
        x[0] = rng.choice([0.0, -0.0], shape[1])
    return x.astype(np.float32)
