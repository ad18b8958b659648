"""Identify the tensor core that computed a product, and how the library added."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.matrices import check_shape
from .._base.text import progress
from .._base.wording import brief
from .._formats.table import format_of_dtype
from .cpu_units import SumType
from .device import MODELS, DeviceName
from .hypotheses import Identification, parameters
from .models import Instruction, Model
from .problem import Problem
from .products import as_operand, plain_array
from .scaling import Scaling
from .search import Search, telling

Array = NDArray[Any]

#: Seconds after which a progress bar is drawn.
_PATIENCE = 2.0


def identify(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None,
    d: ArrayLike,
    *,
    one_chain: bool = False,
    unit: DeviceName | SumType | None = None,
    instruction: Instruction | None = None,
    alpha: float = 1,
    beta: float = 1,
    bias: ArrayLike | None = None,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> Identification:
    """Find models and ways to add that give the results d of a @ b + c, in all bits.

    Parameters
    ----------
    a, b : array_like
        As for `matmul`; their dtypes choose the formats. float32 is read raw, as tf32.
    c : array_like or None
        The array that is added, as for `matmul`: of the dtype of accumulators or of
        `d`, or a number. None means +0.
    d : array_like
        The results to explain, of the product's shape. Their dtype is that of the
        accumulators (float32, float16 or float64), or a format that float32 sums were
        rounded to: bfloat16, float16, an FP8 format. Python numbers and lists become
        float32, and must be exact in it.
    one_chain : bool
        Whether all of k is one chain, in the order of the instructions' k. False: also
        try ways in which a library may have divided k into parts.
    unit : str, optional
        Try only the models of this device, by any name that `matmul` takes. "float32"
        and "float64" are the units of CPU libraries, which add in this dtype. None: all
        devices of `MODELS`.
    instruction : str, optional
        Try only the models of this instruction. None: all instructions.
    alpha, beta : float
        Factors of the product and of `c`: the results are
        alpha * (a @ b) + beta * c + bias.
    bias : array_like, optional
        An array that broadcasts to the shape of `d`, such as a vector of length n. It
        is added last. None means no bias.
    scale_a, scale_b : array_like, optional
        Scales of the operands: numbers, or arrays of shape (m, 1) and (1, n) with a
        scale per row of `a` and per column of `b`. Or scales of blocks of 128 k:
        `scale_a` of shape (m, k / 128), `scale_b` of shape (k / 128, n / 128) or
        (k / 128, n), rounded up. None means no scale.

    Returns
    -------
    Identification
        A sequence of `Hypothesis`, the simplest first, then in the order of `MODELS`.
        It is empty if no hypothesis gives all of `d`. It prints as a table that also
        has the nearest hypotheses. Any NaN counts as the model's NaN; all other results
        must be equal in every bit, including the sign of zero.

    Raises
    ------
    TypeError
        For a `d` of another dtype, and as `matmul` does.
    ValueError
        For shapes that do not fit, for a `d` whose shape is not the product's, and for
        formats that no model multiplies into these accumulators.

    See Also
    --------
    explain : Explain how one element is computed.

    Notes
    -----
    For each model the search tries one chain, all values of `promote_every` up to 512,
    and these divisions of k into 2 to 64 parts:

    - equal parts;
    - parts of equally many tiles of 16 to 256 k, where some parts have one tile more:
      the first parts, the last parts, or parts that begin at tile i * tiles // parts;
    - one cut anywhere, and the others at a fixed distance from it (stream-k);
    - parts that take turns of 16, 32, 64, 128 or 256 k (warps that share a tile).

    All cuts are at multiples of 16 and of an instruction's k, except that equal parts
    may end elsewhere. If k is above 16384, stream-k cuts are at multiples of k / 1024.
    The search does not try other divisions into three parts or more, nor promotions
    within parts.

    The sums of parts are added in float32, to nearest, in ascending or descending order
    or pairwise. Equal parts and parts that take turns may also be one chain in that
    order. `c` begins the sum or the first part, or is added last. Narrower results are
    rounded to nearest at the end. For bfloat16 and float16 results, up to 16 parts
    may also be rounded to that dtype before they are added, or the sum after each
    addition. See :doc:`/how_to/explain_differences`.

    The epilogue multiplies the sum by `alpha` and by scales of rows, and adds
    beta * c and the bias, in float32. It may fuse one multiplication and one addition,
    and may also round the sum to the dtype of `d` first, or before the bias. Scales
    multiply by their product or one after the other. Scales of blocks multiply the sum
    of each block, which is a chain of 128 k, before it is added to the sum of the
    blocks before it.

    For the units "float32" and "float64" the search tries fused multiply-adds, separate
    operations, and two chains of even and odd k. k is one chain, or blocks of up to
    1024 k, as OpenBLAS, MKL and oneDNN divide it, or 2 to 64 lanes of 1 to 8 vectors of
    accumulators. See :doc:`/reference/sum_orders`.

    Many hypotheses agree on small integers, on results of few bits, and if k is short.
    Use operands whose exponents differ widely, and a long k. If every model gives 8-bit
    results by one chain, the search stops as soon as a hundred hypotheses give the
    elements on which models differ most. `Identification.tells_nothing` is then True:
    pass float32 results instead. On a terminal, a progress bar appears after two
    seconds.

    Up to 65536 results are all compared. If there are more, a sample of whole rows is
    compared first. Hypotheses that explain the sample are then compared on all results,
    one block after the other, until more than 64 of them explain a block or more than
    four take too long. `Hypothesis.compared` is the number of compared elements.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x, y = np.float16([1, 2**-12, -1]), np.float16([1, 2**-13, 1])
    >>> for found in td.tensor_core.identify(x, y, None, np.float32(2**-25)):
    ...     print(found.name)
    H100 wgmma float16 -> float32
    H100 mma.sync float16 -> float32
    B200 tcgen05 float16 -> float32
    B200 mma.sync float16 -> float32
    RTX Blackwell mma.sync float16 -> float32
    MI100 mfma float16 -> float32
    AMX tdpfp16ps float16 -> float32

    Identify the results of a split-k kernel:

    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.standard_normal((2, 64, 64)).astype(np.float16)
    >>> first = td.tensor_core.matmul(x[:, :32], y[:32], device="A100")
    >>> second = td.tensor_core.matmul(x[:, 32:], y[32:], device="A100")
    >>> found = td.tensor_core.identify(x, y, None, first + second)
    >>> found[0].parts, found[0].order
    ((32, 32), 'ascending')
    """
    a, b = as_operand(a, "a"), as_operand(b, "b")  # before d: of integers it says more
    results = _results(d)
    scaling = Scaling(alpha, beta, bias, scale_a, scale_b)
    problem = Problem(a, b, c, results.dtype, scaling)
    known = problem.models(unit, instruction)
    check_shape(results.shape, problem.shape, "d")
    groups: dict[tuple[Any, ...], list[Model]] = {}
    for model in known:
        groups.setdefault(parameters(model), []).append(model)
    searches: list[Search] = []
    told = True
    steps = len(groups) * (1 if one_chain else 2)
    with progress(True, "identifying", steps, sys.stderr, after=_PATIENCE) as advance:
        for models in groups.values():
            searches.append(Search(models, problem, results.ravel()))
            advance()
        if not one_chain:
            order = telling(searches, results.ravel())
            # Results that do not distinguish models hardly distinguish ways to add.
            few_bits = results.dtype.itemsize == 1
            unlike = few_bits and any(not s.agrees.all() for s in searches)
            for search in searches:
                told = search.run(order, few_bits and not unlike)
                advance()
                if not told:
                    break
    found = [entry for search in searches for entry in search.found()]
    place = {id(model): i for i, model in enumerate(known)}
    found.sort(key=lambda entry: (*entry.simplicity, place[id(entry.model)]))
    nearest = [h for search in searches for h in search.nearest()]
    nearest.sort(key=lambda h: -h.explains / max(h.compared, 1))
    tried = sum(search.tried for search in searches)
    return Identification(found, nearest, tried, told)


def _results(d: Any) -> Array:
    """Return the results in this machine's byte order."""
    try:
        results = plain_array(d, "d")
    except ValueError as error:
        raise ValueError(f"d must be an array; got {brief(d)} ({error})") from None
    is_array = hasattr(d, "dtype") or hasattr(d, "__array__")
    if not is_array and results.dtype.kind in "iuf" and results.dtype.itemsize == 8:
        with np.errstate(all="ignore"):
            narrow = results.astype(np.float64).astype(np.float32)
        if not np.array_equal(narrow, results, equal_nan=results.dtype.kind == "f"):
            raise ValueError(
                f"d must hold values that float32 represents exactly; got {brief(d)}."
                " Pass an array of the dtype of the results"
            )
        return narrow
    if not _is_result(results.dtype):
        raise TypeError(
            "d must be float32, float16, float64, bfloat16 or an FP8 format; got"
            f" {results.dtype}"
        )
    return results


def _is_result(dtype: np.dtype[Any]) -> bool:
    if dtype.name in {model.accumulator for model in MODELS}:
        return True
    name = dtype.name if format_of_dtype(dtype) else ""
    return name == "bfloat16" or (name.startswith("float8_e") and "e8m0" not in name)
