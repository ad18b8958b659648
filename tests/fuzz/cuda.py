"""Random calls on arrays of tf32dtype.cuda, over the host's memory, against NumPy.

    python -m tests.fuzz.cuda --calls 5000 --seed 1

Each call uses NumPy arrays and GPU arrays with equal memory layouts: any strides, dirty
unused bits, overlapping outputs. Dtypes, shapes and bits must be equal, and nothing
else may be written. Each must reject what the other rejects, before it writes. The GPU
may reject more, with a TypeError.
"""

from __future__ import annotations

import argparse
import math
import operator
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td
from tests.fuzz.calls import BINARY, UNARY
from tests.support.simulator import backend
from tests.support.simulator.backend import tfc
from tf32dtype.cuda._arrays.ndarray import wrap
from tf32dtype.cuda._runtime import backend as backends

cupy = backend.cupy
OURS = [f.dtype for f in td.formats.values()]
THEIRS = [np.dtype(c) for c in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8",
                                "f2", "f4", "f8", "F", "D")]  # fmt: skip
EXACT = "max min any all argmax argmin count_nonzero nanmax nanmin".split()
NEAR = "sum prod mean nansum nanprod nanmean".split()
#: NumPy keeps the bits of other dtypes in these ufuncs, CuPy does not.
OF_CUPY = {"float_power", "ldexp"}


class Failure(Exception):
    pass


class Both(NamedTuple):
    """An array of NumPy and one of the GPU, with equal memory layouts."""

    cpu: Any
    gpu: Any
    memory: Any = None  # a Both of all their bytes


class Call(NamedTuple):
    label: str
    function: Callable[..., Any]
    arguments: list[Any]
    near: float = 0  # largest difference, in units of a dtype's eps
    keywords: dict[str, Any] = {}  # noqa: RUF012


def bits(x: Any) -> Any:
    """Return bits to compare: codes without unused bits, numbers with one NaN."""
    x = np.asarray(x)
    if x.dtype in OURS:
        return td.bits(np.ascontiguousarray(x))
    if x.dtype.kind == "c":
        return bits(np.stack([x.real, x.imag]))
    if x.dtype.kind == "f":
        return np.where(np.isnan(x), np.nan, x).astype(x.dtype).view(f"u{x.itemsize}")
    return x


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.kinds = [self.ufunc, self.ufunc, self.ufunc, self.ufunc, self.operator]
        self.kinds += [self.reduction, self.cast, self.cast, self.index, self.assign]
        self.kinds += [self.move, self.move, self.order, self.write, self.made]
        self.refused: Counter[str] = Counter()

    # -- arrays --------------------------------------------------------------------

    def shape(self, most: int = 4) -> tuple[int, ...]:
        dimensions = self.random.choice((0, 1, 1, 1, 2, 2, 2, 3, 4))
        if dimensions == 1:
            return (self.random.choice((0, 1, 2, 3, 7, 16, 31, 64, 257, 1100)),)
        return tuple(
            self.random.choice((0, 1, 2, 3, 3, 4, 5, 9))
            for _ in range(min(dimensions, most))
        )

    def dtype(self) -> Any:
        r = self.random
        return r.choice(OURS) if r.random() < 0.8 else r.choice(THEIRS)

    def _elements(self, dtype: Any, count: int) -> Any:
        """Draw bytes of any codes, of small numbers, or of integers at their ends."""
        r = np.random.default_rng(self.random.randrange(1 << 30))
        kind = self.random.random()
        if dtype.kind == "b":
            return r.integers(0, 2, count).astype(bool).view(np.uint8)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind < 0.5 and dtype.kind in "iufV":
                return np.frombuffer(r.bytes(count * dtype.itemsize), np.uint8).copy()
            if kind < 0.6 and dtype.kind in "iu":
                i = np.iinfo(dtype)
                ends = np.array([i.min, i.max, i.min + 1, i.max - 1, 0, 1], dtype)
                return r.choice(ends, count).view(np.uint8)
            values = r.normal(0, 3, count)
            values[::3] = r.integers(-4, 5, len(values[::3]))
            values[r.random(count) < 0.03] = r.choice([np.nan, np.inf, -np.inf, -0.0])
            if dtype.name == "float8_e8m0fnu":
                values = np.abs(values) + 0.1
            return np.ascontiguousarray(values.astype(dtype)).view(np.uint8)

    def _strides(self, shape: tuple[int, ...], item: int, repeats: bool) -> Any:
        """Draw strides, and the bytes before and after the first element's begin."""
        r = self.random
        axes = list(range(len(shape)))
        arranged = r.random() < 0.6
        step = item
        if arranged:
            r.shuffle(axes)
            step *= r.choice((1, 1, 2, 3))
        strides = [0] * len(shape)
        before = after = 0
        for axis in reversed(axes):
            strides[axis] = step
            step *= max(shape[axis], 1)
            if arranged and r.random() < 0.35:
                strides[axis] = -strides[axis]
            if arranged and repeats and r.random() < 0.1:
                strides[axis] = 0
            reach = strides[axis] * max(shape[axis] - 1, 0)
            before, after = before + max(-reach, 0), after + max(reach, 0)
        return strides, before, after + item

    def array(self, dtype: Any, shape: tuple[int, ...], written: bool = False) -> Both:
        item = dtype.itemsize
        strides, before, after = self._strides(shape, item, not written)
        start = before + item * self.random.randrange(4)
        count = (start + after) // item + 4
        memory = self._elements(dtype, count)
        return self._view(Both(memory, to_gpu(memory)), dtype, shape, start, strides)

    def _view(
        self, memory: Both, dtype: Any, shape: Any, start: int, strides: Any
    ) -> Both:
        stored = f"u{dtype.itemsize}" if dtype in OURS else dtype
        cpu = np.ndarray(shape, dtype, memory.cpu.data, start, strides)
        gpu = cupy.ndarray(shape, stored, memory.gpu.data + start, strides=strides)
        dressed = wrap(gpu, dtype) if dtype in OURS or dtype == "f4" else gpu
        return Both(cpu, dressed, memory)

    def overlapping(self, x: Both) -> Both:
        """Return an overlapping view of the same shape and dtype, if there is one."""
        if not x.cpu.ndim or self.random.random() < 0.3:
            return x
        axis = self.random.randrange(x.cpu.ndim)
        key = (slice(None),) * axis + (slice(None, None, -1),)
        return Both(x.cpu[key], x.gpu[key], x.memory)

    def scalar(self) -> Any:
        r = self.random
        if r.random() < 0.4:
            return r.choice((0, 1, -2, 3, 1.5, -0.0, math.inf, math.nan, True, 1e300))
        with np.errstate(all="ignore"):
            value = r.choice((0, 1, -1, 2.5, 1e-40, 300))
            return np.asarray(value).astype(self.dtype())[()]

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        r = self.random
        if r.random() < 0.6:
            return shape
        lower = shape[r.randrange(len(shape) + 1) :]
        return tuple(1 if r.random() < 0.2 else n for n in lower)

    # -- calls -----------------------------------------------------------------------

    def ufunc(self) -> Call:
        r = self.random
        name = r.choice(UNARY if r.random() < 0.35 else BINARY)
        ufunc = getattr(np, name)
        shape = self.shape()
        dtype = self.dtype()
        operands: list[Any] = [self.array(r.choice(OURS), shape)]
        if ufunc.nin == 2:
            other = dtype if r.random() < 0.4 else operands[0].cpu.dtype
            operands.append(self.array(other, self.broadcastable(shape)))
            if r.random() < 0.25:
                operands[1] = self.scalar()
            if r.random() < 0.4:
                operands.reverse()
        keywords: dict[str, Any] = {}
        if r.random() < 0.35:
            kind = r.random()
            outs = [
                self.overlapping(operands[0])
                if kind < 0.4 and isinstance(operands[0], Both) and i == 0
                else self.array(self.dtype(), shape, written=True)
                for i in range(ufunc.nout)
            ]
            keywords["out"] = tuple(outs)
            # NumPy's bits are wrong for a masked output that overlaps an operand.
            if kind >= 0.4 and r.random() < 0.4:
                mask = self.broadcastable(shape)
                keywords["where"] = self.array(np.dtype(bool), mask)
        if r.random() < 0.1:
            keywords["dtype"] = self.dtype()
        if r.random() < 0.15:
            keywords["casting"] = r.choice(("no", "safe", "same_kind", "unsafe"))
        return Call(name, ufunc, operands, 0, keywords)

    def operator(self) -> Call:
        r = self.random
        names = "add sub mul truediv floordiv mod pow lt le eq ne gt ge".split()
        names += "iadd isub imul itruediv neg pos abs divmod".split()
        name = r.choice(names)
        function = divmod if name == "divmod" else getattr(operator, name)
        shape = self.shape()
        first = self.array(r.choice(OURS), shape, written=True)
        if name in ("neg", "pos", "abs"):
            return Call(name, function, [first])
        other: Any = self.array(self.dtype(), self.broadcastable(shape))
        if r.random() < 0.4:
            other = self.scalar()
        operands = [first, other]
        if not name.startswith("i") and r.random() < 0.4:
            operands.reverse()
        return Call(name, function, operands)

    def reduction(self) -> Call:
        r = self.random
        name = r.choice(EXACT + NEAR)
        x = self.array(r.choice([*OURS, np.dtype("f4")]), self.shape())
        dims = x.cpu.ndim
        keywords: dict[str, Any] = {}
        # Without axes, NumPy rejects an axis only for means.
        if r.random() < 0.6 and (dims or "mean" not in name):
            keywords["axis"] = r.randrange(-dims - 1, dims + 1)
            if name[:3] != "arg" and dims and r.random() < 0.3:
                axes = r.sample(range(dims), r.randrange(dims + 1))
                keywords["axis"] = tuple(axes)
        if r.random() < 0.3:
            keywords["keepdims"] = True
        if name in ("sum", "prod", "max", "min") and r.random() < 0.3:
            keywords["initial"] = r.choice((0, 1, 2.5))
            if r.random() < 0.5:
                shape = self.broadcastable(x.cpu.shape)
                keywords["where"] = self.array(np.dtype(bool), shape)
        if name in ("sum", "prod", "mean") and r.random() < 0.3:
            keywords["dtype"] = r.choice([*OURS, np.dtype("f4"), np.dtype("f8")])
        return Call(name, getattr(np, name), [x], 4 if name in NEAR else 0, keywords)

    def cast(self) -> Call:
        r = self.random
        x = self.array(self.dtype(), self.shape())
        if x.cpu.dtype in OURS:
            dtype = r.choice(OURS + THEIRS)
            return Call(f"astype {dtype}", lambda a: a.astype(dtype), [x])
        dtype = r.choice(OURS)
        if r.random() < 0.3:
            how = {
                "rounding": r.choice(
                    "ties_to_even ties_to_away toward_zero toward_positive"
                    " toward_negative to_odd".split()
                ),
                "overflow": r.choice(("ieee", "saturate")),
            }

            def quantize(a: Any) -> Any:
                on_gpu = isinstance(a, cupy.ndarray)
                return (tfc if on_gpu else td).quantize(a, dtype, **how)

            return Call(f"quantize {dtype} {how}", quantize, [x])

        def astype(a: Any) -> Any:
            if isinstance(a, cupy.ndarray):
                return tfc.asarray(a, dtype)
            if a.dtype.kind == "c":
                raise TypeError("complex")
            return np.asarray(a).astype(dtype)

        return Call(f"asarray {dtype}", astype, [x])

    def _key(self, shape: tuple[int, ...]) -> Any:
        r = self.random
        if not shape:
            return r.choice(((), ..., None, True, (..., None)))
        keys: list[Any] = []
        for n in shape[: r.randrange(len(shape) + 1)]:
            kind = r.random()
            if kind < 0.3 and n:
                keys.append(r.randrange(-n, n))
            elif kind < 0.75:
                step = r.choice((1, 2, -1, -2, None))
                keys.append(slice(r.choice((None, 0, 1, -1)), None, step))
            elif kind < 0.9 and n:
                keys.append([r.randrange(n) for _ in range(r.randrange(4))])
            else:
                keys.append(None)
        if r.random() < 0.15:
            return np.array([r.random() < 0.5 for _ in range(shape[0])], bool)
        if r.random() < 0.2:
            keys.insert(r.randrange(len(keys) + 1), ...)
        return tuple(keys)

    def index(self) -> Call:
        x = self.array(self.random.choice(OURS), self.shape())
        key = self._key(x.cpu.shape)
        return Call(f"[{key}]", lambda a: a[key], [x])

    def assign(self) -> Call:
        r = self.random
        x = self.array(r.choice(OURS), self.shape(), written=True)
        key = self._key(x.cpu.shape)
        # If an index names an element twice, only NumPy stores the last value.
        unique = not any(
            isinstance(k, list) for k in (key if type(key) is tuple else ())
        )
        value: Any = self.scalar()
        if unique and r.random() < 0.6:
            try:
                shape = x.cpu[key].shape
            except IndexError:
                shape, key = x.cpu.shape, ...
            value = self.array(self.dtype(), self.broadcastable(shape))
            if r.random() < 0.4:
                source = self.overlapping(x)
                value = Both(source.cpu[key], source.gpu[key])

        def assign(a: Any, b: Any) -> Any:
            a[key] = b
            return a

        return Call(f"[{key}] = ", assign, [x, value])

    def move(self) -> Call:
        r = self.random
        shape = self.shape()
        a = self.array(r.choice(OURS), shape)
        b = self.array(a.cpu.dtype if r.random() < 0.6 else self.dtype(), shape)
        axis = r.randrange(-len(shape), len(shape)) if shape else 0
        mask = self.array(np.dtype(bool), shape)
        n = shape[axis] if shape else 1
        full = self.array(a.cpu.dtype, tuple(n or 1 for n in shape))
        line = self.array(np.dtype(bool), (n,))
        picks = [r.randrange(n) for _ in range(3)] if n else []
        calls: list[tuple[str, Any, list[Any]]] = [
            ("concatenate", lambda x, y: np.concatenate([x, y], axis), [a, b]),
            ("concatenate1", lambda x, y: np.concatenate((x, y), None), [a, b]),
            ("stack", lambda x, y: np.stack([x, y], axis), [a, b]),
            ("hstack", lambda x, y: np.hstack([x, y]), [a, b]),
            ("vstack", lambda x, y: np.vstack([x, y]), [a, b]),
            ("append", lambda x, y: np.append(x, y), [a, b]),
            ("where", lambda m, x, y: np.where(m, x, y), [mask, a, b]),
            ("where1", lambda m, x: np.where(m, x, 1.5), [mask, a]),
            ("where2", lambda x, y: np.where(True, x, y), [a, b]),
            ("take", lambda x: np.take(x, picks, axis), [a]),
            ("take1", lambda x: np.take(x, [9, -9], axis, mode="wrap"), [full]),
            ("take2", lambda x: np.take(x, [99, -99], axis, mode="clip"), [full]),
            ("choose", lambda m, x, y: np.choose(m, [x, y]), [mask, a, b]),
            ("repeat", lambda x: np.repeat(x, 2, axis), [a]),
            ("roll", lambda x: np.roll(x, 2, axis), [a]),
            ("tile", lambda x: np.tile(x, (2, 1)), [a]),
            ("flip", lambda x: np.flip(x, axis), [a]),
            ("tril", lambda x: np.tril(x), [a]),
            ("triu", lambda x: np.triu(x, 1), [a]),
            ("diag", lambda x: np.diag(x), [a]),
            ("pad", lambda x: np.pad(x, 1, constant_values=1.5), [a]),
            ("pad1", lambda x: np.pad(x, 2, mode="edge"), [a]),
            ("compress", lambda m, x: np.compress(m, x, axis), [line, a]),
            ("extract", lambda m, x: np.extract(m, x), [mask, a]),
            ("select", lambda m, x, y: np.select([m], [x], 2), [mask, a, b]),
            ("delete", lambda x: np.delete(x, [0], axis), [a]),
            ("resize", lambda x: np.resize(x, (3, 2)), [a]),
            ("transpose", lambda x: x.T.reshape(-1), [a]),
            ("ravel", lambda x: np.ravel(x), [a]),
            ("swapaxes", lambda x: np.swapaxes(x, 0, -1).copy(), [a]),
            ("linalg.diagonal", lambda x: np.linalg.diagonal(x), [a]),
            ("linalg.trace", lambda x: np.linalg.trace(x), [a]),
            ("trace", lambda x: np.trace(x), [a]),
            ("clip", lambda x: np.clip(x, -1, 2), [a]),
            ("nan_to_num", lambda x: np.nan_to_num(x), [a]),
            ("round", lambda x: np.round(x, 1), [a]),
            ("diff", lambda x: np.diff(x), [a]),
            ("array_equal", lambda x, y: np.array_equal(x, y), [a, b]),
            ("isclose", lambda x, y: np.isclose(x, y), [a, a]),
            ("outer", lambda x: np.outer(x, x[..., ::-1]), [a]),
            ("argwhere", lambda x: np.argwhere(x), [a]),
            ("take_along_axis", lambda x: np.take_along_axis(x, np.argsort(x)), [a]),
        ]
        label, function, given = r.choice(calls)
        return Call(label, function, given)

    def order(self) -> Call:
        r = self.random
        a = self.array(r.choice(OURS), self.shape())
        b = self.array(a.cpu.dtype, self.shape())
        axis = r.choice((None, -1, 0))
        calls: list[tuple[str, Any, list[Any]]] = [
            ("sort", lambda x: np.sort(x, axis, kind="stable"), [a]),
            ("argsort", lambda x: np.argsort(x, axis, kind="stable"), [a]),
            ("unique", lambda x: np.unique(x, True)[0], [a]),
            ("unique1", lambda x: np.unique(x, True, True, True), [a]),
            ("isin", lambda x, y: np.isin(x, y), [a, b]),
            (
                "searchsorted",
                lambda x, y: np.searchsorted(np.sort(x, None), y, "right"),
                [a, b],
            ),
            (
                "searchsorted1",
                lambda x, y: np.searchsorted(np.sort(x, None), y, "middle"),
                [a, b],
            ),
            # NumPy copies the first element, including the payload of a NaN.
            ("cumsum", lambda x: np.cumsum(np.nan_to_num(x[:1]), axis), [a]),
        ]
        return Call(*r.choice(calls))

    def write(self) -> Call:
        r = self.random
        shape = self.shape()
        a = self.array(r.choice(OURS), shape, written=True)
        value = self.scalar()
        mask = self.array(np.dtype(bool), shape)
        b = self.array(self.dtype(), self.broadcastable(shape))
        if r.random() < 0.3:
            b = self.overlapping(a)

        def then(function: Any) -> Any:
            def call(x: Any, *rest: Any) -> Any:
                function(x, *rest)
                return x

            return call

        n = a.cpu.size
        places = r.sample(range(n), min(n, 3))
        calls: list[tuple[str, Any, list[Any]]] = [
            ("copyto", then(np.copyto), [a, b]),
            ("copyto1", then(lambda x, y, m: np.copyto(x, y, where=m)), [a, b, mask]),
            ("copyto2", then(lambda x, y: np.copyto(x, y, where=True)), [a, b]),
            ("fill", then(lambda x: x.fill(value)), [a]),
            ("put", then(lambda x: np.put(x, places, value)), [a]),
            ("putmask", then(lambda x, m: np.putmask(x, m, value)), [a, mask]),
            ("place", then(lambda x, m: np.place(x, m, [1, 2, 3])), [a, mask]),
            ("fill_diagonal", then(lambda x: np.fill_diagonal(x, value)), [a]),
            ("sort", then(lambda x: x.sort(kind="stable")), [a]),
        ]
        return Call(*r.choice(calls))

    def made(self) -> Call:
        """Make, copy, pickle and print arrays of the GPU."""
        import copy
        import pickle

        a = self.array(self.random.choice(OURS), self.shape())
        calls: list[tuple[str, Any, list[Any]]] = [
            ("pickle", lambda x: pickle.loads(pickle.dumps(x)), [a]),
            ("deepcopy", lambda x: copy.deepcopy(x), [a]),
            ("copy F", lambda x: x.copy("F"), [a]),
            ("repr", lambda x: np.array(repr(x)), [a]),
            ("tolist", lambda x: np.array(x.tolist()), [a]),
            ("view", lambda x: x.view(f"i{x.dtype.itemsize}"), [a]),
            ("zeros_like", lambda x: np.zeros_like(x), [a]),
            ("full_like", lambda x: np.full_like(x, 1.5), [a]),
            (
                "0-d",
                lambda x: (
                    tfc.asarray(x.ravel()[0].get(), x.dtype)
                    if isinstance(x, cupy.ndarray)
                    else np.asarray(x.ravel()[0])
                ),
                [a],
            ),
        ]
        return Call(*self.random.choice(calls))

    # -- comparison ------------------------------------------------------------------

    def draw(self, number: int) -> Call:
        self.random.seed(f"{self.seed} {number}")
        return self.random.choice(self.kinds)()

    def run(self, number: int) -> None:
        call = self.draw(number)
        given = [call.arguments, call.keywords]
        before = [x.memory.cpu.tobytes() for x in leaves(given)]
        wanted = self._outcome(call, 0)
        found = self._outcome(call, 1)
        self._check_memory(call, wanted, found, before)
        self._check(call, wanted, found)

    def _outcome(self, call: Call, side: int) -> Any:
        arguments = picked(call.arguments, side)
        keywords = picked(call.keywords, side)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return call.function(*arguments, **keywords)
            except Exception as error:
                return error

    def _check_memory(self, call: Call, wanted: Any, found: Any, before: Any) -> None:
        for x, was in zip(leaves([call.arguments, call.keywords]), before, strict=True):
            memory = backend.numpy_view(x.memory.gpu).tobytes()
            if isinstance(found, Exception):
                if memory != was:
                    raise Failure(f"written before {found!r}")
                continue
            if isinstance(wanted, Exception):
                continue
            dtype = x.cpu.dtype
            clean = [np.frombuffer(m, dtype) for m in (memory, x.memory.cpu.tobytes())]
            if not call.near and (bits(clean[0]) != bits(clean[1])).any():
                raise Failure(f"memory of an argument of {dtype}, {x.cpu.shape}")

    def _check(self, call: Call, wanted: Any, found: Any) -> None:
        if isinstance(found, Exception):
            if isinstance(wanted, Exception):
                return
            specific = isinstance(found, TypeError) and "GPU" in str(found)
            if not (specific or isinstance(found, TypeError)):
                raise Failure(f"{found!r}, but NumPy has none")
            self.refused[f"{call.label}: {str(found)[:110]}"] += 1
            return
        if isinstance(wanted, Exception):
            raise Failure(f"no error, NumPy's is {wanted!r}")
        wanted = wanted if isinstance(wanted, tuple | list) else [wanted]
        found = found if isinstance(found, tuple | list) else [found]
        if len(wanted) != len(found):
            raise Failure(f"{len(found)} results, not {len(wanted)}")
        for x, y in zip(wanted, found, strict=True):
            self._check_one(call, np.asarray(x), y)

    def _check_one(self, call: Call, wanted: Any, found: Any) -> None:
        if isinstance(found, cupy.ndarray):
            codes = backend.numpy_view(found)
            if (found.dtype in OURS) != (type(found) is tfc.ndarray) and (
                found.dtype != np.float32
            ):
                raise Failure(f"{type(found)} of {found.dtype}")
            found = codes
        found = np.asarray(found)
        if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
            raise Failure(
                f"{found.dtype} {found.shape}, not {wanted.dtype} {wanted.shape}"
            )
        x, y = bits(found), bits(wanted)
        if (x == y).all() or (
            x.dtype.kind == "c" and np.allclose(x, y, equal_nan=True)
        ):
            return
        if not wanted.ndim and np.isnan(wanted) and np.isnan(found):
            return  # NumPy's scalars have only one NaN
        if call.near and found.size:
            self._check_near(call, wanted, found)
            return
        found, wanted = np.atleast_1d(found), np.atleast_1d(wanted)
        at = tuple(np.argwhere(np.atleast_1d(x != y))[0][-found.ndim :].tolist())
        raise Failure(
            f"at {at}: {found[at]!r}, not {wanted[at]!r}; {(x != y).sum()} of {x.size}"
        )

    def _check_near(self, call: Call, wanted: Any, found: Any) -> None:
        with np.errstate(all="ignore"):
            x, y = found.astype(np.float64), wanted.astype(np.float64)
            info = np.finfo(wanted.dtype)
            close = np.abs(x - y) <= call.near * float(info.eps) * np.maximum(
                np.abs(x), np.abs(y)
            ) + 4 * float(info.smallest_subnormal)
            special = ~np.isfinite(x) | ~np.isfinite(y)
            special |= np.abs(y) >= float(info.max)
        # Sums that cancel or overflow may differ in another order.
        cancels = wanted.dtype == np.float32
        if not (close | special | cancels).all():
            at = tuple(np.argwhere(~(close | special))[0])
            raise Failure(f"at {at}: {found[at]!r}, not near {wanted[at]!r}")


def to_gpu(memory: Any) -> Any:
    made = cupy.ndarray(memory.shape, memory.dtype)
    backend.numpy_view(made)[...] = memory
    return made


def leaves(x: Any) -> Iterator[Both]:
    if isinstance(x, Both):
        if x.memory is not None:
            yield x
    elif isinstance(x, list | tuple):
        for y in x:
            yield from leaves(y)
    elif isinstance(x, dict):
        yield from leaves(list(x.values()))


def picked(x: Any, side: int) -> Any:
    if isinstance(x, Both):
        return x[side]
    if isinstance(x, list | tuple):
        return type(x)(picked(y, side) for y in x)
    if isinstance(x, dict):
        return {name: picked(y, side) for name, y in x.items()}
    return x


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="begin with call N (0)")
    parser.add_argument(
        "--kinds",
        nargs="+",
        metavar="NAME",
        help="make only calls of these kinds (all)",
    )
    options = parser.parse_args()
    cupy.cuda.set_allocator(backend.allocate)
    backends.use(backend.Host())
    fuzzer = Fuzzer(options.seed)
    if options.kinds:
        fuzzer.kinds = [getattr(fuzzer, name) for name in options.kinds]
    failures = 0
    for number in range(options.start, options.start + options.calls):
        try:
            fuzzer.run(number)
        except Failure as failure:
            failures += 1
            call = fuzzer.draw(number)
            given = [
                f"{x.cpu.dtype} {x.cpu.shape}" if isinstance(x, Both) else repr(x)
                for x in call.arguments
            ]
            print(
                f"call {number}: {call.label} {given} {list(call.keywords)}: {failure}"
            )
            sys.stdout.flush()
    for text, count in fuzzer.refused.most_common():
        print(f"refused {count}: {text}")
    print(f"{options.calls} calls, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
