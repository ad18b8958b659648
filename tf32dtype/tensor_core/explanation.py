"""One element of a product on a tensor core, step by step, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.wording import brief
from .._formats.quantize import Tf32Rounding
from .._formats.typed import DTypeOf
from . import aligned_explanation, rounded_explanation, side_by_side
from .cpu_units import CpuUnit
from .device import DeviceName
from .explanation_words import bits_and_value, count, shown
from .models import Accumulator, Instruction, Model
from .products import accumulator_name, as_accumulators, as_operand, resolve
from .rounded import Rounded
from .side_by_side import Course
from .steps import steps


def explain(
    a_row: ArrayLike,
    b_col: ArrayLike,
    c: ArrayLike | None = 0,
    *,
    device: DeviceName | Model | Sequence[DeviceName | Model],
    instruction: Instruction | None = None,
    accumulator: DTypeOf[np.float16 | np.float32 | np.float64]
    | Accumulator
    | None = None,
    rounding: Tf32Rounding | None = None,
    promote_every: int | None = None,
) -> str:
    """Explain how one element of `matmul` is computed, MMA group by MMA group.

    Parameters
    ----------
    a_row, b_col : array_like
        A row of `a` and a column of `b`: vectors of length k, of dtypes that `matmul`
        takes. Arrays of blocks are not supported.
    c : number
        The initial value of the accumulator: a Python number, or a number of the
        accumulator's dtype. None means +0.
    device : str, Model, or a sequence of these
        As for `matmul`; or a row of `MODELS`, such as `identify` finds, which also
        names an instruction and an accumulator. For two or more devices, the result
        shows where their accumulators differ.
    instruction, accumulator, rounding, promote_every
        As for `matmul`.

    Returns
    -------
    str
        Lines of up to 88 characters (more if k is 10000 or above). First comes the
        model. For each group follow the largest exponent and its terms, every product
        that is not zero, the part that is kept and the part that is truncated, their
        exact sum, its rounding, and the accumulator after it. If there are more than 8
        groups, each group is one line. Additions between groups follow. The last line
        has the result, its bits first.

        With several devices, these lines describe the first k after which their
        accumulators differ. A table of the accumulators side by side follows; equal
        ones share a line.

    Raises
    ------
    TypeError, ValueError
        As `matmul` does. Also for operands that are not vectors, and for a sequence of
        fewer than two devices.

    See Also
    --------
    identify : Find the models that agree with given results.

    Notes
    -----
    A number such as -0x3.8p-12 is exact and hexadecimal, as `float.fromhex` reads it.
    In the column "exactly", the power of two has the sum of the operands' exponents.
    The significand is not normalized and is below 4. The part that is kept is in units
    of the group, which are F bits below the largest exponent. The steps come from the C
    code that the loops of `matmul` are tested against. See
    :doc:`/how_to/explain_differences`.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x, y = np.float16([1.5, 2**-12, -1]), np.float16([1, 2**-12, 0.75])
    >>> print(td.tensor_core.explain(x, y, device="V100"))
    V100 mma.sync float16 -> float32
      MMA group    4 products (K) and the accumulator in one sum
      alignment    to the largest exponent
      kept         23 bits (F) below it; the rest is truncated
      sum          rounded toward zero to 23 fraction bits
      instruction  4 k; the last one is filled up with 1 zero
      verified     recorded: equal to results that were recorded on the device
    <BLANKLINE>
    c = 0x00000000  0.0
    <BLANKLINE>
    k 0-2
      largest exponent 0, of k 0
       k           a           b       a * b          exactly      * 2^-23  truncated
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
        sums: Any = accumulator
        if isinstance(one, CpuUnit):
            raise ValueError(
                f"device must be a device or one of MODELS; got {one.title}, the unit"
                " of a CPU library, which has no steps to explain"
            )
        if isinstance(one, Model):
            named, which = one.device, one.instruction
            sums = _of_model(one, accumulator)
            if instruction not in (None, which):
                raise ValueError(
                    f"instruction must be {which!r}, the instruction of the model given"
                    f" as device; got {brief(instruction)}"
                )
        model, x, y, promote = resolve(
            a_row, b_col, named, which, sums, rounding, promote_every
        )
        if isinstance(one, Model) and model != one:
            raise ValueError(
                f"device must be a model that multiplies {x.dtype} x {y.dtype}; got"
                f" {one.name}"
            )
        if x.ndim != 1 or x.shape != y.shape:
            raise ValueError(
                "a_row and b_col must be vectors of the same length; got shapes"
                f" {x.shape} and {y.shape}"
            )
        start = as_accumulators(c, model, ())[()]
        with np.errstate(invalid="ignore"):  # signaling NaNs
            courses.append(_course(model, x, y, start, promote or None))
    kinds = {course.model.accumulator for course in courses}
    if len(kinds) > 1:
        raise ValueError(
            "device must be models with the same accumulator; got"
            f" {', '.join(sorted(kinds))}"
        )
    given = {"a_row": as_operand(a_row, "a_row"), "b_col": as_operand(b_col, "b_col")}
    headers = [[*_header(one, given, rounding, promote_every)] for one in courses]
    begins = ["", f"c = {bits_and_value(start)}", ""]
    if len(courses) > 1:
        return "\n".join(_side_by_side(courses, headers, begins))
    (course,) = courses
    lines = [*headers[0], *begins]
    if not course.a:
        lines.append("k is 0: no instruction runs")
    lines += _told(course, course.steps)
    return "\n".join([*lines, "", f"= {_result(course)}"])


def _of_model(model: Model, accumulator: Any) -> str:
    """Return the accumulator of a row of MODELS; the argument must agree with it."""
    if accumulator_name(accumulator, model.accumulator) != model.accumulator:
        raise ValueError(
            f"accumulator must be {model.accumulator}, the accumulator of the model"
            f" given as device; got {brief(accumulator)}"
        )
    return model.accumulator


def _course(
    model: Model, x: NDArray[Any], y: NDArray[Any], start: Any, every: int | None
) -> Course:
    """Return the steps by which a model computes the element."""
    a, b = (v.astype(np.float64).tolist() for v in (x, y))
    found = list(steps(model, a, b, float(start), every))
    return Course.of(model, a, b, found, start, every)


def _result(course: Course) -> str:
    last = course.after[len(course.a)]
    return shown(course.model, float(last)) if course.a else bits_and_value(last)


def _text_of(model: Model) -> Any:
    """Return the module that tells a model's steps."""
    return rounded_explanation if isinstance(model, Rounded) else aligned_explanation


def _told(course: Course, some: Sequence[Any]) -> Iterator[str]:
    """Some of its steps."""
    model = course.model
    told: Iterator[str] = _text_of(model).told(model, some, course.a, course.b)
    return told


def _header(
    course: Course,
    given: Mapping[str, NDArray[Any]],
    rounding: Tf32Rounding | None,
    promote_every: int | None,
) -> Iterator[str]:
    """Yield the model, and what became of float32 operands that it reads as tf32."""
    model = course.model
    yield from _text_of(model).header(model, len(course.a), promote_every)
    if model.a == "tf32":
        for (name, operand), read in zip(
            given.items(), (course.a, course.b), strict=True
        ):
            yield from _operand(name, operand, read, rounding)


# -- several devices -------------------------------------------------------------------


def _devices(device: Any) -> Sequence[Any]:
    if isinstance(device, str) or not isinstance(device, Sequence):
        return [device]
    if len(device) < 2:
        raise ValueError(
            "device must be one device or a sequence of at least two; got"
            f" {brief(device)}"
        )
    return device


def _side_by_side(
    courses: Sequence[Course], headers: Sequence[Sequence[str]], begins: Sequence[str]
) -> Iterator[str]:
    for number, (first, *rest) in enumerate(headers, 1):
        yield f"({number}) {first}"
        yield from rest
    yield from begins
    found = side_by_side.blocks(courses)
    where = side_by_side.parting(found)
    if where is None:
        yield "The accumulators are equal after all k"
        yield ""
    else:
        yield f"The accumulators differ at k {where.first}-{where.last - 1}"
        yield ""
        for course in courses:
            yield f"{course.name}, from {bits_and_value(course.after[where.first])}"
            yield ""
            yield from _told(course, course.between(where.first, where.last))
            yield ""
    if found:
        yield from side_by_side.table(courses, found)
        yield ""
    for course in courses:
        yield f"= {_result(course)}  {course.name}"


# -- operands --------------------------------------------------------------------------


def _operand(
    name: str,
    given: NDArray[Any],
    read: Sequence[float],
    rounding: Tf32Rounding | None,
) -> Iterator[str]:
    """Yield a line on how a float32 operand was rounded."""
    if given.dtype != np.float32:
        return
    with np.errstate(invalid="ignore"):
        before = given.astype(np.float64)
    same = (before == read) | (np.isnan(before) & np.isnan(read))
    changed = count(len(read) - int(np.count_nonzero(same)), "number")
    how = "without the low 13 bits" if rounding is None else f"rounded {rounding}"
    yield f"  {name:<11}  float32 {how}: {changed} changed"
