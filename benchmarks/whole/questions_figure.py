"""The decision diagram of the site: which command or function answers which question.

`python benchmarks/readme.py` writes it.
"""

from __future__ import annotations

from svg import box, page, text

START = "What do you have?"
#: For each thing that a reader has: questions, and what answers them.
BRANCHES = {
    "a number or a format": {
        "Which bits does it have?": "tf32dtype inspect 0.1",
        "Which values exist?": "tf32dtype values fp4",
        "Round it, saturate it?": "td.quantize(x, format)",
    },
    "a file of tensors": {
        "Which values does it hold?": "tf32dtype inspect FILE",
        "Make it smaller?": "tf32dtype convert IN OUT --to mxfp8",
        "Which format is enough?": "tf32dtype compare A.npy B.npy",
    },
    "a program": {
        "Which lines lose digits?": "tf32dtype report script.py",
        "How does its result change?": "tf32dtype run --precision bf16 script.py",
        "Which precision is enough?": "tf32dtype tune script.py --check ...",
        "It is not Python?": "tf32dtype blas --precision bf16 program",
    },
    "a result of a GPU": {
        "Compute it on a CPU?": 'td.tensor_core.matmul(a, b, device="H100")',
        "Why do two GPUs differ?": "td.tensor_core.explain(a, b, device=[...])",
        "Which kernel made it?": "td.tensor_core.identify(a, b, None, d)",
    },
}
#: Where the columns begin, and the height of a row and of the gap between branches.
THING, QUESTION, ANSWER, WIDTH = 48, 250, 500, 880
ROW, GAP, TOP = 28, 16, 34


def branch(y: float, thing: str, asked: dict[str, str]) -> list[str]:
    """Draw a thing, and the questions about it from `y` on, with lines between."""
    middle = y + ROW * (len(asked) - 1) / 2
    drawn = [
        box(12, middle - 0.5, THING - 20, 1, "faint"),
        text(THING, middle + 5, thing, "blue", "head"),
        box(QUESTION - 40, middle - 0.5, 14, 1, "faint"),
        box(QUESTION - 26, y - 0.5, 1, ROW * (len(asked) - 1) + 1, "faint"),
    ]
    for row, (question, answer) in enumerate(asked.items()):
        at = y + ROW * row
        drawn.append(box(QUESTION - 26, at - 0.5, 20, 1, "faint"))
        drawn.append(text(QUESTION, at + 5, question))
        drawn.append(box(ANSWER - 40, at - 0.5, 32, 1, "faint"))
        drawn.append(text(ANSWER, at + 5, answer, "green", "code"))
    return drawn


def picture() -> str:
    """Return the file."""
    drawn, middles = [text(0, 17, START, "ink", "title")], []
    y = float(TOP + ROW)
    for thing, asked in BRANCHES.items():
        drawn += branch(y, thing, asked)
        middles.append(y + ROW * (len(asked) - 1) / 2)
        y += ROW * len(asked) + GAP
    trunk = box(12, TOP - 6, 1, middles[-1] - TOP + 6.5, "faint")
    return page(WIDTH, y - GAP, [trunk, *drawn])
