"""Assertions for tests of arrays in reduced precision.

>>> import numpy as np, tf32dtype as td
>>> a = np.array([1, 100], td.bfloat16)
>>> td.testing.assert_max_ulp(a, np.array([1, 101], td.bfloat16), 2)
array([0, 2], dtype=uint64)
"""

from __future__ import annotations

import operator
from inspect import signature
from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack, overload

import numpy as np

from ._base.caller import warn
from ._base.text import counted
from ._base.wording import brief
from ._checks.check import Check, Worst
from ._checks.checking import CheckOptions, check_matmul
from ._formats.table import own_array
from ._measures.ulps import NAN_ULPS, coarser, ulp_distance

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ._formats.typed import Number
    from .tensor_core.cpu_units import SumType
    from .tensor_core.device import DeviceName
    from .tensor_core.products import Operand

__all__ = ["Check", "Worst", "assert_matmul", "assert_max_ulp", "check_matmul"]


def assert_matmul(
    d: ArrayLike,
    a: Operand,
    b: Operand,
    c: ArrayLike | None = None,
    *,
    unit: DeviceName | SumType,
    **options: Unpack[CheckOptions],
) -> Check:
    """Raise an error if no order of additions gives the results of a matrix product.

    Parameters
    ----------
    d, a, b, c, unit
        As for `check_matmul`.
    instruction, accumulator, rounding, alpha, beta, bias, scale_a, scale_b
        As for `check_matmul`.
    promote_every, factor, sample
        As for `check_matmul`.
    search : bool
        As for `check_matmul`, but False by default, so that a test takes little more
        time than the product.

    Returns
    -------
    Check
        The verdict, which is "identical" or "within bound".

    Raises
    ------
    AssertionError
        If the verdict is "wrong". The message is the text of the check: the number of
        wrong elements, where they are, and the faults that explain them.
    TypeError, ValueError
        As `check_matmul`.

    Warns
    -----
    UserWarning
        If the bound is larger than most results, so that zeros would pass, too.

    See Also
    --------
    check_matmul : Return the verdict instead.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 64, 64)).astype(td.bfloat16)
    >>> d = td.tensor_core.matmul(a, b, device="H100")
    >>> td.testing.assert_matmul(d, a, b, unit="H100").verdict
    'identical'
    >>> d[8:16] = 0
    >>> try:
    ...     td.testing.assert_matmul(d, a, b, unit="H100")
    ... except AssertionError as error:
    ...     lines = str(error).splitlines()
    >>> lines[0]
    'wrong: 512 of 4,096 elements; no order of additions gives them'
    >>> lines[2]
    'fault: all wrong results are 0, as if they were never written: rows 8-15'
    """
    __tracebackhide__ = True
    options.setdefault("search", False)
    found = check_matmul(d, a, b, c, unit=unit, **options)
    if not found:
        raise AssertionError(repr(found))
    for note in found.notes():
        warn(note)
    return found


_SIGNATURE = signature(check_matmul)
assert_matmul.__signature__ = _SIGNATURE.replace(  # type: ignore[attr-defined]
    parameters=[
        x.replace(default=False) if x.name == "search" else x
        for x in _SIGNATURE.parameters.values()
    ]
)


@overload
def assert_max_ulp(a: Number, b: Number, maxulp: SupportsIndex = ...) -> np.uint64: ...
@overload
def assert_max_ulp(
    a: ArrayLike, b: ArrayLike, maxulp: SupportsIndex = ...
) -> NDArray[np.uint64]: ...
def assert_max_ulp(a: ArrayLike, b: ArrayLike, maxulp: SupportsIndex = 1) -> Any:
    """Raise an error unless all elements of `a` and `b` are within `maxulp` ulps.

    Parameters
    ----------
    a, b : array_like
        As for `tf32dtype.ulp_distance`, which defines the distances of zeros,
        infinities, NaN and of two formats.
    maxulp : int, optional
        The largest distance that is allowed, 0 or more.

    Returns
    -------
    ndarray of uint64, or uint64 for two numbers
        The distances, as `numpy.testing.assert_array_max_ulp` returns them.

    Raises
    ------
    AssertionError
        If a distance is larger. The message has the number of such elements, and the
        index, both values and the distance of the worst one.
    TypeError, ValueError
        As `tf32dtype.ulp_distance`, and for another `maxulp`.

    See Also
    --------
    tf32dtype.ulp_distance : Count the steps between elements.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.array([1, 2, 4], td.fp8_e4m3)
    >>> td.testing.assert_max_ulp(a, np.array([1, 2.5, 6], td.fp8_e4m3), 3)
    Traceback (most recent call last):
    ...
    AssertionError: a and b must be within 3 ulps of float8_e4m3fn; got 1 of 3 elements
    with a larger distance, at most 4 ulps at [2]: a is 4.0 and b is 6.0
    """
    __tracebackhide__ = True
    try:
        limit = operator.index(maxulp)
    except TypeError:
        raise TypeError(f"maxulp must be an integer; got {brief(maxulp)}") from None
    if limit < 0:
        raise ValueError(f"maxulp must be 0 or more; got {limit}")
    found = ulp_distance(a, b)
    beyond = int(np.count_nonzero(found > limit))
    if beyond:
        raise AssertionError(_message(own_array(a), own_array(b), found, beyond, limit))
    return found


def _message(
    x: NDArray[Any], y: NDArray[Any], found: Any, beyond: int, limit: int
) -> str:
    form = coarser(x.dtype, y.dtype)
    assert form is not None  # which the distances are of
    x, y = np.broadcast_arrays(x, y)
    worst = np.unravel_index(int(np.argmax(found)), x.shape)
    most = int(np.max(found))
    distance = "a NaN against a number"
    if most < NAN_ULPS:
        distance = f"at most {counted(most, 'ulp')}"
    where = f" at {[int(i) for i in worst]}" if x.ndim else ""
    return (
        f"a and b must be within {counted(limit, 'ulp')} of {form.name}; got"
        f" {beyond} of {counted(x.size, 'element')} with a larger distance,"
        f" {distance}{where}: a is {x[worst]} and b is {y[worst]}"
    )


def __dir__() -> list[str]:
    return __all__
