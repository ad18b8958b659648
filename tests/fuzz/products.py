"""Products that the fuzzer calls: NumPy's, ours, and NumPy's under a precision."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td
from tests.fuzz.calls import Call, Calls
from tests.matmul.precision_cases import FP8, PRESETS, SPLIT
from tests.support import oracle

UFUNCS = ("matmul", "vecdot", "matvec", "vecmat")  # they take dtype=
EINSUMS = ("ij,jk", "bij,bkj->bik")
# dot, inner and vdot are looked up at each call: a block replaces them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (*UFUNCS, "outer")},
    "@": operator.matmul,
    "matmul axes": lambda a, b: np.matmul(a, b, axes=[(-1, -2), (-1, -2), (0, 1)]),
    "dot": lambda a, b, **out: np.dot(a, b, **out),
    "inner": lambda a, b: np.inner(a, b),
    "vdot": lambda a, b: np.vdot(a, b),
    "tensordot": lambda a, b: np.tensordot(a, b),
    "tensordot 1": lambda a, b: np.tensordot(a, b, 1),
    "tensordot axes": lambda a, b: np.tensordot(a, b, ([0, 2], [1, 0])),
    "multi_dot": lambda a, b: np.linalg.multi_dot([a, b, b.T]),
    "matrix_power": lambda a, b: np.linalg.matrix_power(a @ b, 3),
    "linalg.matmul": np.linalg.matmul,
    "linalg.vecdot": np.linalg.vecdot,
}
IN_BLOCKS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS,
    "ij,jk": lambda a, b: np.einsum("ij,jk", a, b, optimize=True),
    "bij,bkj->bik": lambda a, b: np.einsum("bij,bkj->bik", a, b, optimize=True),
    "td.matmul": td.matmul,
    "td.einsum": lambda a, b: td.einsum("bij,bkj->bik", a, b),
}

LENGTHS = (0, 1, 1, 2, 3, 5, 8, 16, 17, 33, 49, 65, 130, 260)
SUMMED = (0, 1, 2, 3, 5, 17, 31, 32, 33, 64, 100, 255, 256, 257, 300, 520)
STACKS = ((), (), (), (1,), (2,), (0,), (3, 1), (2, 3))

# Values of the keywords, the default first, and the precisions that take them.
KEYWORDS: dict[str, tuple[list[str], list[str]]] = {
    "rounding": (["ties_to_even", "ties_to_away", "toward_zero"], ["tf32"]),
    "scale": (["tensor", "row"], FP8),
    "special_values": (["propagate", "saturate"], SPLIT),
}
WRONG = ("", "bf17", "TF33", "up", None, 3, ("row",))
OPTIMIZE = (True, False, "greedy", "optimal", ("greedy", 100), ["optimal", 1e3])
WRONG_OPTIMIZE = ("", "up", None, 0, ["einsum_path", (0, 9)])

FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = (np.dtype(c) for c in "fdFD")

Errors = tuple[type[Exception], ...]


class Factors(NamedTuple):
    """Operands of a function, the shape of an output, and the expected errors."""

    name: str
    operands: list[np.ndarray]
    out_shape: tuple[int, ...] | None
    errors: Errors


class Products(Calls):
    """Draw calls: one method for each kind of product."""

    def __init__(self, scalar_types: Sequence[Any]) -> None:
        super().__init__(scalar_types)
        self.kinds |= {
            self.product: 10,
            self.matmul: 8,
            self.block: 8,
            self.einsum: 6,
        }
        self.finite = {d: m[-len(m) // 4 :] * 4 for d, m in self.memory.items()}

    # -- dtypes ------------------------------------------------------------------

    def common(self, dtypes: Sequence[np.dtype]) -> np.dtype:
        """Return the common dtype: of two by the contract, else by NumPy."""
        natives = [d.newbyteorder("=") for d in dtypes]
        if len(natives) != 2 or not any(d in self.ours for d in natives):
            return np.result_type(*natives)
        name = oracle.common(*(d.name for d in natives))
        return next((d for d in self.ours if d.name == name), None) or np.dtype(name)

    def like_float32(self) -> np.dtype:
        """Draw a dtype: often float32 or one that promotes to it, sometimes any."""
        r = self.random
        if r.random() < 0.7:
            return FLOAT32.newbyteorder() if r.random() < 0.2 else FLOAT32
        return np.dtype(r.choice("?bBhHe")) if r.random() < 0.6 else self.dtype()

    # -- operands ----------------------------------------------------------------

    def factor(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Draw an array, often finite: one NaN would fill a row of the result."""
        memory = self.finite if self.random.random() < 0.8 else self.memory
        return self.view(memory[dtype], dtype, shape)

    def lengths(self, greatest: int) -> tuple[int, int, int]:
        """Draw n, k and m, of which no two have a product above `greatest`."""
        r = self.random
        if r.random() < 0.01:
            return 1, r.randrange(4000, 4500), 1
        k = r.choice(SUMMED)
        n = r.choice([n for n in LENGTHS if n * k <= greatest])
        fitting = [m for m in LENGTHS if m * max(n, k) <= greatest]
        same = k * max(n, k) <= greatest and r.random() < 0.1
        return n, k, k if same else r.choice(fitting)

    def factors(self, names: Sequence[str], dtypes: Sequence[np.dtype]) -> Factors:
        """Draw operands for one of the functions."""
        r = self.random
        name = r.choice(names)
        stack = r.choice(STACKS)
        n, k, m = self.lengths(6000 if stack or name == "dot" else 14000)
        a, b = self.broadcastable(stack), self.broadcastable(stack)
        both = np.broadcast_shapes(a, b)
        matrices = ((*a, n, k), (*b, k, m), (*both, n, m))
        vectors = ((*a, k), (*b, k), both)
        batch = ((2, n, k), (2, m, k), None)
        products = (
            *(matrices, matrices, ((*a, n, k), (k,), (*a, n))),
            *(((k,), (*b, k, m), (*b, m)), ((k,), (k,), ())),
        )
        dots = (
            *(((n, k), (k, m), (n, m)), ((k,), (k,), ()), ((n, k), (k,), (n,))),
            ((2, n, k), (3, k, m), (2, n, 3, m)),
        )
        shapes: dict[str, Any] = {
            **dict.fromkeys(("matmul", "td.matmul"), r.choice(products)),
            "@": (*r.choice(products)[:2], None),
            "linalg.matmul": (*matrices[:2], None),
            "matmul axes": ((*a, k, n), (*b, m, k), None),
            "vecdot": vectors,
            "linalg.vecdot": (*vectors[:2], None),
            "matvec": ((*a, n, k), (*b, k), (*both, n)),
            "vecmat": ((*a, k), (*b, k, m), (*both, m)),
            "dot": r.choice(dots),
            "inner": ((n, k), (m, k), None),
            "outer": ((n,), (m,), None),
            "vdot": ((k,), (k,), None),
            "tensordot": ((n, k, 2), (k, 2, m), None),
            "tensordot 1": ((2, n, k), (k, m), None),
            "tensordot axes": ((k, n, 2), (2, k, m), None),
            "matrix_power": ((m, n), (n, m), None),
            **dict.fromkeys(("bij,bkj->bik", "td.einsum"), batch),
        }
        left, right, out = shapes.get(name, ((n, k), (k, m), None))
        if name in EINSUMS:
            # np.einsum (also of NumPy 2.5) writes into results that have no elements.
            left, right = (tuple(max(x, 1) for x in s) for s in (left, right))
        errors: Errors = ()
        last = name not in ("outer", "matmul axes") and left[-1] != 1
        if last and r.random() < 0.04:
            left, errors = (*left[:-1], left[-1] + 2), (ValueError,)
        x, y = self.factor(dtypes[0], left), self.factor(dtypes[1], right)
        if right == left[::-1] and dtypes[0] == dtypes[1] and r.random() < 0.1:
            y = x.T
        return Factors(name, [x, y], out, errors)

    def call(
        self,
        function: Callable[..., Any],
        factors: Factors,
        dtype: np.dtype,
        label: str,
        *,
        exact: bool,
        errors: Errors = (),
    ) -> Call:
        """Return a call with a result dtype, sometimes with an output of any dtype."""
        r = self.random
        name, operands, shape, more = factors
        errors += more
        if name == "vecmat" and dtype.kind == "c" and not exact:
            shape = None  # NumPy 2.4 writes to wrong addresses of a strided out
        outs: list[np.ndarray] = []
        given = dtype
        if shape is not None and r.random() < 0.35:
            is_dot = name == "dot"  # takes no other dtype or layout
            if r.random() < 0.4 and not is_dot:
                given = r.choice((self.dtype(), *(x.dtype for x in operands)))
            if r.random() < 0.05 and shape and name != "vecdot":
                shape, errors = (*shape[:-1], shape[-1] + 1), (*errors, ValueError)
            outs = [self.output(given, shape)]
            if is_dot:
                outs = [np.array(outs[0], order="C")]
            elif r.random() < 0.7 and len(operands) > 1:  # else NumPy only copies
                self.overlap(operands, outs)
            if r.random() < 0.03:
                outs[0].flags.writeable = False
                errors += (ValueError,)
            if not np.can_cast(dtype, given, "same_kind"):
                errors += (TypeError,)
        inputs = len(operands)

        def into(*arrays: Any) -> Any:
            out = {"out": arrays[-1]} if outs else {}
            return function(*arrays[:inputs], **out)

        seen = [(x.dtype.str, x.shape) for x in operands]
        label = f"{name} {label} {seen} out={[o.dtype for o in outs]}"
        value = "exact" if exact else "open"
        return Call(label, into, [*operands, *outs], (given,), value, errors)

    def wanted_dtype(self, sources: Sequence[np.dtype]) -> tuple[np.dtype, Errors]:
        """Draw a dtype for dtype=, and return it with the expected errors."""
        r = self.random
        dtype = r.choice((FLOAT32, self.dtype().newbyteorder("=")))
        fits = all(np.can_cast(d, dtype, "same_kind") for d in sources)
        return dtype, () if fits else (TypeError,)

    def precision(self) -> tuple[dict[str, Any], Errors]:
        """Draw keywords that choose a precision, and return the expected errors."""
        r = self.random
        name = r.choice((None, *PRESETS, *PRESETS.values(), *PRESETS.values()))
        short = PRESETS.get(name, name)
        keywords: dict[str, Any] = {"precision": name}
        for keyword, (values, useful) in KEYWORDS.items():
            if short in useful and r.random() < 0.7:
                keywords[keyword] = r.choice(values)
        if r.random() < 0.06:
            keyword = r.choice(("precision", *KEYWORDS))
            values, _ = KEYWORDS.get(keyword, ([], []))
            keywords[keyword] = r.choice((*WRONG, *values))
        name = keywords["precision"]
        short = PRESETS.get(name, name)
        right = name is None or short in PRESETS.values()
        for keyword, (values, useful) in KEYWORDS.items():
            value = keywords.get(keyword, values[0])
            usual = (values[0], None) if keyword == "rounding" else (values[0],)
            right &= value in usual or (value in values and short in useful)
        return keywords, () if right else (ValueError,)

    # -- calls -------------------------------------------------------------------

    def product(self) -> Call:
        """Call NumPy's functions with at least one operand of our formats."""
        r = self.random
        dtypes = [r.choice(self.ours), self.dtype()]
        if r.random() < 0.5:
            dtypes[1] = dtypes[0]
        if r.random() < 0.3:
            dtypes.reverse()
        factors = self.factors(list(FUNCTIONS), dtypes)
        common = result = self.common(dtypes)
        keywords: dict[str, Any] = {}
        errors: Errors = ()
        if factors.name in UFUNCS and r.random() < 0.3:
            result, errors = self.wanted_dtype(dtypes)
            keywords["dtype"] = result
        function = FUNCTIONS[factors.name]
        return self.call(
            lambda *arrays, **out: function(*arrays, **keywords, **out),
            factors,
            result,
            f"{keywords}",
            exact=result in self.ours or (result == FLOAT32 and common in self.ours),
            errors=errors,
        )

    def matmul(self) -> Call:
        """Call td.matmul with every precision and keyword."""
        r = self.random
        dtypes = [self.like_float32(), self.like_float32()]
        factors = self.factors(["td.matmul"], dtypes)
        keywords, errors = self.precision()
        common = result = self.common(dtypes)
        precise = keywords["precision"] is not None
        if precise and (common != FLOAT32 or any(d in self.ours for d in dtypes)):
            errors += (TypeError,)
        exact = precise or common in self.ours
        if r.random() < 0.3:
            result, more = self.wanted_dtype([FLOAT32] if exact else dtypes)
            keywords["dtype"] = result
            errors += more
        if r.random() < 0.01:
            keywords["out"] = r.choice(([0.0], 0, "out"))
            factors = factors._replace(out_shape=None)
            errors += (TypeError,)
        return self.call(
            lambda *arrays, **out: td.matmul(*arrays, **keywords, **out),
            factors,
            result,
            f"{keywords}",
            exact=exact,
            errors=errors,
        )

    def block(self) -> Call:
        """Call products in a block, decorated function or process with a precision."""
        r = self.random
        dtypes = [self.like_float32(), self.like_float32()]
        if r.random() < 0.2:
            dtypes = [np.dtype(r.choice("dF")), np.dtype(r.choice("fdF"))]
        factors = self.factors(list(IN_BLOCKS), dtypes)
        name = factors.name
        keywords, errors = self.precision()
        for keyword in ("float64", "complex64"):
            if r.random() < 0.5:
                keywords[keyword] = r.random() < 0.7
        common = self.common(dtypes)
        needed = {
            FLOAT32: (),
            FLOAT64: ("float64",),
            COMPLEX64: ("complex64",),
            COMPLEX128: ("float64", "complex64"),
        }
        obeys = (
            keywords["precision"] is not None
            and common in needed
            and all(keywords.get(keyword, False) for keyword in needed[common])
        )
        way = r.choice((within, nested, decorated, everywhere))
        other = r.choice((None, *PRESETS))
        call = self.call(
            lambda *arrays, **out: way(keywords, other, IN_BLOCKS[name], arrays, out),
            factors,
            common,
            f"{way.__name__} {keywords} {other}",
            exact=(obeys and name != "outer") or common in self.ours,
            errors=errors,
        )
        if name in EINSUMS and any(d in self.ours for d in dtypes):
            return call._replace(dtypes=None, value="open", errors=None)
        return call

    def einsum(self) -> Call:
        """Call td.einsum with one to three operands."""
        r = self.random
        lengths = {x: r.choice((0, 1, 2, 3, 3, 4, 5)) for x in "ijk"}
        stack = r.choice(STACKS)
        lengths["l"] = r.choice((2, 7, 33) if stack else (33, 300))
        terms, operands = [], []
        found: dict[str, int] = {}
        dtype = r.choice(self.ours)
        mixed = r.random() < 0.4
        for _ in range(r.choice((1, 2, 2, 2, 2, 3))):
            term = "".join(r.choices("ijk", k=r.randrange(4)))
            term = f"l{term}" if r.random() < 0.2 else term
            term = f"{term}l" if r.random() < 0.2 and "l" not in term else term
            ones = [x for x in term if r.random() < 0.05]
            shape = tuple(1 if x in ones else lengths[x] for x in term)
            for x, n in zip(term, shape, strict=True):
                found[x] = n if found.get(x, 1) == 1 else found[x]
            if stack:
                at = r.randrange(len(term) + 1)
                term = f"{term[:at]}...{term[at:]}"
                shape = (*shape[:at], *self.broadcastable(stack), *shape[at:])
            terms.append(term)
            operands.append(self.factor(self.dtype() if mixed else dtype, shape))
        subscripts = ",".join(terms)
        kept = sorted(x for x in found if subscripts.count(x) == 1)
        if r.random() < 0.8:
            kept = r.sample(list(found), r.randrange(len(found) + 1))
            subscripts += "->" + "..." * bool(stack) + "".join(kept)
        errors: Errors = ()
        if r.random() < 0.04:
            wrong = [f"{subscripts}->->"]
            wrong += [] if stack else [f"{subscripts}q", f"q{subscripts}"]
            subscripts, errors = r.choice(wrong), (ValueError,)
        keywords: dict[str, Any] = {"optimize": r.choice(OPTIMIZE)}
        if r.random() < 0.03:
            keywords["optimize"] = r.choice(WRONG_OPTIMIZE)
            errors = (ValueError,)
        dtypes = [x.dtype for x in operands]
        result = self.common(dtypes)
        if r.random() < 0.3:
            result, more = self.wanted_dtype(dtypes)
            keywords["dtype"] = result
            errors += more
        # np.sum sums letters of only one operand, in an order that strides decide.
        alone = [x for x in found if x not in kept and sum(x in t for t in terms) == 1]
        shape = None if stack else tuple(found[x] for x in kept)
        return self.call(
            lambda *arrays, **out: td.einsum(subscripts, *arrays, **keywords, **out),
            Factors("td.einsum", operands, shape, errors),
            result,
            f"{subscripts} {keywords}",
            exact=result in self.ours and not alone,
        )


# -- how a precision is set --------------------------------------------------------


def within(keywords: Any, _: Any, function: Any, operands: Any, out: Any) -> Any:
    with td.matmul_precision(**keywords):
        return function(*operands, **out)


def nested(keywords: Any, other: Any, function: Any, operands: Any, out: Any) -> Any:
    with td.matmul_precision(other):
        return within(keywords, other, function, operands, out)


def decorated(keywords: Any, _: Any, function: Any, operands: Any, out: Any) -> Any:
    return td.matmul_precision(**keywords)(function)(*operands, **out)


def everywhere(keywords: Any, _: Any, function: Any, operands: Any, out: Any) -> Any:
    td.set_matmul_precision(**keywords)
    try:
        return function(*operands, **out)
    finally:
        td.set_matmul_precision(None)
