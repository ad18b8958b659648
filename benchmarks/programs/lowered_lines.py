"""Run a program with some of its lines in a lower precision, by plain NumPy.

This is the answer by hand of benchmarks/programs/culprits.py and uses no tf32dtype. The
source is parsed. Each operator, call of NumPy and method of an array becomes a call of
`Lowered`, which rounds if the line and the kind of the operation are chosen:

- arithmetic: operands and the result are rounded to the format; if the result is a
float,
  integers are rounded, too. A reduction is one operation, but a sum over the first axis
  adds whole rows, as NumPy does. A mean is a sum and a division.
- products (`@`, `dot`, ...): operands are rounded, or split into several components of
  the format; the product is computed in float32, and its result is not rounded.

Python's own floats, complex numbers, LAPACK, and functions that create or move numbers
are not lowered.
"""

from __future__ import annotations

import ast
import contextlib
import io
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

PRODUCTS, ARITHMETIC = "products", "arithmetic"
Place = tuple[int, str]  # a line number, and PRODUCTS or ARITHMETIC


@dataclass(frozen=True)
class Format:
    """A format of some significant bits, and how products split their operands."""

    bits: int
    lowest: int  # the exponent of the smallest normal number
    largest: float
    parts: int = 1  # the components of an operand
    orders: int = 1  # products of components i and j with i + j below this are added
    scaled: bool = False  # scale operands by a power of two: the largest element fits


LARGE = 2.0**128
BF16 = Format(8, -126, LARGE - 2.0**120)
TF32 = Format(11, -126, LARGE - 2.0**117)
FORMATS = {
    "bf16": BF16,
    "bf16x3": Format(8, -126, BF16.largest, 2, 2),
    "bf16x6": Format(8, -126, BF16.largest, 3, 3),
    "bf16x9": Format(8, -126, BF16.largest, 3, 5),
    "tf32": TF32,
    "tf32x3": Format(11, -126, TF32.largest, 2, 2),
    "f16": Format(11, -14, 65504.0),
    "f32": Format(24, -126, LARGE - 2.0**104),
    "fp8_e4m3": Format(4, -6, 448.0, scaled=True),
    "fp8_e5m2": Format(3, -14, 57344.0, scaled=True),
}

OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "MatMult": operator.matmul,
    "USub": operator.neg,
}
#: The unsigned integer type of a dtype's width, and the dtype's fraction bits.
CODES: dict[str, tuple[Any, int]] = {
    "float32": (np.uint32, 23),
    "float64": (np.uint64, 52),
}
#: Functions of NumPy and methods of arrays that are lowered, in addition to all ufuncs.
MULTIPLY = {"MatMult", "matmul", "dot", "inner", "vdot", "tensordot", "einsum"}
REDUCE = {"sum", "prod", "mean", "trace"}
OTHERS = {"outer"}


# -- rounding ----------------------------------------------------------------------


def rounded(x: Any, form: Format) -> Any:
    """Round floats to the nearest number of a format, ties to even, by their bits."""
    values = np.asarray(x)
    code, digits = CODES[values.dtype.name]
    dropped = digits + 1 - form.bits
    if dropped <= 0:
        return x
    codes = values.view(code)
    half = code((1 << (dropped - 1)) - 1) + ((codes >> code(dropped)) & code(1))
    near = ((codes + half) & ~code((1 << dropped) - 1)).view(values.dtype)
    size = abs(values)
    if (small := size < 2.0**form.lowest).any():  # all have the same last place
        last = form.lowest - form.bits + 1
        near = np.where(small, np.ldexp(np.rint(np.ldexp(values, -last)), last), near)
    if (large := abs(near) > form.largest).any():
        near = np.where(large, np.copysign(values.dtype.type(np.inf), values), near)
    if not (finite := np.isfinite(values)).all():
        near = np.where(finite, near, values)
    return near[()]


def is_float(x: Any) -> bool:
    """Return whether x is a float32 or float64 array or scalar of NumPy."""
    return isinstance(x, np.ndarray | np.floating) and x.dtype in (
        np.dtype(np.float32),
        np.dtype(np.float64),
    )


def arithmetic(
    name: str, function: partial[Any], args: list[Any], dtype: Any, form: Format
) -> Any:
    """Compute an operation in a format, to which constants are rounded, too."""
    if name == "mean":
        total = arithmetic(
            "sum", partial(np.sum, **function.keywords), args, dtype, form
        )
        count = np.size(args[0]) // np.size(total)
        return arithmetic("Div", partial(operator.truediv), [total, count], dtype, form)
    count = 1 if name in REDUCE else len(args)  # further arguments of these are axes
    numbers = [rounded(np.asarray(x, dtype), form) for x in args[:count]]
    if name == "sum" and numbers[0].ndim == 2 and function.keywords == {"axis": 0}:
        return sum_of_rows(numbers[0], form)
    return rounded(function(*numbers, *args[count:]), form)


def sum_of_rows(x: np.ndarray, form: Format) -> np.ndarray:
    """Sum over the first axis as NumPy does, which adds whole rows to each other."""
    total = x[0]
    for row in x[1:]:
        total = rounded(total + row, form)
    return total


def parts(x: Any, form: Format) -> list[Any]:
    """Split an operand of a product into components of a format, whose sum it is."""
    if not is_float(x):
        return [x]
    rest, found, scale = np.asarray(x, np.float32), [], np.float32(1)
    if form.scaled:
        largest = np.max(abs(rest), initial=0)
        if 0 < largest < np.inf:
            power = np.floor(np.log2(form.largest / np.float64(largest)))
            scale = np.float32(2.0**power)
    for _ in range(form.parts):
        found.append(rounded(rest * scale, form) / scale)
        rest = rest - found[-1]
    return found


def product(function: Callable[..., Any], args: list[Any], form: Format) -> Any:
    """Compute a product with operands in a format and sums in float32."""
    numbers = [i for i, x in enumerate(args) if is_float(x)]
    dtype = np.result_type(*(args[i] for i in numbers))
    split = {i: parts(args[i], form) for i in numbers}
    first, *others = numbers
    total: Any = 0
    for i, a in enumerate(split[first]):
        for j in range(form.parts if others else 1):
            if others and i + j >= form.orders:
                continue
            changed = list(args)
            changed[first] = a
            for other in others:
                changed[other] = split[other][j]
            total = total + function(*changed)
    return np.asarray(total).astype(dtype)[()]


# -- a program ---------------------------------------------------------------------


class _Wrap(ast.NodeTransformer):
    """Turn each operation into a call of `lowered` with its first line number."""

    def _call(self, node: ast.AST, method: str, *arguments: ast.expr) -> ast.Call:
        function = ast.Attribute(ast.Name("lowered", ast.Load()), method, ast.Load())
        line = ast.Constant(node.lineno)  # type: ignore[attr-defined]
        return ast.copy_location(ast.Call(function, [line, *arguments], []), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = type(node.op).__name__
        if name not in OPERATORS:
            return node
        return self._call(node, "operate", ast.Constant(name), node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.USub):
            return node
        return self._call(node, "operate", ast.Constant("USub"), node.operand)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op).__name__ not in OPERATORS:
            return node
        source = ast.unparse(node.target)
        now = ast.copy_location(ast.parse(source, mode="eval").body, node)
        for one in ast.walk(now):
            ast.copy_location(one, node)
        name = ast.Constant(type(node.op).__name__)
        value = self._call(node, "assign", name, now, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        call = self._call(
            node, "call", node.func.value, ast.Constant(node.func.attr), *node.args
        )
        call.keywords = node.keywords
        return call


class Lowered:
    """The operations that a wrapped program calls.

    Parameters
    ----------
    chosen : mapping of Place to str
        The name of the format of each place that is lowered.
    """

    def __init__(self, chosen: Mapping[Place, str]) -> None:
        self._chosen = chosen
        #: the places that computed floats, and the dtypes of their results
        self.seen: dict[Place, str] = {}

    def operate(self, line: int, name: str, *operands: Any) -> Any:
        return self._compute(line, name, OPERATORS[name], list(operands), {})

    def assign(self, line: int, name: str, target: Any, value: Any) -> Any:
        """Compute `target += value`; an array is changed in place."""
        result = self._compute(line, name, OPERATORS[name], [target, value], {})
        if isinstance(target, np.ndarray):
            target[...] = result
            return target
        return result

    def call(self, line: int, owner: Any, name: str, *args: Any, **options: Any) -> Any:
        """Compute `owner.name(...)`; lower functions of NumPy and methods of arrays."""
        function = getattr(owner, name)
        known = name in MULTIPLY or name in REDUCE or name in OTHERS
        if owner is np and (known or isinstance(function, np.ufunc)):
            return self._compute(line, name, function, list(args), options)
        if isinstance(owner, np.ndarray) and known:
            unbound = getattr(np.ndarray, name)
            return self._compute(line, name, unbound, [owner, *args], options)
        return function(*args, **options)

    def _compute(
        self,
        line: int,
        name: str,
        function: Callable[..., Any],
        args: list[Any],
        options: dict[str, Any],
    ) -> Any:
        place = line, PRODUCTS if name in MULTIPLY else ARITHMETIC
        function = partial(function, **options)
        result = function(*args)
        of_numpy = any(isinstance(x, np.ndarray | np.generic) for x in args)
        if not of_numpy or not is_float(result):
            return result
        self.seen[place] = result.dtype.name
        form = FORMATS.get(self._chosen.get(place, ""))
        if form is None:
            return result
        if place[1] == PRODUCTS:
            return product(function, args, form)
        return arithmetic(name, function, args, result.dtype, form)


@dataclass(frozen=True)
class Run:
    """A run of a program: its output, its failure or "", and the places that it saw."""

    printed: str
    failure: str
    seen: dict[Place, str]


class Program:
    """A program whose lines can be lowered.

    Parameters
    ----------
    source : str
        The program's source text.
    """

    def __init__(self, source: str) -> None:
        tree = ast.fix_missing_locations(_Wrap().visit(ast.parse(source)))
        self._code = compile(tree, "program", "exec")

    def run(self, chosen: Mapping[Place, str]) -> Run:
        """Run the program with these places lowered."""
        lowered, out = Lowered(chosen), io.StringIO()
        failure = ""
        options = np.get_printoptions()
        try:
            with contextlib.redirect_stdout(out), np.errstate(all="ignore"):
                exec(self._code, {"__name__": "__main__", "lowered": lowered})
        except Exception as error:  # raised by the program, as for a singular matrix
            failure = f"{type(error).__name__}: {error}"
        finally:
            np.set_printoptions(**options)
        return Run(out.getvalue(), failure, lowered.seen)


# -- what it printed ---------------------------------------------------------------

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w])", re.I)
ARRAY = re.compile(r"\[[^]]*\]")


def printed_numbers(text: str) -> list[np.ndarray]:
    """Return the numbers of a text: an array per pair of brackets, and single ones."""
    found, end = [], 0

    def single(part: str) -> list[np.ndarray]:
        return [np.array([float(x)]) for x in NUMBER.findall(part)]

    for match in ARRAY.finditer(text):
        found += single(text[end : match.start()])
        found.append(np.array([float(x) for x in NUMBER.findall(match[0])]))
        end = match.end()
    return found + single(text[end:])


def change(reference: str, other: str) -> float:
    """Return the largest change of a printed number relative to its array's largest.

    It is Inf if a changed array has Inf or NaN, or if the count of numbers differs.
    """
    before, after = printed_numbers(reference), printed_numbers(other)
    if [len(x) for x in before] != [len(x) for x in after]:
        return float("inf")
    worst = 0.0
    for x, y in zip(before, after, strict=True):
        error = float(np.max(abs(x - y), initial=0.0))
        if error != 0:
            scale = float(np.max(abs(x)))
            worst = max(worst, error / scale if scale else float("inf"))
            if not np.isfinite(y).all():
                return float("inf")
    return worst
