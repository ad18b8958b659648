"""List the rows of gpu.py with minimum and target speeds, and their cases' sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import gpu_products as products
import gpu_streams as streams
from measuring import Case, Row


class Sizes(NamedTuple):
    """The sizes of the cases; matrices are n x n."""

    elements: int  # of arrays in calls that read and write memory once
    native: tuple[int, ...]
    emulated: tuple[int, ...]
    chained: tuple[int, ...]
    modeled: tuple[int, ...]
    blocks: tuple[int, ...]
    grid: tuple[int, ...]  # values of m = n and of k in the crossover
    energy: tuple[int, ...]


FULL = Sizes(
    1 << 27, native=(1024, 2048, 4096, 8192), emulated=(1024, 2048, 4096, 8192),
    chained=(1024, 2048, 4096, 8192), modeled=(4096,), blocks=(4096,),
    grid=tuple(2**i for i in range(6, 15)), energy=(1024, 2048, 4096, 8192, 16384),
)  # fmt: skip
QUICK = Sizes(
    1 << 24, (1024,), (2048,), (1024,), (1024,), (1024,), grid=(64, 512), energy=(1024,)
)

FLOATS = ("tf32", "bfloat16", "float16")


def rows(sizes: Sizes) -> list[Row]:
    """Return all rows that are ratios of speeds."""

    def against_copy(name: str, cases: Callable[[int], Iterator[Case]]) -> Row:
        return Row(name, "of a copy", 0.8, 0.95, partial(cases, sizes.elements))

    def own(instruction: str) -> Callable[[], Iterator[Case]]:
        names = "tf32", "bfloat16"
        return partial(products.native, sizes.native, names, instruction=instruction)

    def emulated(precision: str, minimum: float, target: float) -> Row:
        cases = partial(products.emulated, sizes.emulated, precision)
        return Row(precision, "of SGEMM", minimum, target, cases)

    def by_integers(name: str, precision: str, minimum: float, target: float) -> Row:
        cases = partial(products.by_integers, sizes.emulated, precision, name)
        return Row(name, "of SGEMM", minimum, target, cases)

    exact = partial(products.emulated, sizes.emulated, "exact", "performant")
    native = partial(products.native, sizes.native, (*FLOATS, "float8_e4m3fn"))
    return [
        against_copy("casts", streams.casts),
        against_copy("ufuncs", streams.ufuncs),
        against_copy("reductions", streams.reductions),
        Row("native products", "of cuBLAS", 0.95, 1.0, native),
        Row("own kernel, wgmma", "of cuBLAS", 0.75, 0.95, own("wgmma")),
        Row("own kernel, mma.sync", "of cuBLAS", 0.5, 0.7, own("mma.sync")),
        emulated("bf16x9", 1.3, 1.8),
        emulated("bf16x6", 1.8, 2.5),
        emulated("bf16x3", 3, 4.5),
        emulated("tf32x3", 1.5, 2.2),
        Row("exact", "of SGEMM", 0.5, 0.9, exact),
        by_integers("exact-int8", "exact", 0.9, 1.8),
        by_integers("crt7", "crt7", 1.2, 2.5),
        Row(
            "blocks", "of a copy", 0.25, 0.4,
            partial(streams.block_casts, sizes.elements),
        ),
        Row(
            "TCFP-16", "of FP8", 1 / 4.5, 1 / 3.3,
            partial(products.block_products, sizes.blocks),
        ),
    ]  # fmt: skip


def rates(
    sizes: Sizes, peak: float
) -> list[tuple[Row, Callable[[], Iterator[products.Rate]]]]:
    """Return the rows that have no reference to time, with their calls.

    `peak` is the GPU's float32 operations per second.
    """

    def row(name: str, unit: str, minimum: float, target: float) -> Row:
        return Row(name, unit, minimum, target, lambda: iter(()))

    return [
        (
            row("chain", "of peak", 0.5, 0.8),
            partial(products.chains, sizes.chained, peak),
        ),
        *(
            (
                row(f"{device} emulated", "TMAC/s", 1, 3),
                partial(products.modeled, sizes.modeled, device),
            )
            for device in ("A100", "H100")
        ),
    ]


def take_rates(
    row: Row,
    cases: Callable[[], Iterator[products.Rate]],
    clock: Callable[..., dict[str, float]],
    repeats: int,
    budget: float,
) -> None:
    """Measure the cases and add their rates to the row."""
    for name, call, work in cases():
        seconds = clock({"ours": call}, repeats, budget)["ours"]
        row.take(name, "N(0,1)", "ours", work / seconds)
