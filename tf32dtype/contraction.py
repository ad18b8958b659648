"""Einstein summation: one np.matmul for each pair of operands."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from operator import index
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .format import as_own, find_dtype
from .wording import brief

#: In the order of the numbers that stand for them in the interleaved form.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: An array and a label for each of its dimensions.
Term = tuple[Any, list[str]]


class Functions(Protocol):
    """What arrays are contracted with, of whatever kind they are."""

    def asarray(self, x: Any) -> Any: ...
    def as_strided(
        self, x: Any, shape: Sequence[int], strides: Sequence[int]
    ) -> Any: ...
    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any: ...
    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any: ...
    def cast(self, x: Any, dtype: np.dtype[Any]) -> Any: ...
    def sum(self, x: Any, axis: tuple[int, ...], dtype: np.dtype[Any]) -> Any: ...
    def matmul(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any: ...
    def multiply(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any: ...
    def is_array(self, x: Any) -> bool: ...
    def copyto(self, out: Any, x: Any) -> None: ...


class _NumPy:
    """NumPy's."""

    as_strided = staticmethod(np.lib.stride_tricks.as_strided)
    broadcast_to = staticmethod(np.broadcast_to)

    def asarray(self, x: Any) -> Any:
        return as_own(np.asarray(x))

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.reshape(x, shape)

    def cast(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return x.astype(dtype, copy=False)

    def sum(self, x: Any, axis: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return np.asarray(np.sum(x, axis=axis, dtype=dtype))

    def matmul(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return np.matmul(x, y, dtype=dtype)

    def multiply(self, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        return np.multiply(x, y, dtype=dtype)

    def is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def copyto(self, out: Any, x: Any) -> None:
        np.copyto(out, x, casting="same_kind")


_NUMPY = _NumPy()


def einsum(
    subscripts: ArrayLike,
    *operands: Any,
    out: NDArray[Any] | None = None,
    dtype: DTypeLike | None = None,
    optimize: bool | Sequence[Any] = "greedy",
) -> Any:
    """Sum products of arrays over the letters that the result does not have.

    What `numpy.einsum` computes, for the formats of this package too, with
    `numpy.matmul` for the products that are summed.

    Parameters
    ----------
    subscripts : str
        One letter for each dimension of each operand, ``...`` for any number of
        further ones, ``,`` between operands, and ``->`` before the letters of the
        result. Without ``->`` the result has the dimensions of ``...`` and then, in
        alphabetic order, the letters that occur once. Spaces do not matter.
    *operands : array_like
        As many arrays as the subscripts name. A letter has one length in all of
        them; a length of 1 is repeated as often as needed. Also possible are
        operands with lists of the numbers 0 to 51 and Ellipsis in place of letters:
        ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
    out : ndarray, optional
        An array of the result's shape to write into; the result is converted to its
        dtype, by casting "same_kind".
    dtype : data-type, optional
        Of every sum and product, and so of the result, by casting "same_kind". If it
        is not given: `numpy.result_type` of the operands, where Python's numbers and
        lists count as the arrays that `numpy.asarray` makes of them.
    optimize : {"greedy", "optimal", True, False} or list or tuple
        The order of products of three operands and more, as `numpy.einsum_path`
        chooses it (True is "greedy"); False is from left to right. Also possible are
        a path that it returned, and a name with a limit of elements in between,
        beyond which it leaves what is left together: that goes from left to right.

    Returns
    -------
    ndarray or scalar
        `out` if given. A view of the operand where there is one and nothing to sum.

    Raises
    ------
    ValueError
        For subscripts that are malformed or do not fit the operands, letters of the
        result that occur twice there or in no operand, lengths of a letter that
        differ, an `out` of another shape, an unknown `optimize`.
    TypeError
        If an operand does not convert to `dtype`, or the result to `out`; for an
        `out` that is no array; for lists that hold anything but integers and
        Ellipsis.

    Notes
    -----
    Two operands are multiplied in at most three steps, each of which has results of
    `dtype` and rounds once:

    - letters that only one of the two has, and nothing else needs, are summed first,
      by ``np.sum(a, axis, dtype=dtype)``;
    - letters that both have, and nothing else needs, are the k of one
      ``np.matmul(a, b, dtype=dtype)``, in the order of the first operand, the last of
      them fastest;
    - without such letters the product is ``np.multiply(a, b, dtype=dtype)``.

    So ``"ij,jk->ik"`` rounds once and has the bits of ``a @ b``, three matrices round
    twice, and ``dtype=np.float32`` gives the float32 sums of the formats' products,
    which a third operand is multiplied with in float32.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([[1, 2], [3, 4]], dtype=td.bfloat16)
    >>> td.einsum("ij,kj->ik", a, a)
    array([[ 5., 11.],
           [11., 25.]], dtype=bfloat16)
    >>> td.einsum("bij,bjk,k->bi", a[None], a[None], a[0], dtype=np.float32)
    array([[27., 59.]], dtype=float32)
    """
    result = contract(_NUMPY, subscripts, operands, out, dtype, optimize)
    return result[()] if out is None else out


def contract(
    functions: Functions,
    subscripts: Any,
    operands: tuple[Any, ...],
    out: Any = None,
    dtype: DTypeLike | None = None,
    optimize: bool | Sequence[Any] = "greedy",
) -> Any:
    """`einsum` of arrays of any kind; an array, or `out` if given."""
    given, labels, output = _parse(subscripts, operands)
    arrays = [functions.asarray(operand) for operand in given]
    for number, array in enumerate(arrays):
        if array.dtype.kind in "SUTmM" or array.dtype.type is np.void:
            raise TypeError(f"operand {number} is {array.dtype}: numbers are needed")
    terms = [
        (array, _expand(names, array.ndim, f"operand {number} of shape {array.shape}"))
        for number, (array, names) in enumerate(zip(arrays, labels, strict=True))
    ]
    result = _result_labels(output, [names for _, names in terms])
    terms = [_diagonal(functions, *term) for term in terms]
    lengths = _lengths(terms)
    shape = tuple(lengths[label] for label in result)
    common = _common(arrays) if dtype is None else find_dtype(dtype)
    for number, array in enumerate(arrays):
        if not np.can_cast(array.dtype, common, "same_kind"):
            raise TypeError(
                f"operand {number} of dtype {array.dtype} does not convert to"
                f' dtype={common} by casting "same_kind"'
            )
    if out is not None:
        if not functions.is_array(out):
            raise TypeError(f"out is an array, not {brief(out)}")
        if out.shape != shape:
            raise ValueError(f"out has shape {out.shape}, the result {shape}")
    steps = _steps(terms, result, optimize)
    array, names = _contract(functions, terms, result, steps, common)
    array = array.transpose([names.index(label) for label in result])
    if dtype is not None:  # one operand, and nothing was summed
        array = functions.cast(array, common)
    if out is None:
        return array
    functions.copyto(out, array)
    return out


def _common(arrays: list[Any]) -> np.dtype[Any]:
    return np.result_type(*(array.dtype for array in arrays))


# -- subscripts --------------------------------------------------------------------


def _parse(
    first: Any, others: tuple[Any, ...]
) -> tuple[tuple[Any, ...], list[list[str]], list[str] | None]:
    """Operands, their labels, and the result's if these are given."""
    if isinstance(first, str):
        inputs, arrow, output = first.replace(" ", "").partition("->")
        labels = [_letters(text, first) for text in inputs.split(",")]
        if len(labels) != len(others):
            raise ValueError(
                f"subscripts {brief(first)} name {len(labels)} operands; given are"
                f" {len(others)}"
            )
        result = _letters(output, first) if arrow else None
    else:
        interleaved = (first, *others)
        paired = len(interleaved) // 2 * 2
        if paired == 0:
            raise TypeError(
                f"subscripts are a string such as 'ij,jk->ik', not {brief(first)}"
            )
        others = interleaved[0:paired:2]
        labels = [_numbered(entries) for entries in interleaved[1:paired:2]]
        result = _numbered(interleaved[-1]) if len(interleaved) > paired else None
    return others, labels, result


def _letters(text: str, subscripts: str) -> list[str]:
    labels = re.findall(r"\.\.\.|.", text, re.DOTALL)
    for label in labels:
        if label != "..." and label not in LETTERS:
            raise ValueError(
                f"{label!r} in subscripts {brief(subscripts)}: known are letters,"
                " '...', ',' between operands and one '->' before the result's"
            )
    return labels


def _numbered(entries: Iterable[Any]) -> list[str]:
    known = "a list of subscripts holds the numbers 0 to 51 and Ellipsis"
    try:
        numbers = [None if entry is Ellipsis else index(entry) for entry in entries]
    except TypeError as error:
        raise TypeError(f"{brief(entries)}: {known}") from error
    for number in numbers:
        if number is not None and not 0 <= number < len(LETTERS):
            raise ValueError(f"{number} in {brief(entries)}: {known}")
    return ["..." if number is None else LETTERS[number] for number in numbers]


def _expand(names: list[str], ndim: int, what: str) -> list[str]:
    """Names of `ndim` dimensions: those of "..." are counted from its right end."""
    dots = names.count("...")
    extra = ndim - (len(names) - dots)
    if dots > 1:
        raise ValueError(f"'{''.join(names)}' for {what}: '...' may occur once")
    if extra < 0 or (extra > 0 and dots == 0):
        raise ValueError(
            f"'{''.join(names)}' for {what}: {len(names) - dots} letters for {ndim}"
            " dimensions; '...' takes those without a letter"
        )
    at = names.index("...") if dots else 0
    return names[:at] + [f"...{i}" for i in range(-extra, 0)] + names[at + dots :]


def _result_labels(names: list[str] | None, operands: list[list[str]]) -> list[str]:
    every = [label for labels in operands for label in labels]
    longest = len({label for label in every if label.startswith("...")})
    if names is None:
        letters = sorted(label for label in every if len(label) == 1)
        names = ["...", *(x for x in letters if letters.count(x) == 1)]
    if longest and "..." not in names:
        raise ValueError(
            f"the result '{''.join(names)}' has no '...' for the dimensions that"
            " '...' stands for in the operands"
        )
    ndim = len(names) - names.count("...") + longest
    result = _expand(names, ndim, "the result")
    for label in result:
        if result.count(label) > 1:
            raise ValueError(f"{label!r} occurs twice in the result '{''.join(names)}'")
        if label not in every:
            raise ValueError(
                f"{label!r} of the result '{''.join(names)}' is in no operand; known"
                f" are '{''.join(sorted(set(every)))}'"
            )
    return result


def _lengths(terms: list[Term]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for number, (array, names) in enumerate(terms):
        for label, length in zip(names, array.shape, strict=True):
            known = lengths.setdefault(label, length)
            if known == 1:
                lengths[label] = length
            elif length not in (1, known):
                raise ValueError(
                    f"{label!r} is {length} long in operand {number}, {known} before:"
                    " lengths are equal, or 1"
                )
    return lengths


# -- order -------------------------------------------------------------------------


def _steps(
    terms: list[Term], result: list[str], optimize: bool | Sequence[Any]
) -> list[Any]:
    """Positions of the operands that each step replaces by one more at the end."""
    match optimize:
        case ["einsum_path", *steps]:
            return steps
        case False:
            return [range(len(terms))]
        case True | "greedy" | "optimal" | ["greedy" | "optimal", int() | float()]:
            if len(terms) < 3:
                return [range(len(terms))]
            labels = list(dict.fromkeys(label for _, names in terms for label in names))
            arguments: list[Any] = []
            for array, names in terms:  # of which the shapes alone matter
                stand_in = np.broadcast_to(np.float32(0), array.shape)
                arguments += [stand_in, [labels.index(label) for label in names]]
            arguments.append([labels.index(label) for label in result])
            path: list[Any] = np.einsum_path(*arguments, optimize=optimize)[0]
            return path[1:]
    raise ValueError(
        f"optimize={brief(optimize)}: known are False, True, 'greedy', 'optimal', a"
        " pair of one of these names and a number, and ['einsum_path', (0, 1), ...]"
    )


def _contract(
    functions: Functions,
    terms: list[Term],
    result: list[str],
    steps: list[Any],
    dtype: np.dtype[Any],
) -> Term:
    for step in steps:
        left = range(len(terms))
        if not (isinstance(step, Collection) and step and {*step} <= {*left}):
            raise ValueError(
                f"{brief(step)} in the path of optimize: a step holds positions of"
                f" operands, 0 to {len(terms) - 1} here"
            )
        chosen = [terms[i] for i in left if i in step]
        terms = [terms[i] for i in left if i not in step]
        while len(chosen) > 1:
            first, second, *others = chosen
            needed = {*result}.union(*(names for _, names in others + terms))
            chosen = [_product(functions, first, second, needed, dtype), *others]
        needed = {*result}.union(*(names for _, names in terms))
        terms.append(_sum(functions, *chosen[0], needed, dtype))
    if len(terms) > 1:
        raise ValueError(f"the path of optimize leaves {len(terms)} operands, not one")
    return _sum(functions, *terms[0], result, dtype)


# -- steps -------------------------------------------------------------------------


def _diagonal(functions: Functions, array: Any, names: list[str]) -> Term:
    """A view whose labels are all different."""
    labels = list(dict.fromkeys(names))
    if len(labels) == len(names):
        return array, names
    shape, strides = [], []
    for label in labels:
        axes = [axis for axis, name in enumerate(names) if name == label]
        lengths = [array.shape[axis] for axis in axes]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"{label!r} has the lengths {lengths} in one operand of shape"
                f" {array.shape}: they are equal on a diagonal"
            )
        shape.append(lengths[0])
        strides.append(sum(array.strides[axis] for axis in axes))
    return functions.as_strided(array, shape, strides), labels


def _sum(
    functions: Functions,
    array: Any,
    names: list[str],
    needed: Collection[str],
    dtype: np.dtype[Any],
) -> Term:
    axes = tuple(axis for axis, name in enumerate(names) if name not in needed)
    if not axes:
        return array, names
    total = functions.sum(array, axes, dtype)
    return total, [name for name in names if name in needed]


def _product(
    functions: Functions,
    left: Term,
    right: Term,
    needed: set[str],
    dtype: np.dtype[Any],
) -> Term:
    """One product of two stacks of matrices."""
    a, names_a = _sum(functions, *left, needed.union(right[1]), dtype)
    b, names_b = _sum(functions, *right, needed.union(left[1]), dtype)
    stack = [x for x in names_a if x in names_b and x in needed]
    summed = [x for x in names_a if x in names_b and x not in needed]
    rows = [x for x in names_a if x not in names_b]
    columns = [x for x in names_b if x not in names_a]
    a = a.transpose([names_a.index(x) for x in stack + rows + summed])
    b = b.transpose([names_b.index(x) for x in stack + summed + columns])
    size = len(stack)
    m = a.shape[size : size + len(rows)]
    k_a, k_b = a.shape[size + len(rows) :], b.shape[size : size + len(summed)]
    n = b.shape[size + len(summed) :]
    k = np.broadcast_shapes(k_a, k_b)
    a = functions.broadcast_to(a, a.shape[:size] + m + k)
    b = functions.broadcast_to(b, b.shape[:size] + k + n)
    a = functions.reshape(a, (*a.shape[:size], math.prod(m), math.prod(k)))
    b = functions.reshape(b, (*b.shape[:size], math.prod(k), math.prod(n)))
    product = (functions.matmul if summed else functions.multiply)(a, b, dtype)
    product = functions.reshape(product, product.shape[:-2] + m + n)
    return product, stack + rows + columns
