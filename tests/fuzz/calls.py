"""Operations that the fuzzer calls, and their expected dtypes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz.draw import Draw
from tests.support import oracle

UNARY = """absolute negative positive square sqrt reciprocal exp exp2 expm1 log log2
log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt
rint floor ceil trunc sign fabs degrees radians deg2rad rad2deg isnan isinf isfinite
signbit logical_not conjugate spacing modf frexp invert""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod power float_power
maximum minimum fmax fmin arctan2 hypot copysign nextafter heaviside logaddexp
logaddexp2 equal not_equal less less_equal greater greater_equal logical_and logical_or
logical_xor divmod ldexp bitwise_and gcd""".split()
# Reductions whose value does not depend on the order of the elements.
ORDERLESS = set("maximum minimum fmax fmin logical_and logical_or logical_xor".split())
EXACT_REDUCTIONS = ORDERLESS | set(
    "max min any all argmax argmin count_nonzero nanmax nanmin median".split()
)
NEAR_REDUCTIONS = {"add", "multiply", "sum", "prod", "nansum", "mean"}
OPERATORS: tuple[Callable[..., Any], ...] = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.mod),
    *(operator.floordiv, operator.pow, operator.lt, operator.eq, divmod),
)
CASTINGS = ("equiv", "safe", "same_kind", "unsafe")
SEQUENTIAL = set(BINARY) - {"add", "multiply"}


class Call(NamedTuple):
    """A call of `function(*operands)`. `dtypes` are those of its results, None if open.

    `value` is the required agreement with contiguous copies. "bits": all bits of our
    dtypes are equal. "exact": the bits of NumPy's dtypes are equal, too. "near": sums
    and products in another order are near. "open": steps that are each rounded may
    differ. `errors` are the exceptions of which the call must raise one, () for none,
    or None if it is open which arguments are invalid.
    """

    label: str
    function: Callable[..., Any]
    operands: Sequence[Any]
    dtypes: tuple[np.dtype, ...] | type[Exception] | None = None
    value: str = "bits"
    errors: tuple[type[Exception], ...] | None = None


class Calls(Draw):
    """Draw calls: one method for each kind of call."""

    def __init__(self, scalar_types: Sequence[Any]) -> None:
        super().__init__(scalar_types)
        self.expected: dict[Any, Any] = {}
        self.kinds: dict[Callable[[], Call], int] = {  # and the frequency
            self.unary: 20,
            self.binary: 30,
            self.method: 20,
            self.cast: 20,
            self.index: 10,
            self.assign: 10,
            self.reduction: 15,
            self.order: 12,
            self.move: 12,
            self.scalar: 12,
        }

    # -- expectations ------------------------------------------------------------

    def results(self, name: str, dtypes: Sequence[np.dtype]) -> Any:
        """Return result dtypes of a ufunc, or the exception, from those of float16."""
        key = (name, *dtypes)
        if key not in self.expected:
            self.expected[key] = self._results(name, dtypes)
        return self.expected[key]

    def _results(self, name: str, dtypes: Sequence[np.dtype]) -> Any:
        inputs = dtypes[:1] if name == "ldexp" else dtypes
        known = [d.newbyteorder("=").name for d in inputs]
        both = known[0] if len(known) == 1 else oracle.common(*known)
        ours = next((d for d in self.ours if d.name == both), None)
        stand_in = np.dtype(np.float16 if ours is not None else both)
        arguments = [np.ones(1, stand_in) for _ in inputs]
        if name == "ldexp":
            arguments.append(np.ones(1, dtypes[1]))
        try:
            with np.errstate(all="ignore"):
                out = getattr(np, name)(*arguments)
        except TypeError:
            return TypeError
        outs = out if isinstance(out, tuple) else (out,)
        return tuple(ours if ours and o.dtype == stand_in else o.dtype for o in outs)

    # -- operations --------------------------------------------------------------

    def keywords(self, shape: tuple[int, ...]) -> tuple[dict[str, Any], list[Any]]:
        """Draw where=, casting= and dtype= of a ufunc call; return also the masks."""
        r = self.random
        keywords: dict[str, Any] = {}
        if r.random() < 0.1:
            keywords["casting"] = r.choice(CASTINGS)
        if r.random() < 0.1:
            keywords["dtype"] = self.dtype().newbyteorder("=")
        masks = [self.mask(self.broadcastable(shape))] if r.random() < 0.2 else []
        return keywords, masks

    def ufunc_call(
        self, name: str, operands: list[Any], shape: Any, dtypes: Any
    ) -> Call:
        """Return a call with or without out=, where=, dtype= and casting=."""
        r = self.random
        ufunc = getattr(np, name)
        keywords, masks = self.keywords(shape)
        open_ended = bool(keywords)
        outs: list[np.ndarray] = []
        if masks or r.random() < 0.3:
            exact = dtypes if isinstance(dtypes, tuple) else [self.dtype()] * ufunc.nout
            open_ended |= r.random() < 0.3
            outs = [
                self.output(self.dtype() if open_ended else d, shape) for d in exact
            ]
            if r.random() < 0.3 and not open_ended:
                self.overlap(operands, outs)
        inputs = len(operands)

        def function(*arrays: Any) -> Any:
            extra: dict[str, Any] = dict(keywords)
            if masks:
                extra["where"] = arrays[-1]
            if outs:
                extra["out"] = arrays[inputs : inputs + len(outs)]
            return ufunc(*arrays[:inputs], **extra)

        label = f"{name} {keywords} where={bool(masks)} out={[o.dtype for o in outs]}"
        expected = None if open_ended else dtypes
        plain = not outs and not keywords
        value = (
            "bits" if plain or not self.is_theirs(ufunc, operands, keywords) else "open"
        )
        return Call(label, function, [*operands, *outs, *masks], expected, value)

    def is_theirs(
        self, ufunc: np.ufunc, operands: list[Any], keywords: dict[str, Any]
    ) -> bool:
        """Return whether NumPy's own loops or casts may compute. Their NaN signs, fmin
        over an operand's memory and integers out of range depend on the layout."""
        used = [x.dtype for x in operands if isinstance(x, np.ndarray)]
        used += [keywords["dtype"]] if "dtype" in keywords else []
        return ufunc is np.float_power or any(
            d.kind in "fc" and d not in self.ours for d in used
        )

    def overlap(self, operands: list[Any], outs: list[np.ndarray]) -> None:
        """Let one operand overlap the memory of the first output."""
        for number, operand in enumerate(operands):
            if isinstance(operand, np.ndarray) and operand.dtype == outs[0].dtype:
                if operand.shape == outs[0].shape and self.random.random() < 0.3:
                    operands[number] = outs[0]
                    return
                count = max(
                    math.prod(max(n, 1) for n in x.shape) for x in (operand, outs[0])
                )
                size = 4 * (count + 2) * operand.itemsize
                if size <= len(self.memory[operand.dtype]):
                    memory = bytearray(self.memory[operand.dtype][-size:])
                    outs[0] = self.view(memory, operand.dtype, outs[0].shape)
                    inner = self.strides(operand.shape, operand.itemsize, True)
                    operands[number] = np.ndarray(
                        operand.shape, operand.dtype, memory, -inner[1], inner[0]
                    )
                return

    def unary(self) -> Call:
        r = self.random
        name, dtype, shape = r.choice(UNARY), r.choice(self.ours), self.shape()
        dtypes = self.results(name, [dtype])
        return self.ufunc_call(name, [self.array(dtype, shape)], shape, dtypes)

    def binary(self) -> Call:
        r = self.random
        name, shape = r.choice(BINARY), self.shape()
        pair = [r.choice(self.ours), self.dtype()]
        if r.random() < 0.5:
            pair[1] = pair[0]
        if name == "ldexp":
            pair[1] = np.dtype(r.choice(("i1", "i4", "i8")))
        elif r.random() < 0.3:
            pair.reverse()
        dtypes = self.results(name, pair)
        operands: list[Any] = [self.array(pair[0], shape)]
        operands.append(self.array(pair[1], self.broadcastable(shape)))
        if pair[0] in self.ours and r.random() < 0.1 and name != "ldexp":
            operands[1] = r.choice((2, -1, 0, 0.5, -1.5, True, 3.0))
            dtypes = self.results(name, [pair[0], pair[0]])
        return self.ufunc_call(name, operands, shape, dtypes)

    def method(self) -> Call:
        """Call reduce, accumulate, reduceat, outer or at."""
        r = self.random
        name = r.choice(BINARY)
        method = r.choice(("reduce", "accumulate", "reduceat", "outer", "at"))
        ufunc = getattr(getattr(np, name), method)
        dtype = r.choice(self.ours)
        x = self.array(dtype, self.shape())
        dtypes = self.results(name, [dtype, dtype])
        label = f"{name}.{method}"
        if getattr(np, name).nout > 1 or name == "ldexp":
            return Call(label, lambda a: ufunc(a, a), [x])
        if method == "outer":
            x = x[:20] if x.ndim else x
            y = self.array(dtype, self.shape(r.randrange(3)))
            return Call(label, ufunc, [x, y], dtypes)
        if method == "at":
            target = self.output(dtype, self.shape(r.choice((1, 1, 2))))
            n = r.randrange(6)
            places = np.array([r.randrange(-2, 4) for _ in range(n)], np.intp)
            y = self.array(dtype, (n, *target.shape[1:]))

            def at(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                ufunc(a, places, b)
                return a

            return Call(label, at, [target, y])
        same = isinstance(dtypes, tuple) and dtypes[0] == dtype
        in_order = same and x.ndim == 1 and name in SEQUENTIAL
        value = "bits" if name in ORDERLESS or in_order else "open"
        axis: Any = r.randrange(x.ndim) if x.ndim else 0
        if method == "accumulate":
            return Call(label, lambda a: ufunc(a, axis=axis), [x], value=value)
        if method == "reduceat":
            n = x.shape[axis] if x.ndim else 0
            starts = [r.randrange(n + 1) for _ in range(r.randrange(4))]
            return Call(label, lambda a: ufunc(a, starts, axis=axis), [x], value=value)
        return self.reduce(name, x, dtypes if same else None)

    def reduce(self, name: str, x: np.ndarray, dtypes: Any) -> Call:
        r = self.random
        ufunc = getattr(np, name)
        axes = [None, *range(x.ndim), tuple(range(x.ndim))[: r.randrange(1, 4)]]
        keywords: dict[str, Any] = {"axis": r.choice(axes)}
        if r.random() < 0.3:
            keywords["keepdims"] = True
        if r.random() < 0.2:
            keywords["initial"] = r.choice((0, 1, 2.5))
        masks = []
        if r.random() < 0.3:
            masks = [self.mask(self.broadcastable(x.shape))]

        def function(a: np.ndarray, *where: np.ndarray) -> Any:
            extra = {"where": where[0]} if where else {}
            return ufunc.reduce(a, **keywords, **extra)

        label = f"{name}.reduce {keywords} where={bool(masks)}"
        return Call(label, function, [x, *masks], dtypes, self.agreement(name))

    @staticmethod
    def agreement(name: str) -> str:
        """Return how a reduction must agree with that of a contiguous copy."""
        if name in EXACT_REDUCTIONS:
            return "bits"
        return "near" if name in NEAR_REDUCTIONS else "open"

    def cast(self) -> Call:
        r = self.random
        source, target = r.choice(self.ours), self.dtype()
        if r.random() < 0.1:
            target = np.dtype(r.choice(("O", "U8", "S8", "U", "S")))
        elif r.random() < 0.4:
            source, target = target, source
        x = self.array(source, self.shape())
        order, casting = r.choice("KCFA"), r.choice(("unsafe",) * 4 + CASTINGS)
        if r.random() < 0.3 and target in self.memory:
            out = self.output(target, x.shape)

            def copy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                np.copyto(b, a, casting=casting)
                return b

            dtypes = (target,) if casting == "unsafe" else None
            return Call(f"copyto {source} {target} {casting}", copy, [x, out], dtypes)
        dtypes = (target,) if casting == "unsafe" and target.kind not in "US" else None
        return Call(
            f"astype {source} {target} {casting}",
            lambda a: a.astype(target, order=order, casting=casting),
            [x],
            dtypes,
        )

    def key(self, shape: tuple[int, ...]) -> Any:
        """Draw an index: integers, slices, Ellipsis, newaxis, masks, integer arrays."""
        r = self.random
        if r.random() < 0.15:
            return np.array(self.mask(shape))
        parts: list[Any] = []
        for n in shape[: r.randrange(len(shape) + 1)]:
            kind = r.random()
            if kind < 0.3:
                parts.append(r.randrange(-n - 1, n + 1))
            elif kind < 0.6:
                ends = [None, *range(-3, 6)]
                parts.append(
                    slice(r.choice(ends), r.choice(ends), r.choice((None, -1, 2)))
                )
            elif kind < 0.8 and n:
                parts.append(np.array([r.randrange(-n, n) for _ in range(3)]))
            else:
                parts.append(r.choice((None, slice(None))))
        if r.random() < 0.2:
            parts.insert(r.randrange(len(parts) + 1), Ellipsis)
        return tuple(parts)

    def index(self) -> Call:
        dtype = self.random.choice(self.ours)
        x = self.array(dtype, self.shape())
        key = self.key(x.shape)
        return Call(f"[{key}]", lambda a: a[key], [x], (dtype,))

    def assign(self) -> Call:
        r = self.random
        dtype = r.choice(self.ours)
        x = self.output(dtype, self.shape())
        key = self.key(x.shape)
        value: Any = r.choice(
            (0, -1.5, True, float("nan"), "1.25", 10**30, np.float32(2))
        )
        if r.random() < 0.5:
            try:
                shape = x[key].shape
            except IndexError:
                shape = ()
            value = self.array(self.dtype(), self.broadcastable(shape))

        def assign(a: np.ndarray, v: Any) -> np.ndarray:
            a[key] = v
            return a

        return Call(f"[{key}] = {value!r:.40}", assign, [x, value], (dtype,))

    def reduction(self) -> Call:
        r = self.random
        dtype = r.choice(self.ours)
        x = self.array(dtype, self.shape())
        axis: Any = r.choice([None, *range(x.ndim)])
        name = r.choice(
            """sum prod mean var std max min any all argmax argmin cumsum cumprod ptp
            count_nonzero nansum nanmax nanmean median""".split()
        )
        same = (dtype,)
        dtypes: Any = {
            **dict.fromkeys(("any", "all"), (np.dtype("?"),)),
            **dict.fromkeys(("argmax", "argmin", "count_nonzero"), (np.dtype("intp"),)),
        }.get(name, same)
        keywords: dict[str, Any] = {"axis": axis}
        if name in ("sum", "prod", "mean") and r.random() < 0.3:
            keywords["dtype"] = r.choice((np.float32, dtype))
            dtypes = (np.dtype(keywords["dtype"]),)
        return Call(
            f"{name} {dtype} {keywords}",
            lambda a: getattr(np, name)(a, **keywords),
            [x],
            dtypes,
            self.agreement(name),
        )

    def order(self) -> Call:
        """Call functions that sort and search."""
        r = self.random
        dtype = r.choice(self.ours)
        x = self.array(dtype, self.shape())
        axis = r.choice([-1, *range(x.ndim)])
        kind = r.choice(("quicksort", "stable", "heapsort"))
        n = x.shape[axis] if x.ndim else 1
        k = r.randrange(max(n, 1))
        y = self.array(dtype, self.shape(1))
        index = (np.dtype(np.intp),)
        calls = [
            Call("sort", lambda a: np.sort(a, axis, kind=kind), [x], (dtype,)),
            Call("argsort", lambda a: np.argsort(a, axis, kind="stable"), [x], index),
            Call("partition", lambda a: np.partition(a, k, axis).take(k, axis), [x]),
            Call(
                "searchsorted",
                lambda a, b: np.searchsorted(np.sort(a), b),
                [y, x],
                index,
            ),
            Call("unique", lambda a: np.unique(a), [x], (dtype,)),
            Call("lexsort", lambda a: np.lexsort((a,)), [y], index),
            Call("isin", np.isin, [x, y], (np.dtype("?"),)),
            Call("digitize", lambda a, b: np.digitize(a, np.sort(b)), [x, y], index),
            Call("percentile", lambda a: np.percentile(a, 30), [x], None),
        ]
        return r.choice(calls)

    def move(self) -> Call:
        """Call functions that select and move elements."""
        r = self.random
        dtype = r.choice(self.ours)
        x = self.array(dtype, self.shape())
        y = self.array(dtype, x.shape)
        mask = self.mask(x.shape)
        other = self.array(self.dtype(), x.shape)
        names = [d.newbyteorder("=").name for d in (dtype, other.dtype)]
        both = oracle.common(*names)
        common = next((d for d in self.ours if d.name == both), None) or np.dtype(both)
        n = max(x.size, 1)
        places = np.array([r.randrange(n) for _ in range(4)])
        calls = [
            Call("where", np.where, [mask, x, y], (dtype,)),
            Call("where", np.where, [mask, x, other], (common,)),
            Call("where 0.5", lambda m, a: np.where(m, a, 0.5), [mask, x], (dtype,)),
            Call(
                "concatenate",
                lambda a, b: np.concatenate((a, b)),
                [x, other],
                (common,),
            ),
            Call("take", lambda a: np.take(a, places, mode="wrap"), [x], (dtype,)),
            Call("repeat", lambda a: np.repeat(a, 2), [x], (dtype,)),
            Call("clip", lambda a: np.clip(a, -1, 2), [x], (dtype,)),
            Call("clip", np.clip, [x, y, y], (dtype,)),
            Call("roll", lambda a: np.roll(a, 3), [x], (dtype,)),
            Call("nonzero", np.nonzero, [x], None),
            Call("round", lambda a: np.round(a, 1), [x], (dtype,)),
            Call("nan_to_num", np.nan_to_num, [x], (dtype,)),
            Call(
                "choose", lambda m, a, b: np.choose(m, (a, b)), [mask, x, y], (dtype,)
            ),
            Call("tolist", lambda a: np.array(a.tolist(), dtype), [x], (dtype,)),
            Call("putmask", _putmask, [self.output(dtype, x.shape), mask, y], (dtype,)),
            Call("diff", lambda a: np.diff(a), [x], (dtype,)),
            Call("copysign", lambda a: np.pad(a, 1), [x], (dtype,)),
            Call("isclose", np.isclose, [x, y], (np.dtype("?"),)),
        ]
        return r.choice(calls)

    def scalar(self) -> Call:
        """Call an operator between scalars: ours, NumPy's, Python's."""
        r = self.random
        dtype = r.choice(self.ours)
        operation = r.choice(OPERATORS)
        x = self.array(dtype, ())[()]
        y: Any = self.array(self.dtype(), ())[()]
        weak = r.choice((2, 0, -3, 0.5, True, float("inf"), 10**18, 1 + 2j))
        if r.random() < 0.4:
            y = weak
        if r.random() < 0.3:
            x, y = y, x
        unary = (float, int, bool, complex, repr, str, hash, abs, operator.neg, round)
        if r.random() < 0.2:
            function = r.choice(unary)
            return Call(
                f"{function.__name__} {dtype}", function, [self.array(dtype, ())[()]]
            )
        name = {operator.sub: "subtract", operator.mul: "multiply"}.get(operation, "")
        name = name or ("add" if operation is operator.add else "")
        dtypes = None
        if name and isinstance(x, np.generic) and isinstance(y, np.generic):
            dtypes = self.results(name, [x.dtype, y.dtype])
        elif name and not isinstance(x if isinstance(y, np.generic) else y, complex):
            dtypes = self.results(name, [dtype, dtype])
        label = f"{operation.__name__} {x!r} {y!r}"
        return Call(label, operation, [x, y], dtypes)


def _putmask(a: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    np.putmask(a, mask, values)
    return a
