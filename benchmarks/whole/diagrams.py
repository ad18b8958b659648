"""Diagrams of docs/concepts: formats, blocks, scopes, and the order of sums.

Bits, numbers and sizes come from the package, and from the headers of its C code.
`python benchmarks/readme.py` writes the files.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

import numpy as np
from svg import box, page, text

import tf32dtype as td
from tf32dtype.blocks.formats import POWERS, elements
from tf32dtype.tensor_core.models import ALIGNED
from tf32dtype.tensor_core.steps import Exact, Group, steps

SOURCES = Path(__file__).resolve().parents[2] / "src" / "matmul"
#: Letters of 14 pixels have 11 where a telephone scales this width to 330 pixels.
WIDTH = 420


class Sheet:
    """A picture that is drawn from the top to the bottom."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        self.y = 0.0

    def line(self, words: str, kind: str = "", height: float = 24) -> None:
        """Write a line at the left, and go to the next one."""
        self.words(0, 17, words, kind)
        self.y += height

    def words(self, x: float, down: float, words: str, kind: str = "") -> None:
        self.drawn.append(text(x, self.y + down, words, "ink", kind))

    def box(self, x: float, down: float, wide: float, high: float, color: str) -> None:
        self.drawn.append(box(x, self.y + down, wide, high, color))

    def field(self, x: float, width: float, words: str, color: str) -> None:
        """Draw a box of one line, with words in its middle."""
        self.box(x, 0, width, 24, f"{color} light")
        self.words(x + width / 2, 17, words, "middle")

    def cells(self, x: float, step: float, high: float, colors: Iterable[str]) -> None:
        """Draw a row of narrow boxes, with a gap between them."""
        for number, color in enumerate(colors):
            self.box(x + step * number, 0, step - 1, high, color)

    def bits(self, x: float, step: float, digits: str, color: str) -> None:
        """Draw cells for binary digits: ones in the color, zeros pale."""
        lit = (color if digit == "1" else "faint" for digit in digits)
        self.cells(x, step, 18, lit)

    def legend(self, colors: dict[str, str]) -> None:
        """Name colors, side by side."""
        for number, (name, color) in enumerate(colors.items()):
            x = WIDTH / len(colors) * number
            self.box(x, 5, 14, 14, color)
            self.words(x + 20, 17, name)
        self.y += 32

    def funnel(self, width: float) -> None:
        """Join the drawing above to the first `width` pixels of the row below."""
        top, end = self.y + 2, self.y + 22
        corners = f"0,{top:g} {WIDTH},{top:g} {width:g},{end:g} 0,{end:g}"
        self.drawn.append(f'<polygon points="{corners}" class="faint"/>')
        self.y += 24


# -- formats ---------------------------------------------------------------------------


def formats(sheet: Sheet) -> None:
    """A row for each format, a cell for each bit."""
    left, step = 150, 8
    colors = "orange", "blue", "green"
    tints = [*(f"{color} medium" for color in colors), "faint"]
    names = "sign", "exponent", "mantissa", "unused"
    sheet.legend(dict(zip(names, tints, strict=True)))
    for name, form in td.formats.items():
        x = left
        sheet.words(0, 15, name, "code")
        fields = form.exponent_bits, form.mantissa_bits, form.unused_low_bits
        for bits, color in zip((form.signed, *fields), tints, strict=True):
            sheet.cells(x, step, 20, [color] * bits)
            if bits and (bits > 1 or x > left):
                sheet.words(x + (step * bits - 1) / 2, 15, str(bits), "middle")
            x += step * bits
        sheet.y += 26


# -- blocks ----------------------------------------------------------------------------


def block(sheet: Sheet) -> None:
    """32 values in three formats; a cell is as high as it has bits."""
    values, step = 32, WIDTH / 32
    for name in ("mxfp4", "nvfp4", "tcfp12"):
        form = td.blocks.formats[name]
        sheet.line(f"{name}: {form.bits_per_value:g} bits per value", "head")
        if form.scale_format != POWERS:
            said = "tensor scale: one float32, a factor of each S"
            sheet.field(0, WIDTH - 1, said, "faint")
            sheet.y += 26
        scales = "SR"[: form.levels] * (values // form.block_size)
        width = WIDTH / len(scales)
        for number, scale in enumerate(scales):
            said = f"{scale}: 8 bits"
            said += f", {form.scale_format}" if form.scale_format else ""
            sheet.field(width * number, width - 1, said, "orange")
        sheet.y += 26
        levels = [(form.element, "elements", "blue")]
        if form.residual:
            levels.append((form.residual, "residuals", "green"))
        for element, _, color in levels:
            height = 4 * elements[element].width
            sheet.cells(0, step, height, [color] * values)
            sheet.y += height + 2
        for element, role, _ in levels:
            said = f"{elements[element].width} bits, {element}"
            sheet.line(f"{form.block_size} {role} per block: {said}", "", 22)
        value = "S * (element + R * residual)" if form.residual else "S * element"
        sheet.line(f"value = {value}", "", 42)
    sheet.y -= 14


# -- tensor cores ----------------------------------------------------------------------

DEVICE, OPERANDS = "H100", "float16"
A, B, C = (1.5, 0.1, 0.3, 0.01), (1.5, 0.1, -0.2, 0.02), 0.1


def mma_group(sheet: Sheet) -> None:
    """One group of a tensor core: all bits of its terms, its sum and its result."""
    a, b, c = np.array(A, OPERANDS), np.array(B, OPERANDS), np.float32(C)
    wanted = DEVICE, OPERANDS, OPERANDS, "float32"
    (model, *_) = (x for x in ALIGNED if (x.device, x.a, x.b, x.accumulator) == wanted)
    (group,) = steps(model, a.tolist(), b.tolist(), float(c))
    assert isinstance(group, Group)
    assert group.greatest is not None
    assert group.result == td.tensor_core.matmul(a, b, c=c, device=DEVICE)
    top, step, left = group.greatest + 1, 8, 132
    edge = left + step * (top - group.unit + 1) - 1

    def number(name: str, exact: Exact, unit: int) -> None:
        """Draw the bits of a magnitude from 2^top on, those below the unit orange."""
        first = exact.magnitude.bit_length() - 1 + exact.unit
        bits, kept = f"{exact.magnitude:b}".rstrip("0"), first - unit + 1
        x = left + step * (top - first)
        sheet.words(0, 14, name, "code")
        sheet.box(left - 1, 0, 1, 22, "faint")
        sheet.bits(x, step, bits[:kept], "blue")
        sheet.bits(x + step * kept, step, bits[kept:], "orange")
        sheet.y += 22

    sheet.line(f"{DEVICE}, {OPERANDS}: {len(A)} products and c in one sum", "head", 28)
    sheet.line("1. Multiply exactly. Align to the largest exponent.")
    sheet.line(f"2. Keep {model.fraction} bits below it. Truncate the others.", "", 30)
    sheet.legend({"one": "blue", "truncated": "orange", "zero": "faint"})
    begin = sheet.y
    sheet.words(left, 12, f"2^{top}", "code")
    sheet.words(edge, 12, f"2^{group.unit}", "code middle")
    sheet.y += 20
    for term in (*group.terms[1:], group.terms[0]):
        name = f"c = {C:g}" if term.k is None else f"{A[term.k]:g} * {B[term.k]:g}"
        number(name, term.exact, group.unit)
    sheet.y += 8
    sheet.line("3. Add the bits that are kept.")
    total = Exact.of(group.total, group.unit)
    number("sum", total, group.unit)
    sheet.drawn.append(box(edge, begin + 16, 1, sheet.y - begin - 16, "ink"))
    sheet.y += 8
    sheet.line(f"4. Round toward zero to {model.kept} bits after the first bit.")
    last = total.magnitude.bit_length() - 1 + total.unit - model.kept
    number("float32", total, last)
    sheet.line(f"result: {group.result:.9g}", "", 26)


# -- matrix products -------------------------------------------------------------------


def split(sheet: Sheet) -> None:
    """Three components of a number, and the order of their products."""
    whole, bits, left, step = np.sqrt(np.float32(2)), 8, 104, 13
    parts, rest = [], float(whole)
    for shift in (0, bits, 2 * bits):
        parts.append(float(td.bfloat16(rest * 2.0**shift)) / 2.0**shift)
        rest -= parts[-1]
    assert rest == 0
    sheet.line(f"x = {whole:.8g} in three bfloat16 components", "head")
    sheet.line("float32 x = x0 + 2^-8 x1 + 2^-16 x2", "", 32)
    sheet.legend({"one": "ink", "zero": "faint"})
    names = "x", "x0", "2^-8 x1", "2^-16 x2"
    colors = "ink", "blue", "green", "orange"
    for name, value, color in zip(names, [float(whole), *parts], colors, strict=True):
        units = int(value * 2**23)
        assert units == value * 2**23 > 0
        x = left + step * (24 - units.bit_length())
        sheet.words(0, 14, name)
        sheet.bits(x, step, f"{units:b}".rstrip("0"), color)
        sheet.y += 26
    sheet.y += 16
    sheet.line("The products of a and b, in the order of the sum", "head")
    sheet.line(f"Between two rows the sum is multiplied by 2^-{bits}.", "", 34)
    most = len(parts) - 1
    begins = {4: "bf16x9", 2: "bf16x6", 1: "bf16x3"}
    number = 0
    for order in range(2 * most, -1, -1):
        sheet.words(0, 17, f"2^-{bits * order}" if order else "1")
        for at, i in enumerate(range(max(0, order - most), min(order, most) + 1)):
            number += 1
            sheet.field(72 + 76 * at, 72, f"{number}: a{i} b{order - i}", "blue")
        if order in begins:
            sheet.words(308, 17, f"{begins[order]} begins")
        sheet.y += 30


def size(file: str, name: str) -> int:
    """A constant of the C code."""
    found = re.search(rf"\b{name} = (\d+)", (SOURCES / file).read_text())
    assert found
    return int(found[1])


def chain(sheet: Sheet) -> None:
    """Chains of fused multiply-adds, their sums, and sums of these."""
    one, several = size("kernels.h", "TF_KC"), size("split_schedule.h", "TF_SPLIT_KC")
    most = size("split_schedule.h", "TF_SPLIT_SUM")

    def first(words: str) -> None:
        sheet.field(0, WIDTH, words, "blue")
        sheet.y += 24

    def level(count: int, each: int, words: str, more: bool = False) -> None:
        """Draw sums of `each` k that are added."""
        step = WIDTH / count
        sheet.funnel(step - 2)
        for at in range(count):
            said = "..." if more and at == count - 1 else str(each)
            sheet.field(step * at, step - 2, said if step > 40 else "", "green")
        sheet.y += 26
        sheet.line(words, "", 24)

    sheet.line("One component: f32, tf32, bf16, f16, fp8", "head", 28)
    first(f"{one} k: t = fma(a[k], b[k], t), from +0")
    level(4, one, f"sums of {one} k, added in k order: the result", more=True)
    sheet.y += 18
    sheet.line("Several: tf32x3, bf16x3, bf16x6, bf16x9", "head", 28)
    first(f"{several} k: all products of components, from +0")
    level(one // several, several, f"{one // several} sums, added in k order: {one} k")
    sums = most // one
    level(sums, one, f"{sums} sums of {one} k, added in k order: {most} k")
    level(4, most, f"sums of {most} k, added in k order: the result", more=True)


# -- scopes ----------------------------------------------------------------------------

#: A program that computes the product of `covered`.
ASK = """import numpy, tf32dtype
a = numpy.full((2, 2), 1 / 3, numpy.float32)
print((a @ a).tobytes().hex())"""


@cache
def covered() -> dict[str, bool]:
    """Measure where the precision of a scope holds."""
    a = np.full((2, 2), 1 / 3, np.float32)
    plain, found = a @ a, {}

    def ask(who: str) -> None:
        found[who] = not np.array_equal(a @ a, plain)

    async def wait(who: str, event: asyncio.Event) -> None:
        await event.wait()
        ask(who)

    async def program() -> None:
        inside, after = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(wait("task before", inside))]
        await asyncio.sleep(0)
        with td.matmul_precision("bf16"):
            ask("inside")
            tasks.append(asyncio.create_task(wait("task inside", after)))
            inside.set()
            await tasks[0]
            await asyncio.to_thread(ask, "to_thread")
            thread = threading.Thread(target=ask, args=["thread"])
            thread.start()
            thread.join()
            printed = subprocess.check_output([sys.executable, "-c", ASK], text=True)
            found["process"] = printed.strip() != plain.tobytes().hex()
        ask("outside")
        after.set()
        await tasks[1]

    asyncio.run(program())
    return found


#: A name, a key of `covered`, and where the bar begins and ends.
LANES = (
    ("asyncio task, started before the scope", "task before", 0, WIDTH),
    ("asyncio task, started in the scope", "task inside", 170, WIDTH),
    ("asyncio.to_thread(...) in the scope", "to_thread", 190, 280),
    ("threading.Thread(...)", "thread", 190, WIDTH),
    ("subprocess.run(...)", "process", 190, WIDTH),
)


def scope(sheet: Sheet) -> None:
    """Who has the precision of a scope, over time from left to right."""
    here, end, holds = 120, 320, covered()
    assert holds["inside"]
    assert not holds["outside"]
    lines = "blue", "ink strong"
    names = "precision of the scope", "precision of the process"
    sheet.legend(dict(zip(names, lines, strict=True)))
    sheet.box(here, 0, end - here, 50 * (len(LANES) + 1), "blue pale")
    sheet.line("this thread: with td.matmul_precision(...)", "", 26)
    for x, to, color in (0, here, 1), (here, end, 0), (end, WIDTH, 1):
        sheet.box(x, 0, to - x, 14, lines[color])
    sheet.y += 24
    for name, who, x, to in LANES:
        sheet.line(name, "", 26)
        sheet.box(x, 0, to - x, 14, lines[not holds[who]])
        sheet.y += 24
    sheet.words(here, 17, "enters", "middle")
    sheet.words(end, 17, "exits", "middle")
    sheet.y += 24


# -- files -----------------------------------------------------------------------------

#: How each is drawn, and the text for readers who cannot see it.
DIAGRAMS: dict[str, tuple[Callable[[Sheet], None], str]] = {
    "formats": (
        formats,
        "The bits of each format, in cells: the sign, the exponent and the mantissa. "
        "The table on this page has the same numbers.",
    ),
    "block": (
        block,
        "Blocks of three formats. mxfp4: one 8-bit scale for 32 elements of 4 bits. "
        "nvfp4: one 8-bit scale for 16 elements of 4 bits, and one float32 for the "
        "tensor. tcfp12: two 8-bit scales for 32 elements of 8 bits with 32 residuals "
        "of 4 bits, and one float32 for the tensor.",
    ),
    "mma_group": (
        mma_group,
        "Four products and the accumulator c of an H100, bit by bit. They are aligned "
        "to the largest exponent, truncated 25 bits below it, added exactly, and "
        "rounded toward zero to a float32.",
    ),
    "split": (
        split,
        "The bits of a float32 number in three bfloat16 components, and the nine "
        "products of two such numbers in the order of their sum: from a2 b2, the "
        "smallest, to a0 b0, the largest.",
    ),
    "chain": (
        chain,
        "The order of sums. One component: chains of 256 fused multiply-adds, whose "
        "sums are added in k order. Several components: chains of 32 k, added to sums "
        "of 256 k, which are added to sums of 4096 k, and these to the result.",
    ),
    "scope": (
        scope,
        "Time from left to right. The precision of a scope holds in its thread until "
        "the scope exits. It also holds in asyncio tasks and asyncio.to_thread calls "
        "that start in the scope. It does not hold in tasks that started before, in "
        "new threads, and in new processes.",
    ),
}


def picture(name: str) -> str:
    """Return the file of a diagram."""
    draw, title = DIAGRAMS[name]
    sheet = Sheet()
    draw(sheet)
    return page(WIDTH, sheet.y, sheet.drawn, title)


PICTURES = {f"docs/figures/{name}": partial(picture, name) for name in DIAGRAMS}
