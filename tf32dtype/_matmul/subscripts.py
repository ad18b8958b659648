"""Parse subscripts of Einstein summation, and plan the steps for arrays of a shape."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from .._base.wording import brief

#: The letters, in the order of their numbers in the interleaved form.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: One label for each dimension of an array.
Labels = tuple[str, ...]
Shape = tuple[int, ...]

# -- subscripts --------------------------------------------------------------------


def parse(
    first: Any, others: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Labels, ...], Labels | None]:
    """Return the operands, their labels, and the result's labels if given."""
    if isinstance(first, str):
        labels, result = _read(first)
        if len(labels) != len(others):
            raise ValueError(
                f"subscripts must have one term for each of {len(others)} operands; got"
                f" {len(labels)} in {brief(first)}"
            )
    else:
        interleaved = (first, *others)
        paired = len(interleaved) // 2 * 2
        if paired == 0:
            raise TypeError(
                f"subscripts must be a string such as 'ij,jk->ik'; got {brief(first)}"
            )
        others = interleaved[0:paired:2]
        labels = tuple(_numbered(entries) for entries in interleaved[1:paired:2])
        result = _numbered(interleaved[-1]) if len(interleaved) > paired else None
    return others, labels, result


@lru_cache
def _read(subscripts: str) -> tuple[tuple[Labels, ...], Labels | None]:
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    labels = tuple(_letters(text, subscripts) for text in inputs.split(","))
    return labels, _letters(output, subscripts) if arrow else None


def _letters(text: str, subscripts: str) -> Labels:
    labels = tuple(re.findall(r"\.\.\.|.", text, re.DOTALL))
    for label in labels:
        if label != "..." and label not in LETTERS:
            raise ValueError(
                "subscripts must consist of letters, '...', ',' between operands and"
                f" one '->' before the result; got {label!r} in {brief(subscripts)}"
            )
    return labels


def _numbered(entries: Iterable[Any]) -> Labels:
    known = "subscripts in a list must be numbers from 0 to 51, or Ellipsis; got"
    try:
        numbers = [None if entry is Ellipsis else index(entry) for entry in entries]
    except TypeError as error:
        raise TypeError(f"{known} {brief(entries)}") from error
    for number in numbers:
        if number is not None and not 0 <= number < len(LETTERS):
            raise ValueError(f"{known} {number} in {brief(entries)}")
    return tuple("..." if number is None else LETTERS[number] for number in numbers)


def _named(
    labels: tuple[Labels, ...],
    output: Labels | None,
    shapes: tuple[Shape, ...],
) -> tuple[tuple[Labels, ...], Labels, dict[str, int]]:
    """Return the labels of all dimensions of operands and result, and their lengths."""
    names = tuple(
        _expand(given, len(shape), f"operand {number} of shape {shape}")
        for number, (given, shape) in enumerate(zip(labels, shapes, strict=True))
    )
    result = _result_labels(output, names)
    for given, shape in zip(names, shapes, strict=True):
        _check_diagonal(given, shape)
    return names, result, _lengths(names, shapes)


def _expand(names: Labels, ndim: int, what: str) -> Labels:
    """Return labels of `ndim` dimensions; "..." is labeled from its right end."""
    dots = names.count("...")
    extra = ndim - (len(names) - dots)
    if dots > 1:
        raise ValueError(
            f"subscripts of {what} must have at most one '...'; got '{''.join(names)}'"
        )
    if extra < 0 or (extra > 0 and dots == 0):
        raise ValueError(
            f"subscripts of {what} must have one letter for each of {ndim} dimensions;"
            f" got {len(names) - dots} in '{''.join(names)}'. Use '...' for dimensions"
            " without a letter"
        )
    at = names.index("...") if dots else 0
    others = tuple(f"...{i}" for i in range(-extra, 0))
    return names[:at] + others + names[at + dots :]


def _result_labels(names: Labels | None, operands: tuple[Labels, ...]) -> Labels:
    every = [label for labels in operands for label in labels]
    longest = len({label for label in every if label.startswith("...")})
    if names is None:
        letters = sorted(label for label in every if len(label) == 1)
        names = ("...", *(x for x in letters if letters.count(x) == 1))
    if longest and "..." not in names:
        raise ValueError(
            "subscripts of the result must have '...', as those of the operands do; got"
            f" '{''.join(names)}'"
        )
    ndim = len(names) - names.count("...") + longest
    result = _expand(names, ndim, "the result")
    for label in result:
        if result.count(label) > 1:
            raise ValueError(
                "subscripts of the result must not repeat a letter; got"
                f" {label!r} twice in '{''.join(names)}'"
            )
        if label not in every:
            raise ValueError(
                "subscripts of the result must be letters of the operands,"
                f" '{''.join(sorted(set(every)))}'; got {label!r} in"
                f" '{''.join(names)}'"
            )
    return result


def _check_diagonal(names: Labels, shape: Shape) -> None:
    for label in names if len({*names}) < len(names) else ():
        lengths = [n for name, n in zip(names, shape, strict=True) if name == label]
        if len({*lengths}) > 1:
            raise ValueError(
                f"dimensions of a diagonal {label!r} must have equal lengths; got"
                f" {lengths} in an operand of shape {shape}"
            )


def _lengths(operands: tuple[Labels, ...], shapes: tuple[Shape, ...]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for number, (names, shape) in enumerate(zip(operands, shapes, strict=True)):
        for label, length in zip(names, shape, strict=True):
            known = lengths.setdefault(label, length)
            if known == 1:
                lengths[label] = length
            elif length not in (1, known):
                raise ValueError(
                    f"dimensions {label!r} must have equal lengths, or length 1; got"
                    f" {length} in operand {number} and {known} before"
                )
    return lengths


# -- plans -------------------------------------------------------------------------


class _Term(NamedTuple):
    """An array of a plan: its place among them, operands first, and its labels."""

    place: int
    names: Labels
    shape: Shape


class View(NamedTuple):
    """The changes to one array, in the order of the fields; None and () change nothing.

    `place` is the index of the array: the operands first, then the result of each step.
    """

    place: int
    axes: tuple[int, ...] = ()  # summed
    order: tuple[int, ...] | None = None  # of the others
    whole: Shape | None = None  # broadcast
    shape: Shape | None = None


class Product(NamedTuple):
    """The product of two stacks of matrices, by matmul if an axis is summed."""

    first: View
    second: View
    summed: bool
    shape: Shape


class Plan(NamedTuple):
    """Steps that make an array each; the last makes the result."""

    diagonals: tuple[tuple[tuple[int, ...], ...] | None, ...]  # axes of each label
    steps: tuple[View | Product, ...]
    shape: Shape

    @property
    def roundings(self) -> int:
        """The number of sums and products, each of which rounds."""
        products = [step for step in self.steps if isinstance(step, Product)]
        views = [x for x in self.steps if isinstance(x, View)]
        views += [x for step in products for x in step[:2]]
        return len(products) + sum(bool(view.axes) for view in views)


def plan_for(
    labels: tuple[Labels, ...],
    output: Labels | None,
    shapes: tuple[Shape, ...],
    optimize: bool | Sequence[Any],
) -> Plan:
    if isinstance(optimize, bool | str):
        return _known_plan(labels, output, shapes, optimize)
    return _new_plan(labels, output, shapes, optimize)


def _new_plan(
    labels: tuple[Labels, ...],
    output: Labels | None,
    shapes: tuple[Shape, ...],
    optimize: bool | Sequence[Any],
) -> Plan:
    every, result, lengths = _named(labels, output, shapes)
    path = _path(every, shapes, result, optimize)
    diagonals, terms = [], []
    for place, (names, shape) in enumerate(zip(every, shapes, strict=True)):
        different = tuple(dict.fromkeys(names))
        axes = tuple(
            tuple(i for i, name in enumerate(names) if name == x) for x in different
        )
        diagonals.append(axes if len(different) < len(names) else None)
        terms.append(_Term(place, different, tuple(shape[i] for i, *_ in axes)))
    steps = _steps(terms, result, path)
    return Plan(tuple(diagonals), steps, tuple(lengths[x] for x in result))


_known_plan = lru_cache(maxsize=512, typed=True)(_new_plan)


def _path(
    every: tuple[Labels, ...],
    shapes: tuple[Shape, ...],
    result: Labels,
    optimize: bool | Sequence[Any],
) -> list[Any]:
    """Return the positions of the operands that each step replaces by their product."""
    match optimize:
        case ["einsum_path", *steps]:
            return steps
        case False:
            return [range(len(every))]
        case True | "greedy" | "optimal" | ["greedy" | "optimal", int() | float()]:
            if len(every) < 3:
                return [range(len(every))]
            labels = list(dict.fromkeys(label for names in every for label in names))
            arguments: list[Any] = []
            for names, shape in zip(every, shapes, strict=True):
                stand_in = np.broadcast_to(np.float32(0), shape)
                arguments += [stand_in, [labels.index(label) for label in names]]
            arguments.append([labels.index(label) for label in result])
            path: list[Any] = np.einsum_path(*arguments, optimize=optimize)[0]
            return path[1:]
    raise ValueError(
        "optimize must be False, True, 'greedy', 'optimal', a pair of one of these"
        f" names and a number, or ['einsum_path', (0, 1), ...]; got {brief(optimize)}"
    )


def _steps(
    terms: list[_Term], result: Labels, path: list[Any]
) -> tuple[View | Product, ...]:
    steps: list[View | Product] = []
    made = len(terms)  # the index of the array that the next step makes

    def add(step: View | Product, names: Labels, shape: Shape) -> _Term:
        steps.append(step)
        return _Term(made + len(steps) - 1, names, shape)

    for chosen_places in path:
        left = range(len(terms))
        if not (
            isinstance(chosen_places, Collection)
            and chosen_places
            and {*chosen_places} <= {*left}
        ):
            raise ValueError(
                "each step in the path of optimize must hold positions of operands, 0"
                f" to {len(terms) - 1} here; got {brief(chosen_places)}"
            )
        chosen = [terms[i] for i in left if i in chosen_places]
        terms = [terms[i] for i in left if i not in chosen_places]
        while len(chosen) > 1:
            first, second, *others = chosen
            needed = {*result}.union(*(term.names for term in others + terms))
            chosen = [add(*_product(first, second, needed)), *others]
        needed = {*result}.union(*(term.names for term in terms))
        summed, names, shape = _without(chosen[0], needed)
        terms.append(add(summed, names, shape) if summed.axes else chosen[0])
    if len(terms) > 1:
        raise ValueError(
            f"the path of optimize must leave one operand; got {len(terms)}"
        )
    last, names, _ = _without(terms[0], {*result})
    steps.append(last._replace(order=_order(names, result)))
    return tuple(steps)


def _order(names: Labels, wanted: Labels) -> tuple[int, ...] | None:
    return None if names == wanted else tuple(names.index(x) for x in wanted)


def _without(term: _Term, needed: Collection[str]) -> tuple[View, Labels, Shape]:
    """Sum over the labels that are not needed, and return the remaining array."""
    axes = tuple(i for i, name in enumerate(term.names) if name not in needed)
    left = [i for i in range(len(term.names)) if i not in axes]
    names = tuple(term.names[i] for i in left)
    return View(term.place, axes), names, tuple(term.shape[i] for i in left)


def _product(
    left: _Term, right: _Term, needed: set[str]
) -> tuple[Product, Labels, Shape]:
    """Return one product of two stacks of matrices."""
    a, names_a, shape_a = _without(left, needed.union(right.names))
    b, names_b, shape_b = _without(right, needed.union(left.names))
    stack = tuple(x for x in names_a if x in names_b and x in needed)
    summed = tuple(x for x in names_a if x in names_b and x not in needed)
    rows = tuple(x for x in names_a if x not in names_b)
    columns = tuple(x for x in names_b if x not in names_a)
    long_a = dict(zip(names_a, shape_a, strict=True))
    long_b = dict(zip(names_b, shape_b, strict=True))
    above_a, above_b = (tuple(x[i] for i in stack) for x in (long_a, long_b))
    m, n = tuple(long_a[x] for x in rows), tuple(long_b[x] for x in columns)
    k_a, k_b = (tuple(x[i] for i in summed) for x in (long_a, long_b))
    k = np.broadcast_shapes(k_a, k_b)
    first = a._replace(
        order=_order(names_a, stack + rows + summed),
        whole=None if k == k_a else above_a + m + k,
        shape=(*above_a, math.prod(m), math.prod(k)),
    )
    second = b._replace(
        order=_order(names_b, stack + summed + columns),
        whole=None if k == k_b else above_b + k + n,
        shape=(*above_b, math.prod(k), math.prod(n)),
    )
    above = np.broadcast_shapes(above_a, above_b)
    product = Product(first, second, bool(summed), above + m + n)
    return product, stack + rows + columns, above + m + n
