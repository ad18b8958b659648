"""List all calls that surface.py times, and their variants.

Element-wise calls are all ufuncs of NumPy that take float32. The other calls are in
tables of a name and an expression of `Operands`, which gives the function to time. A
call that raises for float32 is left out. The kind of a call sets its limit
(surface_limits.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from surface_operands import MEBI, SINGLE, Operands, Variant

Build = Callable[[Operands], Callable[[], Any]]


@dataclass(frozen=True)
class Call:
    name: str
    kind: Callable[[Variant], str]
    build: Build
    variants: tuple[Variant, ...]
    formats: Callable[[str], bool] = lambda name: True
    sized: bool = True  # whether the variant sets the size, or else the call


SIZES = (4, 16, 256, MEBI, 16 * MEBI)
OTHER_DATA = ("binades", "codes", "specials")
PLAIN = ("strided", "reversed", "transposed", "unaligned")
BINARY = (
    *PLAIN,
    *("output strided", "operand 1 strided", "row", "column"),
    *("operand 0 a Python number", "operand 1 a Python number"),
    *("operand 0 0-d", "operand 1 0-d", "operand 0 constant", "operand 1 constant"),
)


def variants(
    layouts: Iterable[str] = PLAIN,
    sizes: Iterable[int] = SIZES,
    kinds: Iterable[str] = OTHER_DATA,
) -> tuple[Variant, ...]:
    """Return contiguous variants of all sizes, and others of 1 Mi elements."""
    found = [Variant(size=size) for size in sizes]
    found += [Variant(layout) for layout in layouts]
    found += [Variant(data=kind) for kind in kinds]
    number = "operand 1 a Python number"
    return (*found, *([Variant(number, 4)] if number in layouts else []))


def always(kind: str) -> Callable[[Variant], str]:
    return lambda variant: kind


# -- element-wise ------------------------------------------------------------------

ARITHMETIC = "arithmetic, comparison, clip, where"
UNARY = "other unary functions"
EXACT = {"sqrt", "square", "reciprocal"}
SIGNS = set(
    """negative positive absolute fabs conjugate isnan isinf isfinite signbit
    logical_not""".split()
)
SLOW = set(
    """remainder floor_divide divmod fmod power float_power hypot arctan2 logaddexp
    logaddexp2 nextafter ldexp heaviside""".split()
)
DOMAIN = {
    **dict.fromkeys(("sqrt", "log", "log2", "log10", "log1p"), ("positive",)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), ("to 1",)),
    "arccosh": ("from 1",),
    "power": ("positive", "all"),
    "float_power": ("positive", "all"),
}


def ufunc_kind(name: str, operands: int) -> str:
    if operands == 1 and name not in SIGNS:
        return "sqrt, square, reciprocal" if name in EXACT else UNARY
    return "remainder, power, hypot, ..." if name in SLOW else ARITHMETIC


def ufuncs() -> list[np.ufunc]:
    """Return NumPy's element-wise ufuncs that take float32."""
    found = {id(f): f for f in vars(np).values() if isinstance(f, np.ufunc)}
    single = np.dtype(SINGLE)
    chosen = []
    for ufunc in found.values():
        types = (single,) * ufunc.nin + (None,) * ufunc.nout
        try:
            ufunc.resolve_dtypes(types)
        except TypeError:
            if ufunc.__name__ != "ldexp":  # its second operand is an integer
                continue
        if ufunc.signature is None:
            chosen.append(ufunc)
    return sorted(chosen, key=lambda ufunc: ufunc.__name__)


def of_ufunc(ufunc: np.ufunc) -> Build:
    domains = DOMAIN.get(ufunc.__name__, ("all",) * ufunc.nin)

    def build(side: Operands) -> Callable[[], Any]:
        operands = side.operands(domains)
        if ufunc is np.ldexp:
            operands[1] = np.int32(3)
        return partial(ufunc, *operands, out=side.results(ufunc, operands))

    return build


def elementwise() -> Iterator[Call]:
    for ufunc in ufuncs():
        name, two = ufunc.__name__, ufunc.nin == 2 and ufunc is not np.ldexp
        layouts = BINARY if two else (*PLAIN, "output strided")
        kind = always(ufunc_kind(name, ufunc.nin))
        yield Call(name, kind, of_ufunc(ufunc), variants(layouts))
    for name, build in SELECTED.items():
        yield Call(name, always(ARITHMETIC), build, variants((*PLAIN, "row")))


def in_place(ufunc: np.ufunc, x: np.ndarray) -> Callable[[], Any]:
    return partial(ufunc, x, out=x)


SELECTED: dict[str, Build] = {
    "clip": lambda s: partial(np.clip, s.x, s.one, s.y),
    "clip to Python numbers": lambda s: partial(np.clip, s.x, 0.5, 2),
    "where": lambda s: partial(np.where, s.mask, s.x, s.y),
    "where, a scalar": lambda s: partial(np.where, s.mask, s.x, s.one),
    "add, where=": lambda s: partial(np.add, s.x, s.y, where=s.mask, out=s.x.copy()),
    "negative in place": lambda s: in_place(np.negative, s.x.copy()),
    "nan_to_num": lambda s: partial(np.nan_to_num, s.x),
    "isclose": lambda s: partial(np.isclose, s.x, s.x),
    "diff": lambda s: partial(np.diff, s.x),
    "outer": lambda s: partial(np.outer, s.matrix[0], s.matrix[:, 0]),
    "kron": lambda s: partial(np.kron, s.matrix[0], s.matrix[:, 0]),
}

# -- reductions --------------------------------------------------------------------

INNER, OUTER = "reductions, cumulative sums", "sums on outer axes"
AXES: dict[str, Callable[[Operands], tuple[np.ndarray, dict[str, Any]]]] = {
    "axis 0": lambda s: (s.matrix, {"axis": 0}),
    "axis 1": lambda s: (s.matrix, {"axis": 1}),
    "axis 1 of 3": lambda s: (s.cube, {"axis": 1}),
    "axes 0 and 2 of 3": lambda s: (s.cube, {"axis": (0, 2)}),
    "axis 1, keepdims": lambda s: (s.matrix, {"axis": 1, "keepdims": True}),
    "where=": lambda s: (s.x, {"where": s.mask}),
    "axis 0, where=": lambda s: (
        s.matrix,
        {"axis": 0, "where": s.mask.reshape(s.rows, -1)},
    ),
}
SUMS = """sum prod mean std var nansum nanprod nanmean nanstd nanvar""".split()
SELECTING = """max min ptp argmax argmin any all count_nonzero nanmax nanmin
    nanargmax nanargmin""".split()
REDUCED = ("fmax", "fmin", "logaddexp", "hypot", "logical_xor")
CUMULATIVE = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "nancumsum": np.nancumsum,
    **{
        f"{ufunc.__name__}.accumulate": ufunc.accumulate
        for ufunc in (np.add, np.multiply, np.maximum, np.minimum)
    },
}


def of_reduction(function: Callable[..., Any], initial: bool) -> Build:
    def build(side: Operands) -> Callable[[], Any]:
        layout = side.variant.layout
        array, keywords = AXES[layout](side) if layout in AXES else (side.x, {})
        if "where" in keywords and initial:
            keywords["initial"] = 0
        return partial(function, array, **keywords)

    return build


def reductions() -> Iterator[Call]:
    def of_sum(variant: Variant) -> str:
        outer = variant.layout in ("axis 0", "axis 1 of 3", "axes 0 and 2 of 3")
        return OUTER if outer or variant.layout == "axis 0, where=" else INNER

    every = variants((*PLAIN, *AXES))
    for name in SUMS:
        yield Call(name, of_sum, of_reduction(getattr(np, name), False), every)
    for name in SELECTING:
        initial = name in ("max", "min", "nanmax", "nanmin")
        build = of_reduction(getattr(np, name), initial)
        yield Call(name, always(INNER), build, every)
    for name in REDUCED:
        reduce = partial(getattr(np, name).reduce, axis=None)
        yield Call(f"{name}.reduce", of_sum, of_reduction(reduce, True), every)
    few = variants((*PLAIN[:2], "axis 0", "axis 1"))
    for name, function in CUMULATIVE.items():
        yield Call(name, always(INNER), of_reduction(function, False), few)
    for name, build in SEGMENTS.items():
        yield Call(name, always(INNER), build, variants(("strided",)))


SEGMENTS: dict[str, Build] = {
    "add.reduceat": lambda s: partial(np.add.reduceat, s.x, np.arange(0, s.size, 4)),
    "add.at": lambda s: partial(np.add.at, s.x.copy(), s.indices, s.y),
    "average, weights": lambda s: partial(np.average, s.x, weights=np.abs(s.y)),
}

# -- casts -------------------------------------------------------------------------

NUMPYS = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32
    float64 longdouble complex64 complex128 clongdouble""".split()


def casts() -> Iterator[Call]:
    """Yield copies into existing arrays; our pairs against float32 to float32."""
    import tf32dtype as td

    every = variants(("strided", "unaligned", "output strided"))

    def into(target: str) -> Build:
        def build(side: Operands) -> Callable[[], Any]:
            name = target
            if target in td.formats and side.name == SINGLE:
                name = SINGLE
            dtype = Operands(name, side.variant, side.theirs).dtype
            return copied(side.x, dtype, side.variant)

        return build

    def copied(x: np.ndarray, dtype: np.dtype, variant: Variant) -> Callable[[], Any]:
        strided = variant.layout == "output strided"
        out = np.empty(2 * x.size, dtype)[::2] if strided else np.empty(x.size, dtype)
        return partial(np.copyto, out, x, casting="unsafe")

    def out_of(source: str) -> Build:
        def build(side: Operands) -> Callable[[], Any]:
            return copied(Operands(source, side.variant).x, side.dtype, side.variant)

        return build

    kind = always("casts")
    for name in NUMPYS:
        yield Call(f"cast from {name}", kind, out_of(name), every)
        yield Call(f"cast to {name}", kind, into(name), every)
    few = variants(("strided", "output strided"), (4, MEBI))
    for name in td.formats:
        other = name.__ne__
        yield Call(f"cast to {name}", kind, into(name), few, other)
    for name, build in CONVERTED.items():
        yield Call(name, kind, build, variants((), (4, 256, 1 << 16)))


CONVERTED: dict[str, Build] = {
    "tolist": lambda s: s.x.tolist,
    "array of a list": lambda s: partial(np.array, s.x.tolist(), s.dtype),
    "array of scalars": lambda s: partial(np.array, list(s.x), s.dtype),
}

# -- copies and indexing -----------------------------------------------------------

COPIED: dict[str, Build] = {
    "copy": lambda s: s.x.copy,
    "copyto": lambda s: partial(np.copyto, np.empty_like(s.x), s.x),
    "copyto, where=": lambda s: partial(np.copyto, s.x.copy(), s.y, where=s.mask),
    "ascontiguousarray of a transpose": lambda s: s.matrix.T.copy,
    "fill": lambda s: partial(s.x.copy().fill, s.one),
    "full": lambda s: partial(np.full, s.x.shape, s.one),
    "zeros": lambda s: partial(np.zeros, s.x.shape, s.dtype),
    "ones": lambda s: partial(np.ones, s.x.shape, s.dtype),
    "arange": lambda s: partial(np.arange, 4, dtype=s.dtype),
    "take": lambda s: partial(np.take, s.x, s.indices),
    "take of rows": lambda s: partial(np.take, s.matrix, s.indices[: s.rows] % s.rows,
                                      axis=0),
    "take_along_axis": lambda s: partial(np.take_along_axis, s.x, s.indices, 0),
    "x[indices]": lambda s: partial(s.x.__getitem__, s.indices),
    "x[indices] = y": lambda s: partial(s.x.copy().__setitem__, s.indices, s.y),
    "x[mask]": lambda s: partial(s.x.__getitem__, s.mask),
    "x[mask] = number": lambda s: partial(s.x.copy().__setitem__, s.mask, 1.5),
    "x[1]": lambda s: partial(s.x.__getitem__, 1),
    "x[1] = number": lambda s: partial(s.x.copy().__setitem__, 1, 1.5),
    "put": lambda s: partial(np.put, s.x.copy(), s.indices, s.y),
    "putmask": lambda s: partial(np.putmask, s.x.copy(), s.mask, s.y),
    "compress": lambda s: partial(np.compress, s.mask, s.x),
    "nonzero": lambda s: partial(np.nonzero, s.x),
    "choose": lambda s: partial(np.choose, s.mask.view(np.int8), [s.x, s.y]),
    "concatenate": lambda s: partial(np.concatenate, (s.x, s.y)),
    "stack": lambda s: partial(np.stack, (s.x, s.y), -1),
    "repeat": lambda s: partial(np.repeat, s.x, 2),
    "tile": lambda s: partial(np.tile, s.x, 2),
    "roll": lambda s: partial(np.roll, s.x, 3),
    "pad": lambda s: partial(np.pad, s.x, 3),
    "tril": lambda s: partial(np.tril, s.matrix),
    "byteswap": lambda s: s.x.byteswap,
    "tobytes": lambda s: s.x.tobytes,
}  # fmt: skip


def copies() -> Iterator[Call]:
    kind = always("copies, indexing")
    for name, build in COPIED.items():
        once = name in ("x[1]", "x[1] = number", "arange")
        every = (Variant(size=4),) if once else variants(PLAIN[:3], SIZES, ())
        yield Call(name, kind, build, every)


# -- sorting -----------------------------------------------------------------------

SORTED: dict[str, Build] = {
    "sort": lambda s: partial(np.sort, s.x),
    "sort, stable": lambda s: partial(np.sort, s.x, kind="stable"),
    "sort of sorted": lambda s: partial(np.sort, s.sorted),
    "sort of falling": lambda s: partial(np.sort, s.sorted[::-1]),
    "sort, axis 0": lambda s: partial(np.sort, s.matrix, axis=0),
    "sort, axis 1": lambda s: partial(np.sort, s.matrix, axis=1),
    "argsort": lambda s: partial(np.argsort, s.x),
    "argsort, stable": lambda s: partial(np.argsort, s.x, kind="stable"),
    "argsort, axis 0": lambda s: partial(np.argsort, s.matrix, axis=0),
    "lexsort": lambda s: partial(np.lexsort, (s.x, s.y)),
    "unique": lambda s: partial(np.unique, s.x),
    "unique, counts": lambda s: partial(np.unique, s.x, return_counts=True),
    "searchsorted": lambda s: partial(np.searchsorted, s.sorted, s.x),
    "digitize": lambda s: partial(np.digitize, s.x, s.sorted[:: s.size // 4]),
    "isin": lambda s: partial(np.isin, s.x, s.y[:16]),
}
MIDDLES: dict[str, Build] = {
    "partition": lambda s: partial(np.partition, s.x, s.size // 2),
    "argpartition": lambda s: partial(np.argpartition, s.x, s.size // 2),
    "median": lambda s: partial(np.median, s.x),
    "nanmedian": lambda s: partial(np.nanmedian, s.x),
    "median, axis 0": lambda s: partial(np.median, s.matrix, axis=0),
    "median, axis 1": lambda s: partial(np.median, s.matrix, axis=1),
    "quantile": lambda s: partial(np.quantile, s.x, 0.3),
}


def sorting() -> Iterator[Call]:
    few = variants(("strided", "reversed"), (4, 16, 256, MEBI))
    for name, build in SORTED.items():
        more = (Variant(size=16 * MEBI),) if name == "sort" else ()
        yield Call(name, always("sorting, searching"), build, (*few, *more))
    for name, build in MIDDLES.items():
        yield Call(name, always("median, partition"), build, few)


# -- products ----------------------------------------------------------------------

VECTORS: dict[str, Build] = {
    "dot of vectors": lambda s: partial(np.dot, s.x, s.y),
    "inner of vectors": lambda s: partial(np.inner, s.x, s.y),
    "vdot": lambda s: partial(np.vdot, s.x, s.y),
    "vecdot": lambda s: partial(np.vecdot, s.x, s.y),
    "vecdot of rows": lambda s: partial(np.vecdot, s.matrix, s.matrix),
    "vectors, @": lambda s: partial(np.matmul, s.x, s.y),
    "einsum i,i": lambda s: partial(np.einsum, "i,i", s.x, s.y),
}
MATRIX_VECTOR: dict[str, Build] = {
    "matrix @ vector": lambda s: partial(np.matmul, s.matrix, s.matrix[0]),
    "vector @ matrix": lambda s: partial(np.matmul, s.matrix[:, 0].copy(), s.matrix),
    "matvec": lambda s: partial(np.matvec, s.matrix, s.matrix[0]),
    "vecmat": lambda s: partial(np.vecmat, s.matrix[:, 0].copy(), s.matrix),
    "matrix.T @ vector": lambda s: partial(
        np.matmul, s.matrix.T, s.matrix[:, 0].copy()
    ),
}
ONE_BY_ONE: dict[str, Callable[[np.ndarray, np.ndarray], Callable[[], Any]]] = {
    "dot": lambda a, b: partial(np.dot, a, b),
    "inner": lambda a, b: partial(np.inner, a, b),
    "tensordot": lambda a, b: partial(np.tensordot, a, b, 1),
    "ndarray.dot": lambda a, b: partial(a.dot, b),
    "multi_dot": lambda a, b: partial(np.linalg.multi_dot, (a, b)),
    "einsum": lambda a, b: partial(np.einsum, "ij,jk", a, b),
}
MATRICES: dict[str, Callable[[np.ndarray, np.ndarray], Callable[[], Any]]] = {
    "@": lambda a, b: partial(np.matmul, a, b),
    "@, out=": lambda a, b: partial(np.matmul, a, b, out=np.empty_like(a)),
    "a @ b.T": lambda a, b: partial(np.matmul, a, b.T),
    "a.T @ b": lambda a, b: partial(np.matmul, a.T, b),
}


def products() -> Iterator[Call]:
    few = variants(("strided", "reversed", "unaligned"))
    for name, build in VECTORS.items():
        yield Call(name, always("dot of two vectors"), build, few)
    plain = variants((), (4096, MEBI))
    for name, build in MATRIX_VECTOR.items():
        yield Call(name, always("matrix and vector, @"), build, plain)

    def pair(
        make: Callable[[np.ndarray, np.ndarray], Callable[[], Any]], n: int
    ) -> Build:
        return lambda s: make(s.square(n), s.square(n, 1))

    def sized(n: int) -> tuple[Variant, ...]:
        kinds = ("normal", *OTHER_DATA)
        return tuple(Variant(size=n * n, data=kind) for kind in kinds)

    kinds = {64: "matrices of 64, @", 128: "matrices of 128, @"}
    for n in (4, 64, 128, 256, 1024):
        kind = always(kinds.get(n, "matrices, @"))
        for name, make in MATRICES.items():
            yield Call(f"{name} {n}", kind, pair(make, n), sized(n), sized=False)
    for name, make in ONE_BY_ONE.items():
        kind = always("np.dot, inner, ... of matrices")
        yield Call(f"{name} 256", kind, pair(make, 256), sized(256)[:1], sized=False)
    for name, make in [*ONE_BY_ONE.items()][:2]:
        kind = always("np.dot, inner, ... of matrix and vector")

        def with_vector(s: Operands, make: Any = make) -> Callable[[], Any]:
            return make(s.square(1024), s.flat(1024, 1))  # type: ignore[no-any-return]

        yield Call(
            f"{name} of matrix and vector 1024",
            kind,
            with_vector,
            sized(1024),
            sized=False,
        )
    kind = always("256 times matrices of 64, @")
    yield Call("@ of (256, 64, 64)", kind, batch, (Variant(),), sized=False)


def batch(s: Operands) -> Callable[[], Any]:
    a, b = (s.flat(MEBI, which).reshape(256, 64, 64) for which in (0, 1))
    return partial(np.matmul, a, b, out=np.empty_like(a))


# -- results in the first operand --------------------------------------------------

IN_PLACE: dict[str, Build] = {  # none changes the operand, whatever the number of calls
    "x += y": lambda s: partial(np.add, s.x, np.zeros_like(s.x), out=s.x),
    "x *= number": lambda s: partial(np.multiply, s.x, 1.0, out=s.x),
    "x += row": lambda s: partial(
        np.add, s.matrix, np.zeros_like(s.matrix[0]), out=s.matrix
    ),
}


def updates() -> Iterator[Call]:
    for name, build in IN_PLACE.items():
        yield Call(name, always(ARITHMETIC), build, variants(("strided", "transposed")))


def every_call() -> list[Call]:
    groups = (elementwise, reductions, casts, copies, sorting, products, updates)
    return [call for group in groups for call in group()]
