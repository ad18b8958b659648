"""Check a matrix product: identical to a known way, within its bound, or wrong."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._base.arguments import checked_flag, checked_number
from .._base.wording import brief
from .._formats.quantize import Tf32Rounding
from ..tensor_core.cpu_units import SumType
from ..tensor_core.device import DeviceName
from ..tensor_core.models import Instruction, Model
from .block_operands import BlockOperands, block_operands, is_blocks
from .case import Case
from .check import EDGES, Check, Verdict, Worst
from .diagnoses import diagnose
from .origin import origin
from .places import where
from .product import Product
from .request import Request, request
from .units import PLAIN, Unit, find_unit

if TYPE_CHECKING:
    from ..tensor_core.products import Operand

Array = NDArray[Any]

#: The largest error, as a share of the bound, for which a known way is searched.
_NEAR = 256.0
#: Products of more multiplications are sampled, with this number of elements.
_LARGE, _SAMPLE = 1 << 36, 1 << 20


class CheckOptions(TypedDict, total=False):
    """The options of `check_matmul`."""

    instruction: Instruction | None
    accumulator: DTypeLike | None
    rounding: Tf32Rounding | None
    alpha: float
    beta: float
    bias: ArrayLike | None
    scale_a: ArrayLike | None
    scale_b: ArrayLike | None
    promote_every: int | None
    factor: float
    sample: int | None
    search: bool


def check_matmul(
    d: ArrayLike,
    a: Operand,
    b: Operand,
    c: ArrayLike | None = None,
    *,
    unit: DeviceName | SumType,
    instruction: Instruction | None = None,
    accumulator: DTypeLike | None = None,
    rounding: Tf32Rounding | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    bias: ArrayLike | None = None,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
    promote_every: int | None = None,
    factor: float = 1.0,
    sample: int | None = None,
    search: bool = True,
) -> Check:
    """Check the results of a matrix product without a tolerance.

    Parameters
    ----------
    d : array_like
        The results of alpha * (a @ b) + beta * c + bias, of shape (..., m, n). Arrays
        of NumPy, CuPy and PyTorch are accepted.
    a, b : array_like, BlockArray or TileArray
        The operands, as for `tf32dtype.tensor_core.matmul`. Those with blocks must be
        matrices or vectors.
    c : array_like, optional
        An array that broadcasts to the shape of `d`.
    unit : str
        The device whose unit computed the product, as in
        `tf32dtype.tensor_core.devices`. "float32" and "float64" stand for a program
        that multiplies and adds in this format, in any order.
    instruction, accumulator : str, optional
        As for `tf32dtype.tensor_core.matmul`.
    rounding : str, optional
        How float32 operands became tf32. By default both the rounding of the vendor's
        library and the truncation of the unit are tried.
    alpha, beta : float
        Factors of the product and of `c`.
    bias : array_like, optional
        An array that broadcasts to the shape of `d`, such as one number per column.
    scale_a, scale_b : array_like, optional
        Scales of the operands: a number; one number per row of `a`, of shape (m, 1), or
        per column of `b`, of shape (1, n); or one per row and range of k, of shapes (m,
        groups) and (groups, n). Fewer rows or columns stand for blocks of equal size.
    promote_every : int, optional
        The k after which sums are added to other float32 accumulators.
    factor : float
        A factor of all bounds.
    sample : int, optional
        About how many elements to check, of rows and columns drawn at random. By
        default, all elements are checked, or 2^20 if there are more than 2^36
        multiplications.
    search : bool
        Whether to try all ways that `tf32dtype.tensor_core.identify` knows, which takes
        seconds. False: try one chain of all k.

    Returns
    -------
    Check
        The verdict. "identical": all bits are those of a known way. "within bound": no
        known way gives these bits, but rounding in some order may explain each element.
        "wrong": no order gives some of the elements.

    Raises
    ------
    TypeError, ValueError
        For operands that the unit does not multiply, shapes that do not fit, and
        unknown names.

    See Also
    --------
    assert_matmul : Raise an error for a wrong product.
    tf32dtype.error_bound : Compute the bound.
    tf32dtype.tensor_core.identify : Find all ways that give the same bits.

    Notes
    -----
    The bound holds for any order of the products, any division of k into parts, and any
    order in which the float32 sums of parts are added: see
    :doc:`/concepts/error_bounds`. Partial sums must not be stored in a narrower format
    than that of the accumulators.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 64, 64)).astype(td.bfloat16)
    >>> d = td.tensor_core.matmul(a[:, 16:], b[16:], device="H100")
    >>> check = td.testing.check_matmul(d, a, b, unit="H100")
    >>> check.verdict, check.diagnoses
    ('wrong', ('k 0 to 15 is missing: all elements',))
    """
    blocks = None
    if is_blocks(a) or is_blocks(b):
        if scale_a is not None or scale_b is not None:
            raise ValueError("scale_a and scale_b must be None for arrays of blocks")
        blocks = block_operands(a, b, unit, instruction, accumulator)
    asked = request(
        d, a, b, c, alpha, beta, bias, scale_a, scale_b, promote_every, blocks
    )  # fmt: skip
    bounds = checked_number(factor, "factor")
    if not 0 < bounds < math.inf:
        raise ValueError(f"factor must be above 0 and finite; got {brief(factor)}")
    checked_flag(search, "search")
    if asked.d.size == 0:
        raise ValueError(f"d must not be empty; got shape {asked.d.shape}")
    count = _sample(sample, asked)
    if count is not None and count < asked.d.size:
        asked = asked.sampled(count)
    reads = [reader(blocks, unit, instruction, accumulator, rounding)]
    is_single = np.float32 in (asked.a.dtype, asked.b.dtype)
    if rounding is None and is_single and unit not in PLAIN and blocks is None:
        library = _library(reads[0](*asked.matrices_of(0))[0])
        if library is not None:
            reads.append(reader(None, unit, instruction, accumulator, library))
    tries = [_Try(asked, bounds, read) for read in reads]
    return min(tries, key=lambda one: one.wrong).check(search)


#: Returns the unit, and two matrices as it reads them.
Reader = Callable[[Array, Array], tuple[Unit, Array, Array]]


def reader(
    blocks: BlockOperands | None,
    unit: Any,
    instruction: str | None,
    accumulator: DTypeLike | None,
    rounding: Tf32Rounding | None,
) -> Reader:
    """Return a function that reads matrices as a unit does."""
    if blocks is not None:
        of_blocks = blocks.unit
        return lambda a, b: (of_blocks, a, b)
    return lambda a, b: find_unit(unit, instruction, a, b, accumulator, rounding)


def _sample(sample: object, asked: Request) -> int | None:
    """Return how many elements to check; None for all."""
    if sample is None:
        work = asked.size * asked.a.shape[-1]
        return _SAMPLE if work > _LARGE else None
    try:
        count = operator.index(sample)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"sample must be an integer; got {brief(sample)}") from None
    if count < 1:
        raise ValueError(f"sample must be 1 or more; got {count}")
    return count


def _library(unit: Unit) -> Tf32Rounding | None:
    """Return how the vendor's library rounds float32 to tf32, if it does."""
    model = unit.model
    if not isinstance(model, Model) or "tf32" not in (model.a, model.b):
        return None
    library = model.library_rounding
    return None if library == "toward_zero" else library


class _Try:
    """A check with one rounding of the operands."""

    def __init__(self, asked: Request, factor: float, read: Reader) -> None:
        self._asked, self._read = asked, read
        self.unit = read(*asked.matrices_of(0))[0]
        self.shares = np.empty(asked.d.shape, np.float32)
        self._zeros = 0  # elements for which a zero would do
        for i, d in enumerate(asked.d):
            shares, zeros = self.product(i).shares(d)
            self.shares[i] = shares / np.float32(factor)
            self._zeros += zeros
        self.wrong = int((self.shares > 1).sum())

    def product(self, i: int) -> Product:
        """Return one matrix of the stack, as it should be."""
        asked = self._asked
        unit, a, b = self._read(*asked.matrices_of(i))
        return Product(
            a,
            b,
            unit,
            asked.d.dtype,
            c=None if asked.c is None else asked.c[i],
            alpha=asked.alpha,
            beta=asked.beta,
            bias=None if asked.bias is None else asked.bias[i],
            scale_a=asked.scale_a,
            scale_b=asked.scale_b,
            group=asked.group,
            exponents=asked.exponents,
        )

    def _case(self, i: int) -> Case:
        """Return matrix i for a diagnosis."""
        asked, product = self._asked, self.product(i)
        given = asked.matrices_of(i)
        rows, columns = np.arange(product.shape[0]), np.arange(product.shape[1])
        whole = product
        if asked.d.size < asked.size and asked.is_plain:
            # A change of all rows and columns needs the whole operands.
            given = asked.whole_matrices_of(i)
            rows, columns = asked.rows, asked.columns
            whole = Product(*self._read(*given)[1:], product.unit, product.dtype)
        doubles = (given[0].astype(np.float64), given[1].astype(np.float64))
        return Case(product, asked.d[i], self.shares[i], whole, rows, columns, doubles)

    def check(self, search: bool) -> Check:
        """Return the verdict."""
        asked, wrong = self._asked, self.shares > 1
        verdict: Verdict = "wrong"
        diagnoses: tuple[str, ...] = ()
        place = ""
        way: str | None = None
        if np.max(self.shares) <= _NEAR:  # a known way may store sums in fewer bits
            way = origin(asked, self._read, search)
        if way is not None:
            verdict = "identical"
        elif not self.wrong:
            verdict = "within bound"
        else:
            i = int(np.argmax(wrong.sum(axis=(1, 2))))
            with np.errstate(all="ignore"):
                diagnoses = tuple(diagnose(self._case(i)))
            place = _place(wrong, asked)
        worst = np.unravel_index(int(np.argmax(self.shares)), self.shares.shape)
        counts = np.bincount(
            np.searchsorted(EDGES, self.shares.ravel()), minlength=len(EDGES)
        )
        return Check(
            verdict=verdict,
            unit=self.unit.name,
            origin=way,
            diagnoses=diagnoses,
            wrong=0 if verdict == "identical" else self.wrong,
            zeros=self._zeros,
            place=place,
            size=asked.size,
            worst=self._worst(*(int(x) for x in worst)),
            distribution=tuple(counts.tolist()),
            shares=self.shares,
        )

    def _worst(self, matrix: int, row: int, column: int) -> Worst:
        rows, columns = slice(row, row + 1), slice(column, column + 1)
        values = self.product(matrix).part(rows, columns).values()
        return Worst(
            self._asked.index(matrix, row, column),
            float(self._asked.d[matrix, row, column]),
            float(values.exact[0, 0]),
            float(values.bound[0, 0]),
            float(self.shares[matrix, row, column]),
        )


def _place(wrong: Array, asked: Request) -> str:
    """Say where wrong elements are; a sample has no neighbors."""
    if wrong.size < asked.size:
        _, rows, columns = np.nonzero(wrong)
        return f"in {len(set(rows))} of {wrong.shape[1]} rows and" + (
            f" {len(set(columns))} of {wrong.shape[2]} columns of the sample"
        )
    matrices = np.flatnonzero(wrong.any(axis=(1, 2)))
    if len(wrong) == 1:
        return where(wrong[0])
    first = int(np.argmax(wrong.sum(axis=(1, 2))))
    some = f"{len(matrices)} of {len(wrong)} matrices"
    return f"{some}; in matrix {first}: {where(wrong[first])}"
