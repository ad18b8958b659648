"""Identify the tensor core that computed a product, and how the library added."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.matrices import check_shape
from .._base.text import progress
from .._base.wording import brief
from .._formats.table import format_of_dtype
from .device import MODELS, DeviceName
from .hypotheses import Entry, Hypothesis, Identification, parameters
from .models import Instruction, Model
from .problem import BLOCK, Problem, SumType, as_results
from .products import as_operand, plain_array
from .splits import Bundle, Each, Elements, Table, Way, bundles, evaluate, ways, whole

Array = NDArray[Any]

#: Numbers of elements that ways are tried on first. The ways that are left are then
#: tried on all elements.
_FIRST = (8, 128)
#: The number of best ways per model that are tried on all elements in any case.
_NEAR = 3
#: The most numbers in a table of sums; the most elements times ways to compare.
_TABLE, _WORK = 1 << 25, 1 << 33
#: If more hypotheses are left after a block of elements, no more blocks are compared.
_MANY = 64
#: The search on 8-bit results stops if so many hypotheses give the elements on which
#: models differ most.
_ENOUGH = 100
#: The search does not stop if hypotheses per model times results are at most this.
_CHEAP = 1 << 18
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
    rounded to nearest at the end. See :doc:`/how_to/explain_differences`.

    Many hypotheses agree on small integers, on results of few bits, and if k is short.
    Use operands whose exponents differ widely, and a long k. If every model gives 8-bit
    results by one chain, the search stops as soon as a hundred hypotheses give the
    elements on which models differ most. `Identification.tells_nothing` is then True:
    pass float32 results instead. On a terminal, a progress bar appears after two
    seconds. If thousands of hypotheses explain all compared elements of many results,
    the other elements may not be compared: `Hypothesis.compared` has their number.

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
    if (alpha, beta, bias, scale_a, scale_b) != (1, 1, None, None, None):
        raise NotImplementedError("alpha, beta, bias and scales are not searched yet")
    problem = Problem(a, b, c, results.dtype, unit, instruction)
    known = problem.models()
    check_shape(results.shape, problem.shape, "d")
    groups: dict[tuple[Any, ...], list[Model]] = {}
    for model in known:
        groups.setdefault(parameters(model), []).append(model)
    searches = []
    told = True
    steps = len(groups) * (1 if one_chain else 2)
    with progress(True, "identifying", steps, sys.stderr, after=_PATIENCE) as advance:
        for models in groups.values():
            searches.append(_Search(models, problem, results.ravel()))
            advance()
        if not one_chain:
            order = _telling(searches, results.ravel())
            # Results that do not distinguish models hardly distinguish ways to add.
            few_bits = results.dtype.itemsize == 1
            unlike = few_bits and any(not s.agrees.all() for s in searches)
            for search in searches:
                told = search.run(order, few_bits and not unlike)
                advance()
                if not told:
                    break
    found = [entry for search in searches for entry in search.found()]
    place = {id(model): i for i, model in enumerate(MODELS)}
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


def _equal(product: Array, results: Array) -> Array:
    """Return where all bits are equal; any two NaN count as equal."""
    bits = f"u{product.dtype.itemsize}"
    same: Array = product.view(bits) == results.view(bits)
    unlike = np.flatnonzero(~same.all(axis=0))
    if len(unlike):
        nan = np.isnan(results[unlike])
        both = unlike[nan]
        if len(both):
            same[:, both] = np.isnan(product[:, both])
    return same


def _telling(searches: Sequence[_Search], results: Array) -> Array:
    """Return indices of elements, first those that distinguish the models best.

    These are elements that few models agree on. If results were rounded, they are the
    elements whose sums are near a tie.
    """
    some = np.arange(0, results.size, max(1, results.size >> 16))
    some = np.random.default_rng(0).permutation(some)
    telling = np.zeros(len(some), np.int64)
    for search in searches:
        total = search.plain[some]
        telling += 4 * search.agrees[some]
        if total.dtype != results.dtype:
            for error in (2.0**-21, 2.0**-18, 2.0**-15):
                with np.errstate(all="ignore"):
                    low, high = (
                        total * total.dtype.type(1 + e) for e in (-error, error)
                    )
                both = (as_results(x, results.dtype, False) for x in (low, high))
                telling += _equal(next(both)[np.newaxis], next(both))[0]
    return some[np.argsort(telling, kind="stable")]


class _State:
    """The ways of a bundle: splits that explain all results so far, with counts."""

    def __init__(self, bundle: Bundle, ways: Sequence[Way], roundings: int) -> None:
        self.bundle, self.ways = bundle, ways
        shape = len(ways), len(bundle), roundings
        self.alive = np.ones(shape, bool)
        #: ways that do not explain all, and are tried on all elements nevertheless
        self.kept = np.zeros(shape, bool)
        self.explains = np.zeros(shape, np.int64)

    def which(self) -> Array:
        """Return the splits that are still tried."""
        return np.flatnonzero((self.alive | self.kept).any(axis=(0, 2)))


class _Search:
    """All hypotheses of models that compute the same."""

    def __init__(self, models: Sequence[Model], problem: Problem, d: Array) -> None:
        self.models = models
        # The shortest instructions: a cut between longer ones is also one of these.
        self._model = min(models, key=lambda model: model.instruction_depth)
        self._problem, self._d = problem, d
        self._saturates = (False, True) if d.dtype.itemsize == 1 else (False,)
        self._with_c = bool(problem.c(self._model).tobytes().strip(b"\0"))
        self._chain = self._state(whole(problem.k))
        self._states: list[_State] = []
        self._compared = d.size
        #: sums of one chain that begins with c, and where they equal the results
        wide = np.promote_types(self._model.accumulator, np.float32)
        self.plain, self.agrees = np.empty(d.size, wide), np.empty(d.size, bool)
        chain = self._chain.bundle.split(0)
        for where, elements in problem.blocks(self._model, BLOCK):
            for i, way in enumerate(self._chain.ways):
                total = elements.add([chain], way)
                same = self._same(total, d[where])
                self._chain.explains[i] += same.sum(axis=1)
                if i == 0:
                    self.plain[where] = total[0]
                    self.agrees[where] = same[0].any(axis=-1)
        self._chain.alive = self._chain.explains == d.size

    def _state(self, bundle: Bundle) -> _State:
        tried = ways(bundle.parts, bundle.chains, with_c=self._with_c)
        return _State(bundle, tried, len(self._saturates))

    def _same(self, totals: Array, d: Array) -> Array:
        """Return where sums, (splits, elements), equal the results, per rounding."""
        rounded = (as_results(totals, d.dtype, how) for how in self._saturates)
        return np.stack([_equal(x, d) for x in rounded], axis=-1)

    @property
    def tried(self) -> int:
        """The number of hypotheses of all models."""
        counts = (len(s.ways) * len(s.bundle) for s in (self._chain, *self._states))
        return sum(counts) * len(self.models)

    def run(self, order: Array, may_stop: bool) -> bool:
        """Try all divisions of k, first on the elements that distinguish models best.

        Return False if `may_stop` is true and `_ENOUGH` hypotheses give these elements.
        """
        model, problem = self._model, self._problem
        found = bundles(problem.k, model.instruction_depth)
        if not found or not self._d.size:
            return True
        self._states = [self._state(bundle) for bundle in found]
        may_stop &= self.tried // len(self.models) * self._d.size > _CHEAP
        for count in _FIRST:
            which = problem.first(order, count)
            self._compare(problem.some(model, which), self._d[which.ravel()])
            self._drop(which.size)
            if may_stop and count == _FIRST[-1] and self._left() >= _ENOUGH:
                self._compared = which.size
                return False
            self._forget()
        self._compared = 0
        for where, elements in problem.blocks(model, self._most()):
            self._compare(elements, self._d[where])
            self._compared += elements.c.size
            self._drop(self._compared)
            if self._left() > _MANY:
                break
        return True

    def _compare(self, elements: Elements, d: Array) -> None:
        """Count the elements that each remaining way explains."""
        there = [(state, state.which()) for state in self._states]
        pairs = [state.bundle.pairs(which) for state, which in there]
        table = Table(elements, np.concatenate(pairs))
        for state, which in there:
            for way, some, totals in evaluate(state.bundle, state.ways, table, which):
                state.explains[way, some] += self._same(totals, d).sum(axis=1)

    def _drop(self, count: int) -> None:
        """Drop what does not explain all; if nothing does, keep the nearest."""
        for state in self._states:
            state.alive &= state.explains == count
        if self._left() or any(state.kept.any() for state in self._states):
            return
        best = [
            (-state.explains.flat[i], number, i)
            for number, state in enumerate(self._states)
            for i in np.argsort(-state.explains, axis=None, kind="stable")[:_NEAR]
        ]
        for _, number, i in sorted(best)[:_NEAR]:
            self._states[number].kept.flat[i] = True

    def _forget(self) -> None:
        for state in self._states:
            state.explains[:] = 0

    def _left(self) -> int:
        return sum(int(state.alive.sum()) for state in self._states)

    def _most(self) -> int:
        """How many elements to compute at once."""
        there = [(state.bundle, state.which()) for state in self._states]
        stretches = sum(len(bundle.pairs(which)) for bundle, which in there)
        cost = sum(
            len(which) * (bundle.parts + self._problem.k * isinstance(bundle, Each))
            for bundle, which in there
        )
        budget: int = max(256, _WORK // max(cost, 1))
        return min(BLOCK, _TABLE // max(stretches, 1), budget)

    def found(self) -> Iterator[Entry]:
        """Yield the hypotheses that explain all results."""
        for state in (self._chain, *self._states):
            for i, way in enumerate(state.ways):
                # Saturation does not matter if all sums are within the range.
                plain = state.alive[i, :, 0]
                for saturates in range(len(self._saturates)):
                    alive = state.alive[i, :, saturates] & ~(saturates & plain)
                    which = np.flatnonzero(alive)
                    if len(which):
                        yield from self._entries(state, i, way, which, bool(saturates))

    def nearest(self) -> Iterator[Hypothesis]:
        """Yield hypotheses that explain some results and were compared on all."""
        for state in (self._chain, *self._states):
            chain = state is self._chain
            some = ~state.alive & (state.kept | chain) & (state.explains > 0)
            for i, which, saturates in np.argwhere(some):
                way = state.ways[i]
                for entry in self._entries(state, i, way, [which], bool(saturates)):
                    yield entry.hypothesis(0)

    def _entries(
        self,
        state: _State,
        i: int,
        way: Way,
        which: Sequence[int] | Array,
        saturates: bool,
    ) -> Iterator[Entry]:
        rounded = self._d.dtype.name
        for model in self.models:
            yield Entry(
                model,
                state.bundle,
                way,
                (state.bundle.rank, state.bundle.parts, i),
                which,
                None if rounded == model.accumulator else rounded,
                saturates,
                state.explains[i, :, int(saturates)],
                self._d.size if state is self._chain else self._compared,
            )
