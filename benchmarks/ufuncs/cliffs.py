"""Find inputs that take a function many times as long as similar inputs.

    python benchmarks/ufuncs/cliffs.py [--only PATTERN] [--formats NAMES] [--above 10]
                                       [--size 16384] [--json FILE]

A case is a function, a class of data, a layout and a format. It has two neighbors: the
same function, layout and format with N(0, 1), and the same function, data and layout in
NumPy's float32. The case's factor is the larger of its times over its neighbors' times,
which are minima of repeats. Cases with a factor above `--above` are timed again, in
turns with their neighbors. They are printed if the factor stays above, the worst first,
unless NumPy's float32 takes about as long. `--only` takes the cases whose name matches
a regular expression. One thread runs on one core. See benchmarks/matmul for products.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "whole"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import least_times, machine, pin, restart_as_usual
from surface_calls import ufuncs

Call = Callable[[], Any]
Function = tuple[str, tuple[str, ...], Callable[["Side"], Call]]
Found = dict[str, Any]
FORMATS = """tf32 bfloat16 float8_e4m3fn float8_e5m2 float8_e8m0fnu float6_e2m3fn
    float4_e2m1fn""".split()
ORDINARY = "normal"
ALIKE = 1.5  # times float32's time: cases up to this count as equally slow
LEAST = 5e-6  # seconds, about the cost of a call: shorter times are raised to it

# -- data --------------------------------------------------------------------------


def with_some(x: np.ndarray, share: float, value: float) -> np.ndarray:
    return np.where(np.random.default_rng(3).random(x.size) < share, value, x)


def classes(facts: Any, count: int) -> dict[str, np.ndarray]:
    """Return each class of data in float64, for a type with this `numpy.finfo`."""
    rng = np.random.default_rng(1)
    x, signs = rng.standard_normal(count), rng.choice([-1.0, 1.0], count)
    upper = 1 + rng.random(count)
    most, tiny, least = (
        float(getattr(facts, name))
        for name in ("max", "smallest_normal", "smallest_subnormal")
    )
    root = np.sqrt(tiny)
    ulps = rng.integers(0, 16, count)  # 1 + (k + 1/2) ulp is halfway
    return {
        ORDINARY: x,
        "positive": np.abs(x),
        "40 binades": signs * upper * np.exp2(rng.integers(-20, 20, count)),
        "constant": np.full(count, 1.25),
        "zeros": np.zeros(count),
        "-0": np.full(count, -0.0),
        "half zeros": np.where(signs > 0, 0, x),
        "subnormal": signs * least * rng.integers(1, 8, count),
        "least subnormal": np.full(count, least),
        "least normal": signs * upper * tiny,
        "roots of the least": signs * upper * root,
        "near the maximum": signs * upper * most / 2,
        "all near the maximum": upper * most / 2,
        "roots of the maximum": signs * upper * np.sqrt(most),
        "beyond the maximum": signs * upper * most * 2,
        "1 % NaN": with_some(x, 0.01, np.nan),
        "10 % NaN": with_some(x, 0.1, np.nan),
        "all NaN": np.full(count, np.nan),
        "1 % Inf": with_some(x, 0.01, np.inf),
        "10 % Inf": with_some(x, 0.1, np.inf),
        "10 % -Inf": with_some(x, 0.1, -np.inf),
        "all Inf": np.full(count, np.inf),
        "integers": rng.integers(-9, 10, count).astype(float),
        "powers of two": signs * np.exp2(rng.integers(-6, 7, count)),
        "halfway": signs * (1 + (ulps + 0.5) * float(facts.eps)),
        "near halfway": signs * (1 + (ulps + 0.5) * float(facts.eps) * (1 + 2.0**-20)),
        "canceling": np.repeat(x[: count // 2], 2) * np.tile([1, -1], count // 2),
        "sorted": np.sort(x),
        "falling": np.sort(x)[::-1].copy(),
    }


@lru_cache(maxsize=64)
def wide(name: str, count: int) -> dict[str, np.ndarray]:
    found = classes(np.finfo(dtype_of(name)), count)
    if name == "float8_e8m0fnu":
        return {kind: np.abs(x) for kind, x in found.items()}
    return found


@lru_cache(maxsize=4)
def dtype_of(name: str) -> np.dtype:
    import tf32dtype as td

    return np.dtype(td.formats[name].type if name in td.formats else name)


# -- layouts -----------------------------------------------------------------------

ROWS = {f"rows of {n}": n for n in (2, 3, 16, 256)}
COLUMNS = {f"columns of {n}": n for n in (2, 16, 256)}
LAYOUTS = ("contiguous", "strided", "reversed", "transposed", "where=", *ROWS, *COLUMNS)
FLAT = LAYOUTS[:3]


def laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    """Return the elements in a layout; rows and columns make a matrix."""
    if layout == "strided":
        return np.repeat(x, 2)[::2]
    if layout == "reversed":
        return x[::-1].copy()[::-1]
    if layout == "transposed":
        return np.ascontiguousarray(x.reshape(128, -1).T).T
    if layout in ROWS:
        n = ROWS[layout]
        return np.ascontiguousarray(x[: x.size // n * n].reshape(-1, n))
    if layout in COLUMNS:
        return np.ascontiguousarray(x.reshape(COLUMNS[layout], -1))
    return x


def axis_of(layout: str) -> Any:
    return -1 if layout in ROWS else 0 if layout in COLUMNS else None


# -- functions ---------------------------------------------------------------------


class Side:
    """The operands of a case: `x` and `y` of its type, `wide` in float64."""

    def __init__(self, name: str, kind: str, layout: str, count: int) -> None:
        self.name, self.kind, self.layout = name, kind, layout
        self.dtype = dtype_of(name)
        self.flat = wide(name, count)[kind]
        self.x = laid_out(self.flat.astype(self.dtype), layout)
        # Elements of y differ from those of x and from their negatives.
        self.y = laid_out(np.roll(self.flat, 1).astype(self.dtype), layout)
        drawn = np.random.default_rng(2).random(self.x.shape) < 0.5
        self.mask = drawn if layout == "where=" else True

    def cast(self, name: str) -> np.ndarray:
        return laid_out(self.flat.astype(dtype_of(name)), self.layout)


def of_ufunc(ufunc: np.ufunc, side: Side) -> Call:
    second = [np.full(side.x.shape, 3, np.int32)] if ufunc is np.ldexp else [side.y]
    operands = [side.x, *second][: ufunc.nin]
    results = ufunc(*operands)
    results = results if isinstance(results, tuple) else (results,)
    return partial(ufunc, *operands, out=results, where=side.mask)


def of_reduction(function: Callable[..., Any], initial: Any, side: Side) -> Call:
    keywords = {"axis": axis_of(side.layout)}
    if side.layout == "where=":
        keywords["where"] = side.mask
        if initial is not None:
            keywords["initial"] = initial
    return partial(function, side.x, **keywords)


def of_line(function: Callable[..., Any], side: Side) -> Call:
    axis = axis_of(side.layout)
    return partial(function, side.x, axis=0 if axis is None else axis)


def into(target: np.dtype, source: np.ndarray, mask: Any) -> Call:
    out = np.empty_like(source, target)
    return partial(np.copyto, out, source, casting="unsafe", where=mask)


NUMPYS = "bool int8 uint8 int32 int64 float16 float32 float64 complex64".split()
SUMS = "sum prod mean std var nansum nanprod nanmean nanvar".split()
SELECTING = "max min ptp argmax argmin any all nanmax nanmin nanargmax".split()
REDUCED = """fmax fmin logaddexp hypot logical_xor logical_and subtract divide
    arctan2 remainder copysign""".split()
LINES = """cumsum cumprod nancumsum sort argsort median nanmedian""".split()
ROUNDINGS = """ties_to_even ties_to_away toward_zero toward_positive toward_negative
    to_odd stochastic""".split()
OTHERS: dict[str, Callable[[Side], Call]] = {
    "clip": lambda s: partial(np.clip, s.x, s.dtype.type(1), s.y),
    "isclose": lambda s: partial(np.isclose, s.x, s.y),
    "nan_to_num": lambda s: partial(np.nan_to_num, s.x),
    "add a number": lambda s: partial(np.add, s.x, s.dtype.type(1)),
    "divide by a number": lambda s: partial(np.divide, s.x, s.dtype.type(1.5)),
    "less than a number": lambda s: partial(np.less, s.x, 0.3),
    "power of a number": lambda s: partial(np.power, s.x, s.dtype.type(2)),
    "linalg.norm": lambda s: partial(np.linalg.norm, s.x, axis=axis_of(s.layout)),
    "average": lambda s: partial(np.average, s.x, weights=s.y, axis=axis_of(s.layout)),
}
FLAT_ONES: dict[str, Callable[[Side], Call]] = {
    "sort, stable": lambda s: partial(np.sort, s.x, kind="stable"),
    "argsort, stable": lambda s: partial(np.argsort, s.x, kind="stable"),
    "lexsort": lambda s: partial(np.lexsort, (s.x, s.y)),
    "unique": lambda s: partial(np.unique, s.x),
    "unique, counts": lambda s: partial(np.unique, s.x, return_counts=True),
    "searchsorted": lambda s: partial(np.searchsorted, np.sort(s.x), s.y),
    "partition": lambda s: partial(np.partition, s.x, s.x.size // 2),
    "argpartition": lambda s: partial(np.argpartition, s.x, s.x.size // 2),
    "quantile": lambda s: partial(np.quantile, s.x, 0.3),
    "nonzero": lambda s: partial(np.nonzero, s.x),
    "isin": lambda s: partial(np.isin, s.x, s.y[:16]),
    "add.at": lambda s: partial(np.add.at, s.x.copy(), np.arange(s.x.size), s.y),
    "dot": lambda s: partial(np.dot, s.x, s.y),
    "vdot": lambda s: partial(np.vdot, s.x, s.y),
}
SEGMENTED = ("add", "multiply", "maximum", "minimum", "hypot")


def quantized(rounding: str, overflow: str, side: Side) -> Call:
    import tf32dtype as td

    keywords = {"rng": np.random.default_rng(0)} if rounding == "stochastic" else {}
    x = laid_out(side.flat.astype(np.float32), side.layout)
    if side.name == "float32":
        raise TypeError("float32 is the type that is quantized")
    return partial(
        td.quantize, x, side.dtype, rounding=rounding, overflow=overflow, **keywords
    )


def functions() -> Iterator[Function]:
    """Yield the name of each function, its layouts, and what makes its call."""
    for ufunc in ufuncs():
        yield ufunc.__name__, LAYOUTS[:-2], partial(of_ufunc, ufunc)
    for name in SUMS:
        yield name, LAYOUTS, partial(of_reduction, getattr(np, name), None)
    for name in SELECTING:
        initial = 0 if name in ("max", "min", "nanmax", "nanmin") else None
        yield name, LAYOUTS, partial(of_reduction, getattr(np, name), initial)
    for name in REDUCED:
        reduce = partial(of_reduction, getattr(np, name).reduce, 0)
        yield f"{name}.reduce", LAYOUTS, reduce
    for name in LINES:
        yield (
            name,
            tuple(n for n in LAYOUTS if n != "where="),
            partial(of_line, getattr(np, name)),
        )
    for name, call in OTHERS.items():
        yield name, tuple(n for n in LAYOUTS if n != "where="), call
    for name, call in FLAT_ONES.items():
        yield name, FLAT, call
    for name in SEGMENTED:
        ufunc = getattr(np, name)
        for n in (2, 16, 1024):

            def segments(s: Side, ufunc: Any = ufunc, n: int = n) -> Call:
                return partial(ufunc.reduceat, s.x, np.arange(0, s.x.size, n))

            yield f"{name}.reduceat of {n}", FLAT, segments
        yield (
            f"{name}.accumulate",
            LAYOUTS[:4] + LAYOUTS[5:],
            partial(of_line, ufunc.accumulate),
        )
    for other in (*NUMPYS, "tf32", "bfloat16", "float8_e4m3fn", "float8_e5m2"):

        def cast_from(s: Side, other: str = other) -> Call:
            return into(s.dtype, s.cast(other), s.mask)

        def cast_to(s: Side, other: str = other) -> Call:
            return into(dtype_of(other), s.x, s.mask)

        yield f"cast from {other}", LAYOUTS[:-2], cast_from
        yield f"cast to {other}", LAYOUTS[:-2], cast_to
    for rounding in ROUNDINGS:
        for overflow in ("ieee", "saturate"):
            name = f"quantize {rounding}, {overflow}"
            yield name, FLAT, partial(quantized, rounding, overflow)


# -- times -------------------------------------------------------------------------


Case = tuple[str, str, str]  # format, data, layout


class Timer:
    """Time the cases of a function, each once."""

    def __init__(self, make: Callable[[Side], Call], count: int) -> None:
        self.make, self.count = make, count
        self.known: dict[Case, float | None] = {}

    def built(self, case: Case) -> Call | None:
        """Make the call of a case and run it once; return None if the type lacks it."""
        try:
            call = self.make(Side(*case, self.count))
            call()
        except (
            TypeError,
            ValueError,
            IndexError,
            NotImplementedError,
            ArithmeticError,
        ):
            return None
        return call

    def time(self, case: Case) -> float | None:
        if case not in self.known:
            call = self.built(case)
            self.known[case] = least_times([call], 3, LEAST)[0] if call else None
        return self.known[case]

    def factors(self, case: Case) -> dict[str, float]:
        """Return a case's time over each neighbor's, measured in turns."""
        beside = {k: n for k, n in neighbors(case).items() if self.time(n)}
        calls = [self.built(n) for n in (case, *beside.values())]
        seconds, *others = least_times([c for c in calls if c], 9, LEAST)
        self.known[case] = seconds
        return {k: seconds / t for k, t in zip(beside, others, strict=True)}


def neighbors(case: Case) -> dict[str, Case]:
    name, kind, layout = case
    return {"normal": (name, ORDINARY, layout), "float32": ("float32", kind, layout)}


def cases_of(function: Function, options: argparse.Namespace) -> Iterator[Found]:
    """Yield the cases of a function that are above the limit, with their factors."""
    title, layouts, make = function
    matches = re.compile(options.only).search
    timer = Timer(make, options.size)
    kinds = wide("float32", options.size)
    for name, kind, layout in product(options.formats, kinds, layouts):
        case = name, kind, layout
        if not matches(", ".join((title, kind, layout, name))):
            continue
        seconds, *others = (timer.time(n) for n in (case, *neighbors(case).values()))
        if seconds and seconds > options.above * min(
            (t for t in others if t), default=seconds
        ):
            over = timer.factors(case)
            if max(over.values()) > options.above and over.get("float32", 9) > ALIKE:
                yield {
                    "function": title,
                    "data": kind,
                    "layout": layout,
                    "format": name,
                    "seconds": timer.time(case),
                    "over": over,
                }


def show(found: list[Found]) -> None:
    """Print the worst case of each function, layout and format, and how many more."""
    groups: dict[tuple[str, ...], list[Found]] = {}
    for case in sorted(found, key=lambda case: -max(case["over"].values())):
        key = tuple(case[k] for k in ("function", "layout", "format"))
        groups.setdefault(key, []).append(case)
    for key, (worst, *others) in groups.items():
        over = "  ".join(f"{value:6.1f} x {k}" for k, value in worst["over"].items())
        more = f" and {len(others)} more" if others else ""
        what = f"{', '.join(key)}: {worst['data']}{more}"
        print(f"{1e6 * worst['seconds']:8.0f} us  {over}  {what}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", default="", help="measure cases that match (default: all)"
    )
    parser.add_argument("--formats", type=str.split, default=FORMATS)
    parser.add_argument(
        "--above",
        type=float,
        default=10,
        help="print larger ratios of times (default: 10)",
    )
    parser.add_argument(
        "--size", type=int, default=1 << 14, help="use N elements (default: 16384)"
    )
    parser.add_argument("--json", type=Path, help="write the found cases to this file")
    options = parser.parse_args()
    restart_as_usual()
    pin()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    found = []
    for function in functions():
        some = [*cases_of(function, options)]
        found += some
        if some:
            worst = max(max(case["over"].values()) for case in some)
            print(f"{function[0]}: {len(some)}, {worst:.0f}", file=sys.stderr)
    show(found)
    if options.json:
        result = {"machine": machine(), "size": options.size, "cases": found}
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
