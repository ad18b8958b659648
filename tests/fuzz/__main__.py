"""Random calls of NumPy with our dtypes in odd memory: nothing may break.

    python -m tests.fuzz --calls 10000000 --seed 1

Each call draws an operation: ufuncs and their methods, products in every precision,
casts, indexing, reductions, sorting, scalars. It draws dtypes (ours, NumPy's, objects,
times, structures), shapes of up to four dimensions, also empty, and memory layouts:
negative steps, transposed, broadcast, unaligned, byte-swapped, overlapping. The call is
repeated on new contiguous copies. A failure is

* an unexpected exception, or an exception in only one of the two calls,
* a result dtype that differs from the promoted one,
* bits or floating-point flags that differ from those of the contiguous copies,
* a crash: the parent process names the call, and `--start` repeats it.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import struct
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.calls import Call
from tests.fuzz.objects import ObjectCalls
from tests.support import oracle

EXPECTED = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
EXPECTED += (AttributeError,)  # of objects that lack what their loops call


class Failure(Exception):
    """A result that differs, or an unexpected exception."""


class Fuzzer(ObjectCalls):
    """Draw random calls on scalar types; call `n` depends only on (seed, n)."""

    def __init__(self, scalar_types: Sequence[Any], seed: int = 0) -> None:
        super().__init__(scalar_types)
        self.seed = seed

    def only(self, names: Sequence[str]) -> None:
        """Draw only these kinds of calls."""
        self.kinds = {k: n for k, n in self.kinds.items() if k.__name__ in names}

    def draw(self, number: int) -> Call:
        self.random.seed(self.seed << 40 | number)
        makers, weights = self.kinds.keys(), self.kinds.values()
        return self.random.choices(list(makers), list(weights))[0]()

    def run(self, number: int) -> str:
        """Make one call and return its label, or raise Failure."""
        call = self.draw(number)
        copies = [self.contiguous(x) for x in call.operands]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, flags = attempt(call, call.operands)
            wanted, wanted_flags = attempt(call, copies)
        self.check(call, got, wanted)
        ours = call.value == "bits" and self.only_ours(call)
        if flags != wanted_flags and (ours or call.value == "exact"):
            raise Failure(f"flags {flags} but on contiguous copies {wanted_flags}")
        return call.label

    def only_ours(self, call: Call) -> bool:
        """Return whether only our loops compute, whose flags are ours."""
        dtypes = [x.dtype for x in call.operands if isinstance(x, np.ndarray)]
        dtypes += call.dtypes if isinstance(call.dtypes, tuple) else ()
        return all(d in self.ours or d.kind in "biu" for d in dtypes)

    def contiguous(self, x: Any) -> Any:
        """Copy the operand to new, aligned memory in native byte order."""
        if not isinstance(x, np.ndarray):
            return x
        if x.dtype in self.ours:  # as integers, without our own copy
            copy = x.view(f"u{x.itemsize}").copy().view(x.dtype)
        else:
            copy = x.astype(x.dtype.newbyteorder("="), order="C")
        copy.flags.writeable = x.flags.writeable
        return copy

    def check(self, call: Call, got: Any, wanted: Any) -> None:
        if isinstance(got, Exception) or isinstance(wanted, Exception):
            if type(got) is not type(wanted):
                raise Failure(f"{got!r} but on contiguous copies {wanted!r}")
            if call.errors is not None and not isinstance(got, call.errors):
                raise Failure(f"unexpected {got!r}")
            if call.errors is not None:
                return
            expected = call.dtypes is None or call.dtypes is TypeError
            if isinstance(got, TypeError) and not expected:
                raise Failure(f"unexpected {got!r}")
            return
        if call.errors:
            raise Failure(f"{call.errors} expected, not {got!r}")
        if call.dtypes is TypeError:
            raise Failure(f"TypeError expected, not {got!r}")
        gots = got if isinstance(got, tuple) else (got,)
        wanteds = wanted if isinstance(wanted, tuple) else (wanted,)
        for number, (one, two) in enumerate(zip(gots, wanteds, strict=True)):
            one, two = np.asanyarray(one), np.asanyarray(two)
            wanted_dtype = call.dtypes[number] if call.dtypes else one.dtype
            if one.dtype.newbyteorder("=") != wanted_dtype.newbyteorder("="):
                raise Failure(f"dtype {one.dtype}, not {wanted_dtype}")
            if one.shape != two.shape or one.dtype.kind != two.dtype.kind:
                raise Failure(f"{one!r} but on contiguous copies {two!r}")
            agree = {
                "bits": self.equal,
                "exact": self.same_bits,
                "near": near,
                "open": lambda *_: True,
            }
            if not agree[call.value](one, two):
                raise Failure(f"{one!r} but on contiguous copies {two!r}")

    def equal(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Compare bits; NumPy's own floats, whose loops differ by layout, roughly."""
        if x.dtype in self.ours:
            unsigned = f"u{x.dtype.itemsize}"
            used = self.used_bits(x.dtype)
            bits = [(a.copy().view(unsigned) & used) for a in (x, y)]
            return bool(np.array_equal(*bits))
        if x.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                x, y = x.astype(y.dtype), y
                tolerance = 1e-2 if y.dtype == np.float16 else 1e-5
                return bool(np.allclose(x, y, tolerance, 0, equal_nan=True))
        return x.tolist() == y.tolist() or x.dtype.kind == "O"

    def same_bits(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Compare bits, also those of NumPy's own floats."""
        x, y = (a.astype(a.dtype.newbyteorder("=")) for a in (x, y))
        if x.dtype in self.ours or x.dtype.char in "gG":  # these have unused bytes
            return self.equal(x, y)
        return x.tobytes() == y.tobytes()

    def used_bits(self, dtype: np.dtype) -> int:
        row = oracle.ROWS[dtype.name]
        return ((1 << (row.magnitude_bits + row.signed)) - 1) << row.shift


def near(x: np.ndarray, y: np.ndarray) -> bool:
    """Compare values of sums or products in another order; overflow may differ."""
    name = y.dtype.name
    eps = oracle.eps(name) if name in oracle.ROWS else float(np.finfo(y.dtype).eps)
    with np.errstate(all="ignore"):
        a, b = x.astype(float), y.astype(float)
        finite = np.isfinite(a) & np.isfinite(b)
        nan = np.isnan(a) == np.isnan(b)
        return bool(np.all(nan & (~finite | (np.abs(a - b) <= 8 * eps * np.abs(b)))))


def attempt(call: Call, operands: Sequence[Any]) -> tuple[Any, int]:
    """Return the results or exception of a call, and its floating-point flags."""
    flags = 0

    def raised(_: str, more: int) -> None:
        nonlocal flags
        flags |= more

    try:
        with np.errstate(all="call", call=raised):
            return call.function(*operands), flags
    except EXPECTED as error:
        return error, flags
    except Exception as error:
        raise Failure(
            f"{type(error).__name__} is not a documented error: {error}"
        ) from error


# -- the long form -----------------------------------------------------------------


def _work(fuzzer: Fuzzer, start: int, calls: int, counter: mmap.mmap) -> int:
    """Run the calls, and keep the number of the current call in shared memory."""
    faulthandler.enable()
    failures = 0
    began = shown = time.monotonic()
    for number in range(start, start + calls):
        struct.pack_into("q", counter, 0, number)
        try:
            fuzzer.run(number)
        except Failure as failure:
            failures += 1
            print(f"call {number}: {fuzzer.draw(number).label}: {failure}", flush=True)
            if failures == 50:
                print("50 failures: stopped")
                return failures
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            done = number - start + 1
            rate = done / (shown - began)
            print(
                f"{done} of {calls}, {rate:.0f} a second", file=sys.stderr, flush=True
            )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="begin with call N (0)")
    parser.add_argument(
        "--kinds",
        nargs="+",
        metavar="NAME",
        help="make only calls of these kinds (all)",
    )
    options = parser.parse_args()
    repeat = f"--seed {options.seed} --start {{}} --calls 1"
    if options.kinds:
        repeat += " --kinds " + " ".join(options.kinds)
    print(f"--seed {options.seed} --start {options.start} --calls {options.calls}")
    counter = mmap.mmap(-1, 8)
    child = os.fork()
    if child == 0:
        fuzzer = Fuzzer(all_types(), options.seed)
        if options.kinds:
            fuzzer.only(options.kinds)
        os._exit(_work(fuzzer, options.start, options.calls, counter) and 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        (number,) = struct.unpack("q", counter[:8])
        print(f"died of signal {-status} in call {number}: {repeat.format(number)}")
    elif status == 0:
        print(f"{options.calls} calls, no failure")
    return 1 if status else 0


def all_types() -> list[Any]:
    import tf32dtype as td

    return [f.type for f in td.formats.values()]


if __name__ == "__main__":
    sys.exit(main())
