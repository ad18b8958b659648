"""Random calls with objects, times, strings and structures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.calls import BINARY, UNARY, Call
from tests.fuzz.devices import DeviceProducts

# NumPy uses Euclid's algorithm for these on objects, which never ends for NaN.
ENDLESS = {"gcd", "lcm"}
FUNCTIONS = """vdot dot inner outer correlate convolve tensordot kron matmul vecdot
where append searchsorted isin clip concatenate array_equal isclose result_type
promote_types copyto einsum""".split()
SPECIAL: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "where": lambda a, b: np.where(True, a, b),
    "clip": lambda a, b: np.clip(a, b, b),
    "concatenate": lambda a, b: np.concatenate((a, b)),
    "einsum": lambda a, b: np.einsum("i,i", a, b),
    "copyto": lambda a, b: np.copyto(a.copy(), b, casting="unsafe"),
    "result_type": lambda a, b: np.empty(0, np.result_type(a.dtype, b.dtype)),
    "promote_types": lambda a, b: np.empty(0, np.promote_types(a.dtype, b.dtype)),
}


class ObjectCalls(DeviceProducts):
    """Draw calls that may fail, but alike for any layout, and without a crash."""

    def __init__(self, scalar_types: Sequence[Any]) -> None:
        super().__init__(scalar_types)
        self.kinds |= {self.strange_ufunc: 6, self.strange_function: 4}

    def strange(self, shape: tuple[int, ...]) -> np.ndarray:
        """Draw an array of objects, times, strings, bytes or structures."""
        r = self.random
        dtype = r.choice(self.ours)
        kind = r.choice(("O", "M8[s]", ">M8[D]", "m8[s]", "S3", "U3", "V2", "fields"))
        if kind == "O":
            items = (1, -2.5, None, "a", True, 10**30, 1j, self.array(dtype, ())[()])
            some = r.sample(items, r.randrange(1, 3))
            x = np.empty(shape, object)
            x.reshape(-1)[:] = [r.choice(some) for _ in range(x.size)]
        elif kind == "fields":
            x = np.zeros(shape, [("a", dtype), ("b", "i4"), ("c", dtype, (2,))])
            x["a"], x["c"] = self.array(dtype, shape), 1
        else:
            x = np.array(r.choices("0123456789", k=4)).astype("i8").astype(kind)
            x = np.resize(x, shape)
        return x[::-1] if x.ndim and r.random() < 0.3 else x

    def strange_ufunc(self) -> Call:
        r = self.random
        name = r.choice([n for n in UNARY + BINARY if n not in ENDLESS])
        ufunc = getattr(np, name)
        shape = self.shape(r.randrange(3))
        operands: list[Any] = [
            self.array(r.choice(self.ours), shape) for _ in range(ufunc.nin)
        ]
        if r.random() < 0.7:
            operands[r.randrange(ufunc.nin)] = self.strange(shape)
        keywords: dict[str, Any] = {}
        if r.random() < 0.2:
            keywords["dtype"] = r.choice((object, "M8[s]", "m8[s]", "V2"))
        if r.random() < 0.2:
            keywords["casting"] = "unsafe"
        outs = []
        if r.random() < 0.5:
            out = r.choice((np.empty(shape, object), self.strange(shape).copy()))
            outs = [out] + [None] * (ufunc.nout - 1)

        def function(*arrays: Any) -> Any:
            extra = dict(keywords)
            if outs:
                extra["out"] = (arrays[-1], *outs[1:])
            return ufunc(*arrays[: ufunc.nin], **extra)

        label = f"{name} {[x.dtype for x in operands]} {keywords} {outs[:1]!r:.40}"
        return Call(label, function, [*operands, *outs[:1]], value="open")

    def strange_function(self) -> Call:
        r = self.random
        name = r.choice(FUNCTIONS)
        shape = self.shape(r.randrange(3))
        pair = [self.array(r.choice(self.ours), shape), self.strange(shape)]
        r.shuffle(pair)

        def function(a: np.ndarray, b: np.ndarray) -> Any:
            try:
                return SPECIAL.get(name, getattr(np, name))(a, b)
            except SystemError as error:
                # Products of objects continue after an exception.
                raise TypeError from error

        label = f"{name} {[x.dtype for x in pair]}"
        return Call(label, function, pair, value="open")
