"""Plan matrix products: all decisions that need no addresses, made once and cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ... import _core
from ..._base.matrices import stack_of
from ..._exact.rounding import Target, number_dtype, result_dtype
from ..._formats.quantize import Rounding
from ..._integer_products.products import result_dtypes
from ..._integer_products.schemes import Scheme
from ..._matmul.precisions import (
    EXACT,
    RoundingOptions,
    Settings,
    find_precision,
    whole_name,
)
from ...tensor_core.look_up import find_model
from ...tensor_core.models import Aligned
from .._arrays.ndarray import lying
from .._runtime.backend import KEPT, Shape
from .._runtime.storage import is_ours
from . import exact, fma, integer_products, mma_model, split_emulation, tensor_cores
from .crossover import Strategy
from .mode import Mode
from .stacks import Axis, stacked
from .tile_options import FLOAT32, Launches, Matrices, Writer, in_c_order

FLOAT16 = np.dtype(np.float16)
TF32 = np.dtype(_core.scalar_types[_core.names.index("tf32")])


class ProductPlan(NamedTuple):
    """A plan of a product of stacks of matrices."""

    #: dtypes to which a and b are cast; None for operands that are read as they are
    cast_a: np.dtype[Any] | None
    cast_b: np.dtype[Any] | None
    write: Writer | None  #: writes a piece of the product; None for CuPy's own function
    a: Matrices  #: layout of a piece of a
    b: Matrices  #: layout of a piece of b
    c: Matrices  #: layout of a piece of the sums
    others: tuple[Axis, ...]  #: axes along which the pieces follow each other
    sums: np.dtype[Any]  #: dtype of the sums
    strides: Shape  #: strides of the sums in C order
    dtype: np.dtype[Any]  #: dtype of the result, to which sums are rounded
    rounding: Rounding  #: how sums are rounded
    shape: Shape  #: shape of the result


@lru_cache(maxsize=KEPT)
def plan_product(
    a: Matrices,
    b: Matrices,
    shape: Shape | None,
    wanted: np.dtype[Any] | None,
    mode: Mode,
    settings: Settings | None,
    strategy: Strategy,
    device: tuple[object, ...],
) -> ProductPlan:
    """Plan the product of stacks (..., m, k) and (..., k, n).

    `device` has the facts of the device on which functions of a plan depend. It is only
    a key of the cache. The other arguments are those of `matmul.product`.

    Raises
    ------
    TypeError, ValueError
        If the mode does not support the operands, or `wanted` is not a floating-point
        dtype.
    """
    algorithm = _choose(a.dtype, b.dtype, wanted, mode, settings, strategy)
    stack = stack_of(a.shape[:-2], b.shape[:-2], a.shape, b.shape)
    m, n = a.shape[-2], b.shape[-1]
    itemsize = algorithm.sums.itemsize
    matrices = *stack, m, n
    z = Matrices(matrices, lying(matrices, itemsize), algorithm.sums)
    each = _operand(a, algorithm.a), _operand(b, algorithm.b), z
    (x, y, z), others = stacked(each, stack)
    write: Writer | None = Launches()  # writes nothing
    if algorithm.plan is None:
        write = None
    elif 0 not in matrices:
        plan = partial(algorithm.plan, x, y)
        write = in_c_order(plan, z) if algorithm.in_c_order else plan(z)
    shape = matrices if shape is None else shape
    return ProductPlan(
        _cast(a.dtype, algorithm.a),
        _cast(b.dtype, algorithm.b),
        write,
        x,
        y,
        z,
        others,
        algorithm.sums,
        lying(shape, itemsize),
        wanted or algorithm.result,
        algorithm.rounding,
        shape,
    )


def _cast(dtype: np.dtype[Any], to: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype to which an operand is cast; None if it is read as it is.

    Tensor cores read float32 as tf32: they ignore its low 13 bits.
    """
    return None if dtype == to or (dtype, to) == (FLOAT32, TF32) else to


def _operand(x: Matrices, dtype: np.dtype[Any]) -> Matrices:
    """Return the layout of an operand that is read in a dtype."""
    if _cast(x.dtype, dtype) is None:
        return x._replace(dtype=dtype)
    return Matrices(x.shape, lying(x.shape, dtype.itemsize), dtype)


# -- algorithms ------------------------------------------------------------------------


class _Algorithm(NamedTuple):
    """An algorithm that multiplies arrays of two dtypes."""

    a: np.dtype[Any]  #: dtype in which the first operand is multiplied
    b: np.dtype[Any]  #: dtype in which the second operand is multiplied
    sums: np.dtype[Any]
    result: np.dtype[Any]  #: dtype of the result by default
    #: plans a stack of products; None for CuPy's own function
    plan: Callable[..., Writer] | None = None
    in_c_order: bool = False  #: whether it only writes stacks in C order
    rounding: Rounding = "ties_to_even"  #: how sums are rounded to the result's dtype


def _choose(
    a: np.dtype[Any],
    b: np.dtype[Any],
    wanted: np.dtype[Any] | None,
    mode: Mode,
    settings: Settings | None,
    strategy: Strategy,
) -> _Algorithm:
    if wanted is not None and not (is_ours(wanted) or wanted.kind in "fc"):
        raise TypeError(f"dtype must be a floating-point dtype; got {wanted}")
    common = np.result_type(a, b)
    ours = is_ours(a), is_ours(b)
    if applies_exactly(settings, a, b):
        return _exact(a, b, wanted, settings, strategy)
    scheme = None if settings is None else Scheme.of(settings.precision)
    if scheme is not None and common.char in "fd":
        return _of_integers(a, b, wanted, scheme)
    if settings is not None and not any(ours) and common == FLOAT32:
        if settings.device is not None:
            raise ValueError(
                "precision must not have a device on a GPU; got"
                f" device={settings.device!r}. Use mode='model' to multiply formats as"
                " that device does"
            )
        plan = partial(_emulation, settings=settings, strategy=strategy)
        return _Algorithm(FLOAT32, FLOAT32, FLOAT32, FLOAT32, plan, in_c_order=True)
    if mode.name != "chain":
        x, y = _as_unit_reads(a, ours[0], "a"), _as_unit_reads(b, ours[1], "b")
    if mode.name == "model":
        sums = FLOAT16 if wanted == FLOAT16 else FLOAT32
        model = find_model(mode.device, mode.instruction, x.name, y.name, sums.name)
        if not isinstance(model, Aligned):
            raise ValueError(
                f"{model.name} is modeled only on the CPU; use"
                " tf32dtype.tensor_core.matmul with NumPy arrays"
            )
        return _Algorithm(x, y, sums, sums, partial(mma_model.plan, model=model))
    if mode.name == "native":
        plan = partial(tensor_cores.plan, instruction=mode.instruction)
        own = mode.instruction is not None
        return _Algorithm(x, y, FLOAT32, FLOAT32, plan, in_c_order=own)
    if is_ours(common):
        x, y = (
            i if own or i == FLOAT16 else common
            for i, own in zip((a, b), ours, strict=True)
        )
        sums = common if wanted is None else FLOAT32
        return _Algorithm(x, y, sums, common, fma.plan)
    # CuPy's sums are rounded to a format at the end.
    dtype = common if wanted is None or is_ours(wanted) else wanted
    return _Algorithm(dtype, dtype, dtype, common)


def applies_exactly(
    settings: Settings | None, a: np.dtype[Any], b: np.dtype[Any]
) -> TypeGuard[Settings]:
    """Return whether results are rounded correctly, as in a scope on the CPU."""
    is_exact = settings is not None and whole_name(settings.precision) == EXACT
    return is_exact and np.result_type(a, b).char in "fdFD"


def _exact(
    a: np.dtype[Any],
    b: np.dtype[Any],
    wanted: np.dtype[Any] | None,
    settings: Settings,
    strategy: Strategy,
) -> _Algorithm:
    """Return the algorithm of correctly rounded results."""
    target = Target.of(result_dtype(a, b, wanted), settings.rounding)
    rounding: Any = target.rounding
    return _Algorithm(
        number_dtype(a),
        number_dtype(b),
        target.work,
        target.dtype,
        partial(exact.plan, rounding=target.first, by_integers=strategy == "eager"),
        in_c_order=True,
        rounding=rounding,
    )


def _of_integers(
    a: np.dtype[Any], b: np.dtype[Any], wanted: np.dtype[Any] | None, scheme: Scheme
) -> _Algorithm:
    """Return the algorithm of an emulated precision.

    As in a scope on the CPU, operands of other dtypes are cast. Calls of `matmul` that
    name the precision refuse them before.
    """
    common = np.result_type(a, b)
    sums, result = result_dtypes(scheme, common, common, wanted)
    plan = partial(integer_products.plan, scheme=scheme)
    return _Algorithm(common, common, sums, result, plan, in_c_order=True)


def _as_unit_reads(dtype: np.dtype[Any], ours: bool, name: str) -> np.dtype[Any]:
    """Return the dtype as a tensor core reads it: tf32 for float32."""
    if dtype == FLOAT32:
        return TF32
    if ours or dtype == FLOAT16:
        return dtype
    raise TypeError(
        f"{name} must be float16, float32 (multiplied as tf32) or a format of"
        f" tf32dtype; got {dtype}. Use {name}.astype(np.float32)"
    )


def _emulation(
    a: Matrices, b: Matrices, c: Matrices, settings: Settings, strategy: Strategy
) -> Writer:
    """Plan a product in a precision, or of float32 if this is faster."""
    _, m, n = c.shape
    precision = settings.precision
    chosen = split_emulation.choose_precision(precision, strategy, m, n, a.shape[2])
    options = RoundingOptions()
    if chosen == find_precision(precision).short:
        options = {
            "rounding": settings.rounding,
            "scale": settings.scale,
            "special_values": settings.special_values,
        }
    return split_emulation.plan(a, b, c, chosen, **options)
