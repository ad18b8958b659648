"""The picture of README.md and the site: numbers of formats, and what products keep.

All of it is computed here, by functions whose bits are the same on every machine.
`python benchmarks/readme.py` writes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from svg import GROUPS as GROUP_COLORS
from svg import box, page, text

import tf32dtype as td

#: Formats whose numbers are drawn, and what they are called there.
LINES = {
    "float4_e2m1fn": "FP4 E2M1",
    "float6_e3m2fn": "FP6 E3M2",
    "float6_e2m3fn": "FP6 E2M3",
    "float8_e5m2": "FP8 E5M2",
    "float8_e4m3fn": "FP8 E4M3",
    "float8_e3m4": "FP8 E3M4",
}
#: Groups of bars: dtypes, block formats, precisions of a float32 product.
GROUPS = ("dtypes", "block formats", "float32 products")
DTYPES = ("fp4", "fp8_e4m3", "bfloat16", "tf32")
BLOCKS = ("mxfp4", "nvfp4", "mxfp8_e4m3", "tcfp12", "tcfp16")
PRECISIONS = ("bf16x3", "f32", "bf16x9")
DEVICE = "H100"


class Bar(NamedTuple):
    """A product: what it is called, its group, and what it keeps, in dB."""

    name: str
    group: int
    kept: int


def numbers(name: str, most: float) -> list[float]:
    """The numbers of a format from 0 to `most`."""
    form = td.formats[name]
    codes = np.arange(2**form.bits, dtype=np.uint8)
    found = td.from_bits(codes, form.dtype).astype(float)
    return [float(x) for x in np.unique(found[(found >= 0) & (found <= most)])]


def bars() -> list[Bar]:
    """Products of the same two matrices."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((256, 1024), np.float32)
    b = rng.standard_normal((1024, 256), np.float32)
    exact = a.astype(float) @ b.astype(float)

    def kept(product: np.ndarray) -> int:
        error = np.linalg.norm(exact - product.astype(float))
        return round(float(20 * np.log10(np.linalg.norm(exact) / error)))

    found = []
    for name in DTYPES:
        x, y = td.quantize(a, name), td.quantize(b, name)
        found.append(Bar(name, 0, kept(td.matmul(x, y, dtype=np.float32))))
    for name in BLOCKS:
        blocks = td.blocks.quantize(a, name), td.blocks.quantize(b, name, axis=0)
        found.append(Bar(name, 1, kept(blocks[0] @ blocks[1])))
    for name in PRECISIONS:
        found.append(Bar(name, 2, kept(td.matmul(a, b, precision=name))))
    on_device = td.matmul(a, b, precision="bf16x9", device=DEVICE)
    found.append(Bar(f"bf16x9 on {DEVICE}", 2, kept(on_device)))
    return found


def number_lines() -> list[str]:
    """Draw the left half: one row per format, one tick per value from 0 to 8."""
    left, step, most = 92, 33, 8
    drawn = [text(0, 22, "All values from 0 to 8", "ink", "title")]
    top, bottom = 70, 70 + 44 * (len(LINES) - 1)
    for x in range(most + 1):
        at = left + step * x
        drawn.append(box(at - 0.5, top - 16, 1, bottom - top + 32, "faint"))
        drawn.append(text(at, bottom + 36, str(x), "ink", "middle"))
    for row, (name, label) in enumerate(LINES.items()):
        y = top + 44 * row
        drawn.append(text(0, y + 5, label))
        for number in numbers(name, most):
            x = round(left + step * number, 1)
            drawn.append(box(x - 0.6, y - 9, 1.2, 18, "blue"))
    return drawn


def bar_chart() -> list[str]:
    """The right half: a bar a product, its length the dB that it keeps."""
    start, left, scale = 400, 520, 2.1
    drawn = [text(start, 22, "Accuracy of a matrix product, in dB", "ink", "title")]
    y, group = 34.0, -1
    for bar in bars():
        color = GROUP_COLORS[bar.group]
        if bar.group != group:
            group = bar.group
            y += 20
            drawn.append(text(start, y, GROUPS[group], color, "head"))
            y += 8
        drawn.append(text(start, y + 14, bar.name))
        drawn.append(box(left, y + 3, round(scale * bar.kept, 1), 13, color))
        at = round(left + scale * bar.kept + 6, 1)
        drawn.append(text(at, y + 14, str(bar.kept)))
        y += 19
    return drawn


def picture() -> str:
    """Return the file."""
    return page(880, 372, [*number_lines(), *bar_chart()])
