"""Checks of matrix products on every backend: operands, stacks and `out`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .wording import brief

Shape = tuple[int, ...]


def as_matrices(a: Any, b: Any) -> tuple[Any, Any, Shape, Shape]:
    """Return operands as stacks of matrices, the stack's shape and the result's.

    Parameters
    ----------
    a, b
        Arrays of any library. A vector is a row, or a column.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    check_axes(a.shape, b.shape)
    x = a[np.newaxis] if a.ndim == 1 else a
    y = b[:, np.newaxis] if b.ndim == 1 else b
    check_k(x.shape[-1], y.shape[-2], a.shape, b.shape)
    stack = stack_of(x.shape[:-2], y.shape[:-2], a.shape, b.shape)
    rows, columns = x.shape[-2:-1] * (a.ndim > 1), y.shape[-1:] * (b.ndim > 1)
    return x, y, stack, stack + rows + columns


def check_axes(a: Shape, b: Shape) -> None:
    """Refuse shapes of operands that are scalars."""
    if not a or not b:
        raise ValueError(f"a and b must have at least one axis; got shapes {a} and {b}")


def check_k(k: int, other: int, a: Shape, b: Shape, which: str = "a and b") -> None:
    """Refuse two different lengths along k of operands of these shapes."""
    if k != other:
        raise ValueError(
            f"{which} must have the same k; got k = {k} and k = {other} (shapes {a} and"
            f" {b})"
        )


def stack_of(
    one: Shape, other: Shape, a: Shape, b: Shape, of: str = "matrices"
) -> Shape:
    """Broadcast the stacks of operands of these shapes."""
    if one == other:
        return one
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        raise ValueError(
            f"stacks of {of} must broadcast: lengths must be equal or 1; got {one} and"
            f" {other} (shapes {a} and {b})"
        ) from None


def unwrapped(out: Any) -> Any:
    """Return `out`, or what is in its tuple, as ufuncs give it."""
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


def as_out(out: Any, shape: Shape, result: str = "the matrix product") -> NDArray[Any]:
    """Return the array that a result of this shape is written to."""
    target = unwrapped(out)
    if not isinstance(target, np.ndarray):
        raise TypeError(f"out must be an array; got {brief(target)}")
    check_shape(target.shape, shape, result=result)
    if not target.flags.writeable:
        raise ValueError("out must be writable; got a read-only array")
    return target


def check_shape(
    found: Shape, shape: Shape, name: str = "out", result: str = "the matrix product"
) -> None:
    """Refuse another shape than the result's."""
    if found != shape:
        raise ValueError(
            f"{name} must have the shape of {result}, {shape}; got {found}"
        )


def check_cast(made: np.dtype[Any], out: np.dtype[Any]) -> None:
    """Refuse an `out` whose dtype a result is not cast to."""
    if not np.can_cast(made, out, "same_kind"):
        raise TypeError(
            f"out must have a dtype that {made} can be cast to with"
            f" casting='same_kind'; got {out}"
        )


def checked_out(
    out: Any, shape: Shape, made: np.dtype[Any], result: str = "the matrix product"
) -> NDArray[Any] | None:
    """Return the array that a result of this dtype is written to; None for none."""
    if out is None:
        return None
    written = as_out(out, shape, result)
    check_cast(made, written.dtype)
    return written


def given_back(result: NDArray[Any], written: NDArray[Any] | None) -> Any:
    """Return a result, or the array that it is written to."""
    if written is None:
        return result[()]
    np.copyto(written, result, casting="same_kind")
    return written


def matrices_of(
    a: NDArray[Any], b: NDArray[Any], stack: Shape
) -> Iterator[tuple[Shape, NDArray[Any], NDArray[Any]]]:
    """Yield each position of a stack, with the matrices there."""
    one = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    other = np.broadcast_to(b, (*stack, *b.shape[-2:]))
    for place in np.ndindex(stack):
        yield place, one[place], other[place]
