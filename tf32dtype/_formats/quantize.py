"""Round any numbers to a format, float16 or float32, in any rounding mode."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._base.wording import brief, one_of
from .aliases import NUMPY_ALIASES, canonical, cure
from .table import find, find_dtype, formats, own_array
from .typed import DTypeOf, Number, Out, Scalar, TargetLike, TargetNamed

#: The rounding modes, in the order of `enum tf_rounding` in src/formats/codec.h.
Rounding = Literal[
    "ties_to_even",
    "ties_to_away",
    "toward_zero",
    "toward_positive",
    "toward_negative",
    "to_odd",
    "stochastic",
]
#: The modes for a tensor core's operands, float32 to tf32: the first ones.
Tf32Rounding = Literal["ties_to_even", "ties_to_away", "toward_zero"]
#: The overflow modes, in the order of `enum tf_overflow`.
Overflow = Literal["ieee", "saturate"]

ROUNDINGS = get_args(Rounding)
OVERFLOWS = get_args(Overflow)

#: The dtypes of NumPy that numbers can be rounded to, too.
_BUILTIN = (np.dtype(np.float16), np.dtype(np.float32))


class _Mode(TypedDict, total=False):
    rounding: Rounding
    overflow: Overflow
    rng: np.random.Generator | None


@overload
def quantize(
    x: ArrayLike, dtype: TargetLike, *, out: Out, **mode: Unpack[_Mode]
) -> Out: ...
@overload
def quantize(
    x: Number, dtype: DTypeOf[Scalar], *, out: None = ..., **mode: Unpack[_Mode]
) -> Scalar: ...
@overload
def quantize(
    x: ArrayLike, dtype: DTypeOf[Scalar], *, out: None = ..., **mode: Unpack[_Mode]
) -> NDArray[Scalar]: ...
@overload
def quantize(
    x: ArrayLike, dtype: TargetNamed, *, out: None = ..., **mode: Unpack[_Mode]
) -> NDArray[Any]: ...
def quantize(
    x: ArrayLike,
    dtype: TargetLike,
    *,
    rounding: Rounding = "ties_to_even",
    overflow: Overflow = "ieee",
    rng: np.random.Generator | None = None,
    out: NDArray[Any] | None = None,
) -> Any:
    """Round numbers to a format, once, in a chosen mode.

    Parameters
    ----------
    x : array_like
        Real numbers of any builtin dtype, or of one of the formats.
    dtype : str, dtype or type
        The format to round to: one of this package's, float16 or float32.
    rounding : str
        An IEEE 754 rounding direction: "ties_to_even" (default), "ties_to_away",
        "toward_zero", "toward_positive" or "toward_negative"; or "to_odd" (inexact
        results take the neighbor with an odd code), or "stochastic" (away from zero
        with a probability that equals the fraction cut off).
    overflow : {"ieee", "saturate"}
        The result for magnitudes above the largest finite number. "ieee" gives Inf. A
        format without Inf gives NaN, and a format without both gives the largest
        number. Directed modes and "to_odd" give the largest number where IEEE 754
        section 7.4 says so. "saturate" gives the largest number, for Inf too.
    rng : numpy.random.Generator, optional
        The generator for "stochastic": one 64-bit draw per element, in C order,
        ``rng.integers(0, 2**64, size=x.shape, dtype=np.uint64)``. The result is
        rounded away from zero if the draw is less than 2^64 times the fraction.
    out : ndarray, optional
        An array of the dtype and of x's shape to write into.

    Returns
    -------
    ndarray or scalar
        The rounded values, with the shape of `x` and the dtype `dtype`; a scalar for a
        single number. `out` is returned if given.

    Raises
    ------
    ValueError
        For an unknown format, rounding or overflow. For "stochastic" without `rng`, or
        `rng` without "stochastic". For an `out` of another shape, or read-only.
    TypeError
        If `x` is not made of real numbers, `dtype` is not a format, or `out` is not an
        array of that format. If `rng` is not a generator.

    See Also
    --------
    arithmetic : Round all float32 arithmetic of NumPy in a scope.
    tf32dtype.blocks.quantize : Round to blocks of codes with scales.
    tf32dtype.blocks.round : Round to the values of a block format.

    Notes
    -----
    Floating-point errors are reported as NumPy does for casts (`numpy.errstate`).
    Saturating is not reported as overflow.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.quantize([0.3, 500.0], "float8_e4m3fn", overflow="saturate").tolist()
    [0.3125, 448.0]
    """
    target = target_dtype(dtype, "dtype")
    check_arguments(rounding, overflow, OVERFLOWS, rng)
    source = own_array(x)
    if out is not None:
        if not isinstance(out, np.ndarray) or find_dtype(out.dtype) != target:
            raise TypeError(f"out must be an array of {target.name}; got {brief(out)}")
        if out.shape != source.shape:
            raise ValueError(
                f"out must have the shape of x, {source.shape}; got {out.shape}"
            )
    if source.dtype.kind == "O":
        raise TypeError("x must hold numbers; got an array of objects")
    draws = None
    if rng is not None:
        draws = rng.integers(0, 2**64, size=source.shape, dtype=np.uint64)
    native = source.astype(source.dtype.newbyteorder("="), order="C", copy=False)
    result = np.empty(source.shape, target)
    flags = _core.quantize_items(
        native, result, ROUNDINGS.index(rounding), OVERFLOWS.index(overflow), draws
    )
    _core.report(flags)
    if out is None:
        return result[()]
    out[...] = result
    return out


def target_dtype(which: object, argument: str = "format") -> np.dtype[Any]:
    """Return the dtype that a name or type means: a format's, float16 or float32.

    Raises
    ------
    ValueError, TypeError
        As `find`.
    """
    try:
        dtype = find_dtype(which)
        if dtype in _BUILTIN:
            return dtype
    except TypeError:
        pass  # `find` says what there is
    try:
        return find(which).dtype
    except (TypeError, ValueError) as error:
        name = which if isinstance(which, str) else ""
        names = [*formats.known(), "float16", "float32"]
        fix = None if canonical(name) in NUMPY_ALIASES else cure(name)
        listing = "td.formats, float16 or float32"
        raise type(error)(one_of(argument, which, names, listing, fix)) from None


def check_arguments(
    rounding: str,
    overflow: str,
    overflows: tuple[str, ...],
    rng: np.random.Generator | None,
) -> None:
    """Check that the arguments of a `quantize` are known and fit together.

    Raises
    ------
    ValueError, TypeError
        If they do not.
    """
    if rounding not in ROUNDINGS:
        nearest = rounding in ("nearest", "even", "rne", "rn")
        fix = "Use 'ties_to_even' for IEEE 754's rounding to nearest" if nearest else ""
        raise ValueError(one_of("rounding", rounding, ROUNDINGS, fix=fix))
    if overflow not in overflows:
        raise ValueError(one_of("overflow", overflow, overflows))
    if (rng is None) == (rounding == "stochastic"):
        raise ValueError(
            "rounding='stochastic' must be given with rng, a numpy.random.Generator"
            if rng is None
            else f"rng must be given with rounding='stochastic'; got {brief(rounding)}"
        )
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator; got {brief(rng)}")
