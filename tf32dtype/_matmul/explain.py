"""Explain the speed of a matrix product by the plan for it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._base.caller import reports_errors
from .._base.matrices import as_matrices
from .._base.options import refuse_unknown, shows
from .._base.wording import brief
from .._exact.products import ExactProducts
from .._formats.table import own_array
from .matmul import check_operands
from .precisions import PrecisionName, ProductOptions, Settings, resolve


class MatmulPlan(NamedTuple):
    """The plan of a matrix product on this machine: the result of `explain_matmul`.

    ``print(plan)`` shows it, a line for each field.

    Parameters
    ----------
    way : str
        "macro-kernel", "GEMV along k", "small matrices" and so on; "NumPy" for a
        product that is NumPy's own.
    reason : str
        The condition under which this way is used.
    transposed : bool
        Whether the transpose of the result is computed: its columns are contiguous, or
        there are few of them.
    packing : str or None
        The form to which operands are copied before they are multiplied: "float32",
        "bfloat16 pairs" or "int8 quads". None: they are not copied, or only one vector
        at a time.
    terms : int
        The number of products of components per product of numbers: 9 for "bf16x9".
    micro_tile : tuple of int, or None
        Rows and columns of the result that the kernel holds in registers.
    tile : tuple of int, or None
        The most rows and columns of the result that are one thread's task.
    tiles : int
        The number of tasks.
    threads : int
        The most threads that share the tasks.
    instruction_set : str
        The instruction set, as `isa` returns it.
    """

    way: str
    reason: str
    transposed: bool = False
    packing: str | None = None
    terms: int = 1
    micro_tile: tuple[int, int] | None = None
    tile: tuple[int, int] | None = None
    tiles: int = 1
    threads: int = 1
    instruction_set: str = ""

    def __str__(self) -> str:
        lines = {f"{self.way}:": self.reason}
        if self.transposed:
            lines["transposed"] = "b.T @ a.T is computed"
        if self.packing:
            lines["packed as"] = self.packing
        if self.terms > 1:
            lines["terms"] = f"{self.terms} products of components for each product"
        if self.micro_tile:
            lines["micro-tile"] = "{} x {}".format(*self.micro_tile)
        if self.tile:
            lines["tiles"] = "{}, of {} x {} at most".format(self.tiles, *self.tile)
            lines["threads"] = str(self.threads)
        if self.instruction_set:
            lines["instruction set"] = self.instruction_set
        width = max(map(len, lines))
        return "\n".join(f"{key:{width}}  {value}" for key, value in lines.items())


@shows(ProductOptions, Settings)
@reports_errors("explain_matmul")
def explain_matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionName | None = None,
    **options: Unpack[ProductOptions],
) -> MatmulPlan:
    """Return what a matrix product does on this machine, without computing it.

    Parameters
    ----------
    a, b : array_like
        The operands, of the shapes that `numpy.matmul` takes. No value is read.
    precision : str or None
        As in `matmul_precision`. None: that of the enclosing scope, if there is one.
    rounding, scale, special_values, device, instruction
        As in `matmul_precision`.

    Returns
    -------
    MatmulPlan
        A named tuple; ``print(plan)`` shows it. `way` and `reason`: the algorithm, and
        the condition for using it. `transposed`: whether ``b.T @ a.T`` is computed.
        `packing`: what operands are copied as, or None. `terms`: products of parts for
        each product. `micro_tile`: the rows and columns in registers, or None. `tile`,
        `tiles` and `threads`: the rows and columns of a task, the number of tasks, and
        the most threads that share them. `instruction_set`: as `isa` returns it.

    Raises
    ------
    ValueError, TypeError
        As `matmul` does. In a precision, TypeError also for complex operands, whose
        products are computed as four products of real numbers.

    See Also
    --------
    matmul : Compute the product.
    tf32dtype.tensor_core.explain : Explain how one element of a product is computed.

    Notes
    -----
    The way depends on the shapes, the dtypes, the strides, the instruction set and the
    number of threads. It changes only the time, never a bit of the result. The plan is
    for a new result in C order; another `out` may be computed transposed.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.ones((1000, 300), td.bfloat16)
    >>> plan = td.explain_matmul(a, a.T)
    >>> plan.way, plan.reason
    ('macro-kernel', 'A and B are packed for the micro-kernel')
    >>> td.explain_matmul(a, a[0]).way
    'GEMV along k'
    >>> print(td.explain_matmul(np.ones((4, 4)), np.ones((4, 4))))
    NumPy:  no precision is in force for float64
    """
    refuse_unknown("explain_matmul", options, ProductOptions)
    spec = resolve(Settings(precision, **options))
    x, y = np.asarray(own_array(a)), np.asarray(own_array(b))
    left, right, batch, _ = as_matrices(x, y)
    common = np.result_type(x, y)
    own = common.type in _core.scalar_types
    if spec is None and not own:
        spec = _core.current_precision()
    elif spec is not None and spec.exact is None:
        check_operands(x.dtype, y.dtype, precision)
    if spec is not None and isinstance(spec.exact, ExactProducts):
        return MatmulPlan("exact sums", "the exact values are rounded once")
    if common.kind == "c" and (own or spec is not None):
        raise TypeError(
            f"operands must be real; got {x.dtype} and {y.dtype}. A complex product is"
            " four real ones: explain that of a.real and b.real"
        )
    if spec is not None and spec.exact is not None and not own:
        raise ValueError(
            "precision must not be an emulated precision, whose products consist of"
            f" several; got {brief(precision)}"
        )
    obeys = spec is not None and (
        common == np.float32 or (spec.float64 and common == np.float64)
    )
    if own:
        spec = None
    elif not obeys:
        return MatmulPlan("NumPy", f"no precision is in force for {common}")
    if 0 in (*batch, left.shape[-2], right.shape[-1]):
        return MatmulPlan("nothing", "the result is empty")

    def stack(z: NDArray[Any]) -> NDArray[Any]:
        matrix = z[(0,) * (z.ndim - 2)].astype(common, copy=False)
        return np.broadcast_to(matrix, (math.prod(batch), *matrix.shape))

    return MatmulPlan(
        *_core.plan_of_product(stack(left), stack(right), common, spec),
        instruction_set=_core.isa(),
    )
