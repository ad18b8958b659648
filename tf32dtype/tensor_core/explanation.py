"""One element of a product on a tensor core, step by step, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._formats.quantize import Tf32Rounding
from .._formats.typed import DTypeOf
from .._wording import brief
from . import side_by_side
from .device import DeviceName
from .integer_model import Addition, Exact, Group, Step, Term, steps
from .models import VERIFIED, Accumulator, Aligned, Instruction, Model
from .products import as_accumulators, as_operand, resolve
from .rounded import Rounded
from .rounded_steps import rounded_steps
from .side_by_side import Course

#: With more MMA groups than these, each is a line.
IN_FULL = 8


def explain(
    a_row: ArrayLike,
    b_col: ArrayLike,
    c: ArrayLike | None = 0,
    *,
    device: DeviceName | Model | Sequence[DeviceName | Model],
    instruction: Instruction | None = None,
    accumulator: DTypeOf[np.float16 | np.float32] | Accumulator = np.float32,
    rounding: Tf32Rounding | None = None,
    promote_every: int | None = None,
) -> str:
    """Tell how one element of `matmul` comes about: MMA group by MMA group.

    Parameters
    ----------
    a_row, b_col : array_like
        A row of `a` and a column of `b`: vectors of length k, of dtypes that `matmul`
        takes.
    c : number
        What the accumulator begins with: Python's, or of the accumulator's dtype. None
        is +0.
    device : str, Model, or a sequence of these
        As for `matmul`, or a row of `MODELS`, which names an instruction too. Of two or
        more it tells where they part.
    instruction, accumulator, rounding, promote_every
        As for `matmul`.

    Returns
    -------
    str
        Lines of up to 88 characters (more where k is 10000 or above): the model; for
        each group the greatest exponent and what has it, every product that is not
        zero, what of it is kept and what is cut, their exact sum, its rounding, and the
        accumulator after it; additions between the groups; in the last line the result,
        its bits first. If there are more than 8 groups, each is one line. Of several
        devices: all of that for the first k after which their accumulators differ; then
        the accumulators side by side, where those that are equal are one line.

    Raises
    ------
    TypeError, ValueError
        As `matmul` does, for operands that are no vectors, and for a sequence of fewer
        than two devices.

    See Also
    --------
    identify : Which models agree with given results.

    Notes
    -----
    A number such as -0x3.8p-12 is exact, in hexadecimal, as `float.fromhex` reads it.
    In the column "exactly" the power of two is that of the product's two exponents; its
    significand is not normalised and is below 4. What is kept counts the group's unit,
    which lies F bits below the greatest exponent. All is computed in Python's integers,
    and nothing by `matmul`.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x, y = np.float16([1.5, 2**-12, -1]), np.float16([1, 2**-12, 0.75])
    >>> print(td.tensor_core.explain(x, y, device="V100"))
    V100 mma.sync float16 -> float32
      MMA group    4 products (K) and the accumulator in one sum
      alignment    to the greatest exponent
      kept         23 bits (F) below it; the rest is cut off
      sum          rounded toward zero to 23 fraction bits
      instruction  4 k; the last one is filled up with 1 zero
      verified     recorded: equal to results that were recorded on the device
    <BLANKLINE>
    c = 0x00000000  0.0
    <BLANKLINE>
    k 0-2
      greatest exponent 0, of k 0
       k           a           b       a * b          exactly      * 2^-23  cut
       0         1.5           1         1.5         0x1.8p+0     0xC00000
       1  0.00024414  0.00024414  5.9605e-08          0x1p-24          0x0  0x1p-24
       2          -1        0.75       -0.75        -0x1.8p-1    -0x600000
       c                                   0
     sum                                0.75                      0x600000
      rounded toward zero: exact
      accumulator 0x3F400000  0.75
    <BLANKLINE>
    = 0x3F400000  0.75
    """
    courses = []
    for one in _devices(device):
        named, which = one, instruction
        if isinstance(one, Model):
            named, which = one.device, one.instruction
        model, x, y, promote = resolve(
            a_row, b_col, named, which, accumulator, rounding, promote_every
        )
        if x.ndim != 1 or x.shape != y.shape:
            raise ValueError(
                "a_row and b_col are vectors of one length, not of shapes"
                f" {x.shape} and {y.shape}"
            )
        if model.accumulator == "float64":
            raise ValueError(f"{model.name} is not told step by step")
        start = as_accumulators(c, model, ())[()]
        with np.errstate(invalid="ignore"):  # signalling NaNs
            a, b = (v.astype(np.float64).tolist() for v in (x, y))
            courses.append(_course(model, a, b, start, promote or None))
    read = [
        *_operand("a_row", as_operand(a_row, "a_row"), a, rounding),
        *_operand("b_col", as_operand(b_col, "b_col"), b, rounding),
        "",
        f"c = {_number(start)}",
        "",
    ]
    if len(courses) > 1:
        return "\n".join(_side_by_side(courses, a, b, read, promote_every))
    (course,) = courses
    lines = [*_header(course.model, len(a), promote_every), *read]
    if not a:
        lines.append("k is 0: no instruction runs")
    lines += _told(course.model, course.steps, a, b)
    return "\n".join([*lines, "", f"= {_result(course, len(a))}"])


def _course(
    model: Model,
    a: Sequence[float],
    b: Sequence[float],
    start: Any,
    promote_every: int | None,
) -> Course:
    """What a model does to the element."""
    compute: Any = rounded_steps if isinstance(model, Rounded) else steps
    found = list(compute(model, a, b, float(start), promote_every))
    return Course.of(model, found, start, len(a), promote_every)


def _result(course: Course, k: int) -> str:
    last = course.after[k]
    return _shown(course.model, float(last)) if k else _number(last)


def _header(model: Model, k: int, promote_every: int | None) -> Iterator[str]:
    """What the model does with products."""
    if isinstance(model, Rounded):
        from . import rounded_explanation  # here: it has words and numbers of this one

        return rounded_explanation.header(model, k, promote_every)
    assert isinstance(model, Aligned)
    return _aligned_header(model, k, promote_every)


def _told(
    model: Model, found: Sequence[Any], a: Sequence[float], b: Sequence[float]
) -> Iterator[str]:
    """The steps: in full if there are few groups, else a line for each."""
    if isinstance(model, Rounded):
        from . import rounded_explanation

        yield from rounded_explanation.told(model, found, a, b)
        return
    assert isinstance(model, Aligned)
    if sum(isinstance(step, Group) for step in found) > IN_FULL:
        yield from _in_lines(model, found)
        return
    for number, step in enumerate(found):
        yield from [""] * (number > 0)
        yield from _in_full(model, step, a, b)


# -- several devices -------------------------------------------------------------------


def _devices(device: Any) -> Sequence[Any]:
    if isinstance(device, str) or not isinstance(device, Sequence):
        return [device]
    if len(device) < 2:
        raise ValueError(
            f"device={brief(device)}: a sequence is of two or more; name one without it"
        )
    return device


def _side_by_side(
    courses: Sequence[Course],
    a: Sequence[float],
    b: Sequence[float],
    read: Sequence[str],
    promote_every: int | None,
) -> Iterator[str]:
    for number, course in enumerate(courses, 1):
        first, *rest = _header(course.model, len(a), promote_every)
        yield f"({number}) {first}"
        yield from rest
    yield from read
    found = side_by_side.blocks(courses)
    where = side_by_side.parting(found)
    if where is None:
        yield "Their accumulators are equal after all k"
        yield ""
    else:
        yield f"They part at k {where.first}-{where.last - 1}"
        yield ""
        for course in courses:
            yield f"{course.name}, from {_number(course.after[where.first])}"
            yield ""
            between = course.between(where.first, where.last)
            yield from _told(course.model, between, a, b)
            yield ""
    if found:
        yield from side_by_side.table(courses, found)
        yield ""
    for course in courses:
        yield f"= {_result(course, len(a))}  {course.name}"


# -- the model -------------------------------------------------------------------------


def _aligned_header(model: Aligned, k: int, promote_every: int | None) -> Iterator[str]:
    yield model.name
    yield f"  MMA group    {model.depth} products (K) and the accumulator in one sum"
    floor = "" if model.floor is None else f", {model.floor} at least"
    yield f"  alignment    to the greatest exponent{floor}"
    yield f"  kept         {model.fraction} bits (F) below it; the rest is cut off"
    nearest = model.rounding == "ties_to_even"
    direction = "to nearest, ties to even," if nearest else "toward zero"
    yield f"  sum          rounded {direction} to {model.kept} fraction bits"
    if model.cut_first is not None:
        yield f"               cut to {model.cut_first} fraction bits before that"
    zeros = -k % model.instruction_depth
    filled = f"; the last one is filled up with {_count(zeros, 'zero')}" * bool(zeros)
    yield f"  instruction  {model.instruction_depth} k{filled}"
    if model.emulated:
        yield "               two groups of float16, the first from 0; their sum t is"
        yield "               added to the accumulator, to nearest, ties to even"
    if promote_every is not None:
        yield f"  promotion    sums of {promote_every} k, from 0, are added in float32"
    yield f"  verified     {model.verified}: {VERIFIED[model.verified]}"


def _operand(
    name: str, given: NDArray[Any], read: list[float], rounding: Tf32Rounding | None
) -> Iterator[str]:
    """What became of a float32 operand."""
    if given.dtype != np.float32:
        return
    with np.errstate(invalid="ignore"):
        before = given.astype(np.float64)
    same = (before == read) | (np.isnan(before) & np.isnan(read))
    changed = _count(len(read) - int(np.count_nonzero(same)), "number")
    how = "without the low 13 bits" if rounding is None else f"rounded {rounding}"
    yield f"  {name:<11}  float32 {how}: {changed} changed"


# -- steps in full ---------------------------------------------------------------------

_WIDTHS = (4, 11, 11, 11, 16, 12)


def _in_full(
    model: Aligned, step: Step, a: Sequence[float], b: Sequence[float]
) -> Iterator[str]:
    if isinstance(step, Addition):
        name = "sum" if step.promotes else "t"
        yield f"k {_ranges(step.ks)}: {name} is added to the accumulator"
        left, right = (_decimal(model, x) for x in (step.accumulator, step.sum))
        yield f"  {left} + {right}"
    elif step.special:
        yield f"{_title(step)}: Inf or NaN"
        yield from (f"  {reason}" for reason in step.special)
    else:
        yield from _terms(step, a, b)
    if math.isfinite(step.result) or step.rounded.overflow:
        yield f"  {_rounding(model, step)}"
    yield f"  accumulator {_shown(model, step.result)}"


def _terms(group: Group, a: Sequence[float], b: Sequence[float]) -> Iterator[str]:
    c, *products = group.terms
    there = [term for term in products if term.exact.magnitude]
    if not there and not c.exact.magnitude:
        yield f"{_title(group)}: all is zero"
        return
    yield _title(group)
    yield f"  greatest exponent {group.greatest}, of {_some(group.sources, 4)}"
    yield _row("k", "a", "b", "a * b", "exactly", f"* 2^{group.unit}", "cut")
    for term in there:
        assert term.k is not None
        x, y = a[term.k], b[term.k]
        yield _row(str(term.k), f"{x:.5g}", f"{y:.5g}", *_columns(term))
    yield _row("c", "", "", *_columns(c))
    total = f"{_value(_total(group)):.5g}"
    yield _row("sum", "", "", total, "", _units(group.total))
    if len(there) < len(products):
        zeros = [t.k for t in products if t.k is not None and not t.exact.magnitude]
        yield f"  zero: k {_ranges(zeros)}"


def _columns(term: Term) -> tuple[str, ...]:
    if not term.exact.magnitude:
        return ("0",)
    cut = _hex(term.cut) if term.cut.magnitude else ""
    exactly = _hex(term.exact, term.exponent)
    return f"{_value(term.exact):.5g}", exactly, _units(term.kept), cut


def _row(*cells: str) -> str:
    """All flush right but for what is cut."""
    aligned = [cell.rjust(n) for cell, n in zip(cells, _WIDTHS, strict=False)]
    return "  ".join([" ".join(aligned), *cells[len(_WIDTHS) :]]).rstrip()


def _rounding(model: Aligned, step: Step) -> str:
    rounded = step.rounded
    nearest = isinstance(step, Addition) or model.rounding == "ties_to_even"
    direction = "to nearest" if nearest else "toward zero"
    if rounded.tie:
        direction += ", a tie to even"
    if rounded.overflow:
        what = "beyond the range"
    elif rounded.off.magnitude:
        what = f"{_hex(rounded.off)} is {'added' if rounded.up else 'cut off'}"
    else:
        what = "exact"
    return f"rounded {direction}: {what}"


# -- a line for each step --------------------------------------------------------------

_LINE = (9, 4, 7, 3, 15, 16)


def _in_lines(model: Aligned, found: Sequence[Step]) -> Iterator[str]:
    yield _line("k", "exp", "of", "cut", "sum", "rounding") + "  accumulator"
    for step in found:
        yield f"{_cells(step)}  {_shown(model, step.result)}"
    yield ""
    yield "exp: the greatest exponent; of: what has it; cut: how many terms lost bits;"
    yield "rounding: the accumulator minus the sum"
    if any(isinstance(step, Addition) for step in found):
        yield "+: an addition to the accumulator, to nearest, ties to even"
    yield "In full: explain one instruction's k, with the accumulator before it as c"


def _cells(step: Step) -> str:
    ks = _span(step.ks)
    off = step.rounded.off
    change = off._replace(negative=off.negative != (not step.rounded.up))
    rounding = _hex(change) if off.magnitude else ""
    if isinstance(step, Addition):
        total = step.sum + step.accumulator
        return _line(f"+{ks}", "", "", "", f"{total:.9g}", rounding)
    if step.special:
        return f"{ks:>9} {_some(step.special, 1):<49}"
    return _line(
        ks,
        "" if step.greatest is None else str(step.greatest),
        next(iter(step.sources), "").removeprefix("the "),
        str(sum(term.cut.magnitude != 0 for term in step.terms) or ""),
        f"{_value(_total(step)):.9g}",
        rounding,
    )


def _line(*cells: str) -> str:
    return " ".join(cell.rjust(n) for cell, n in zip(cells, _LINE, strict=True))


# -- words and numbers -----------------------------------------------------------------


def _title(group: Group) -> str:
    return f"k {_ranges(group.ks)}" if group.ks else "no k"


def _span(ks: Sequence[int]) -> str:
    return f"{ks[0]}-{ks[-1]}" if ks else "-"


def _ranges(ks: Sequence[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"."""
    starts = [k for k in ks if k - 1 not in ks]
    ends = [k for k in ks if k + 1 not in ks]
    both = zip(starts, ends, strict=True)
    return ", ".join(str(i) if i == j else f"{i}-{j}" for i, j in both)


def _some(words: Sequence[str], most: int) -> str:
    rest = len(words) - most
    return ", ".join(words[:most]) + f" and {rest} more" * (rest > 0)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _total(group: Group) -> Exact:
    return Exact(group.total < 0, abs(group.total), group.unit)


def _value(x: Exact) -> float:
    value = math.ldexp(x.magnitude, x.unit)
    return -value if x.negative else value


def _hex(x: Exact, exponent: int | None = None) -> str:
    """As `float.hex`, with a significand below 2 or of the given exponent."""
    if exponent is None:
        exponent = x.magnitude.bit_length() - 1 + x.unit
    bits = exponent - x.unit
    whole, fraction = divmod(x.magnitude << -bits % 4, 1 << bits + -bits % 4)
    digits = f"{fraction:0{(bits + 3) // 4}X}".rstrip("0") if fraction else ""
    point = f".{digits}" * bool(digits)
    return f"{'-' * x.negative}0x{whole:X}{point}p{exponent:+d}"


def _units(n: int) -> str:
    return f"{'-' * (n < 0)}0x{abs(n):X}"


def _decimal(model: Model, value: float) -> str:
    with np.errstate(invalid="ignore"):
        return str(np.dtype(model.accumulator).type(value))


def _shown(model: Model, value: float) -> str:
    """Bits and value of an accumulator; a NaN is the unit's."""
    if math.isnan(value):
        return f"{'0x7FFF' if model.accumulator == 'float16' else '0x7FFFFFFF'}  nan"
    return _number(np.dtype(model.accumulator).type(value))


def _number(x: Any) -> str:
    size = x.dtype.itemsize
    return f"0x{int(x.view(f'u{size}')):0{2 * size}X}  {x!s}"
