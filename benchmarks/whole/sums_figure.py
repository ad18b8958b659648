"""The sums of the same numbers in many orders, for docs/concepts/exact_products.md.

`python benchmarks/readme.py` writes it.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from svg import box, page, text

COUNT, ORDERS = 1000, 2000
LEFT, TOP, HEIGHT, STEP = 20, 40, 170, 14  # pixels


def distances() -> Counter[int]:
    """Return how many orders give a sum that is so many float32 steps off."""
    rng = np.random.default_rng(5)
    numbers = rng.random(COUNT, dtype=np.float32)
    nearest = np.float32(math.fsum(numbers.tolist()))
    step = float(np.spacing(np.abs(nearest)))
    found: Counter[int] = Counter()
    for _ in range(ORDERS):
        total = np.add.accumulate(rng.permutation(numbers))[-1]
        found[round((float(total) - float(nearest)) / step)] += 1
    return found


def picture() -> str:
    """Return the file."""
    found = distances()
    last = max(map(abs, found))
    most = max(found.values())
    middle = LEFT + STEP * last
    bottom = TOP + HEIGHT
    drawn = [
        text(
            0,
            18,
            f"Sums of {COUNT:,} numbers, one after the other, in {ORDERS:,} orders",
        )
    ]
    for off, count in sorted(found.items()):
        high = max(1, HEIGHT * count / most)
        color = "blue" if off == 0 else "orange medium"
        drawn.append(box(middle + STEP * off, bottom - high, STEP - 3, high, color))
    share = 100 * found[0] / ORDERS
    drawn += [
        box(LEFT - 10, bottom, STEP * (2 * last + 1) + 20, 1, "faint"),
        text(middle - 60, bottom + 22, "the nearest float32", "blue", "head"),
        text(LEFT, bottom + 22, f"{-last} steps"),
        text(LEFT + STEP * 2 * last - 40, bottom + 22, f"+{last} steps"),
        text(
            0,
            bottom + 50,
            f"{share:.0f} % of the orders give the float32 number nearest to the sum.",
        ),
    ]
    width = LEFT + STEP * (2 * last + 1) + 40
    return page(max(width, 640), bottom + 60, drawn, "Sums of numbers in many orders")
