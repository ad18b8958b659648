"""Threads, forks, second interpreters, references, bad input, the registration."""

from __future__ import annotations

import concurrent.futures
import gc
import os
import pickle
import resource
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run, run_code

TYPES = [f.type for f in td.formats.values()]
NAMES = list(td.formats)
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=NAMES)


# -- the registration --------------------------------------------------------------


@each_type
def test_registration(scalar_type: Any) -> None:
    """Check the basis of the hybrid form first: a later NumPy may change it."""
    dtype = np.dtype(scalar_type)
    cls = type(dtype)
    assert dtype.num >= 256  # a legacy user dtype: np.dot, einsum and dtype= need it
    assert cls() is dtype
    assert dtype.kind == "f"  # for Python code
    assert np.dtype.kind.__get__(dtype) == "V"  # for C code
    assert dtype.str == f"|V{dtype.itemsize}"  # else np.load takes it for float16
    assert dtype.byteorder == "|"
    assert dtype.isbuiltin == 2
    assert not dtype.hasobject
    assert dtype.names is None
    assert dtype.flags == 0
    assert (
        dtype.alignment == dtype.itemsize == td.formats[scalar_type.__name__].itemsize
    )
    assert dtype.type is scalar_type
    assert dtype.name == scalar_type.__name__
    assert cls._legacy
    assert not cls._parametric
    assert not cls._abstract
    assert isinstance(cls, type(np.dtype))
    assert issubclass(scalar_type, np.floating)
    assert str(dtype) == scalar_type.__name__


def test_type_numbers_and_characters_are_distinct() -> None:
    dtypes = [np.dtype(t) for t in TYPES]
    assert len({d.num for d in dtypes}) == len(dtypes)
    characters = {d.char for d in dtypes}
    assert len(characters) == len(dtypes)
    assert not characters & set(np.typecodes["All"] + "T")
    assert not characters & set("0345789ACELGPW")  # ml_dtypes' own
    for dtype in dtypes:
        assert np.dtype(dtype.char) == dtype  # np.vectorize looks it up


@each_type
def test_dtype_equality(scalar_type: Any) -> None:
    dtype = np.dtype(scalar_type)
    assert dtype == scalar_type
    assert hash(dtype) == hash(np.dtype(scalar_type))
    assert dtype != np.float32
    assert dtype != np.dtype(f"V{dtype.itemsize}")
    assert [d for d in map(np.dtype, TYPES) if d == dtype] == [dtype]


# -- processes and threads ---------------------------------------------------------


def mixed_work(scalar_type: Any) -> list[bytes]:
    """Return the bits of many kinds of loops."""
    rng = np.random.default_rng(5)
    x = rng.normal(0, 2, (60, 70)).astype(scalar_type)
    y = rng.normal(1, 1, (60, 70)).astype(scalar_type)
    with np.errstate(all="ignore"):
        results = [
            x + y,
            x * y[::-1],
            np.divide(x, y),
            np.exp(x),
            np.tanh(y.T),
            np.power(np.abs(x), y),
            np.arctan2(x, y),
            x.sum(0),
            x.sum(1),
            x.T.prod(0),
            x @ y.T,
            np.sort(x, 0),
            np.sort(x.ravel()),
            x.astype(np.float32),
            y.astype(np.float64).astype(scalar_type),
            np.maximum(x, y).max(0),
            np.cumsum(x.ravel()),
            x < y,
        ]
    return [result.tobytes() for result in results]


@pytest.mark.parametrize(
    "scalar_type", [td.bfloat16, td.tf32, td.float8_e4m3fn, td.float4_e2m1fn]
)
def test_eight_threads_give_the_bits_of_one(scalar_type: Any) -> None:
    alone = mixed_work(scalar_type)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(mixed_work, [scalar_type] * 40))
    assert all(result == alone for result in together)


def test_threads_use_different_formats_at_once() -> None:
    alone = {t: mixed_work(t) for t in TYPES}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(mixed_work, TYPES * 3))
    assert together == [alone[t] for t in TYPES * 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork() -> None:
    out = run_code(
        "import os, sys, numpy as np, tf32dtype as td\n"
        "a = np.arange(4096.).reshape(64, 64).astype(td.bfloat16)\n"
        "before = (a @ a).tobytes() + np.exp(a / 100).tobytes()\n"
        "pid = os.fork()\n"
        "after = (a @ a).tobytes() + np.exp(a / 100).tobytes()\n"
        "if pid == 0: os._exit(after != before)\n"
        "assert os.waitpid(pid, 0)[1] == 0 and after == before\n"
        "print('equal')"
    )
    assert out == "equal"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_arrays_cross_process_boundaries(method: str, tmp_path: Path) -> None:
    script = tmp_path / "main.py"  # spawn starts the main module again
    script.write_text(
        "import multiprocessing, numpy as np, tf32dtype as td\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
        "        parts = [np.full(3, i, t) for i in range(3) for t in\n"
        "                 (td.tf32, td.float8_e5m2)]\n"
        "        sums = pool.map(np.sum, parts)\n"
        "    assert [s.dtype for s in sums] == [p.dtype for p in parts]\n"
        "    print([float(s) for s in sums])"
    )
    assert run(str(script)) == "[0.0, 0.0, 3.0, 3.0, 6.0, 6.0]"


SUBINTERPRETER = (
    """
import sys
try:
    import _interpreters as interpreters
    options = (sys.argv[1],)
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as interpreters
    options = ()
if sys.argv[2] != "nothing":
    __import__(sys.argv[2])
if not options:
    other = interpreters.create(isolated=sys.argv[1] == "isolated")
else:
    other = interpreters.create(*options)
for _ in range(2):
    interpreters.run_string(other, """
    + repr("""
import sys
try:
    import tf32dtype
except ImportError as error:
    print(error, 'numpy' in sys.modules, flush=True)
""")
    + """)
import numpy as np, tf32dtype as td
assert np.ones(2, td.tf32).sum() == 2
interpreters.destroy(other)
assert (np.ones((2, 2), td.tf32) @ np.ones((2, 2), td.tf32)).sum() == 8
"""
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["legacy", "isolated"])
@pytest.mark.parametrize("first", ["nothing", "numpy", "tf32dtype"])
def test_a_subinterpreter_is_refused(kind: str, first: str) -> None:
    """Reject the import before that of NumPy, which would block the main
    interpreter's."""
    if not any(map(find_spec, ("_interpreters", "_xxsubinterpreters"))):
        pytest.skip("this Python has no subinterpreters")
    lines = run("-c", SUBINTERPRETER, kind, first).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "cannot be imported in a subinterpreter" in line
        assert line.endswith("False")


def test_reload_is_harmless() -> None:
    out = run_code(
        "import importlib, pickle, numpy as np, tf32dtype as td\n"
        "before, a = np.dtype(td.tf32), np.ones(3, td.tf32)\n"
        "importlib.reload(td)\n"
        "importlib.reload(td)\n"
        "assert np.dtype(td.tf32) is before and td.tf32 is before.type\n"
        "assert (a + np.ones(3, td.tf32)).dtype is before\n"
        "assert pickle.loads(pickle.dumps(a)).dtype is before\n"
        "try: importlib.reload(td._core)\n"
        "except ImportError: pass\n"
        "assert (a + a).dtype is before\n"
        "print('fine')"
    )
    assert out == "fine"


def test_importing_again_after_removal_from_sys_modules() -> None:
    """Refuse to register twice, or return the module that exists."""
    out = run_code(
        "import sys, numpy as np, tf32dtype as td\n"
        "before = np.dtype(td.tf32)\n"
        "for name in [n for n in sys.modules if n.startswith('tf32dtype')]:\n"
        "    del sys.modules[name]\n"
        "try:\n"
        "    import tf32dtype as again\n"
        "except ImportError:\n"
        "    pass\n"
        "else:\n"
        "    assert np.dtype(again.tf32) is before\n"
        "assert np.ones(2, td.tf32).sum() == 2\n"
        "print('fine')"
    )
    assert out == "fine"


# -- references --------------------------------------------------------------------


@np.errstate(all="ignore")
def life(scalar_type: Any) -> None:
    """Create, cast, compute, index, pickle: all that makes objects."""
    x = np.arange(4, dtype=np.float32).astype(scalar_type)
    (x + 1.0, np.exp(x), x.sum(), x @ x, np.sort(x), x < x)
    item = x[1]
    (float(item), repr(item), hash(item), item + 1, item == 2, -item)
    x.astype(object).astype(scalar_type)
    x.astype("U").astype(scalar_type)
    np.dtype(scalar_type).newbyteorder("=")
    np.promote_types(scalar_type, np.float16)
    np.can_cast(scalar_type, np.float64)
    pickle.loads(pickle.dumps([x, item, x.dtype]))
    np.finfo(scalar_type)
    for bad in (lambda: scalar_type("x"), lambda: x @ x[:1], lambda: np.gcd(x, x)):
        with pytest.raises((TypeError, ValueError)):
            bad()


def collect() -> None:
    """Free unused objects, and the names in Python's cache of types' attributes. The
    cache has 4096 entries, by the address of a name. Names that are made again each
    time, as by pickle and reprlib, fill it one by one."""
    gc.collect()
    getattr(sys, "_clear_internal_caches", sys._clear_type_cache)()


@pytest.mark.parametrize("scalar_type", [td.bfloat16, td.tf32, td.float8_e8m0fnu])
def test_no_reference_leaks(scalar_type: Any) -> None:
    dtype = np.dtype(scalar_type)
    watched = [dtype, scalar_type, type(dtype), np.dtype(np.float32), np.floating, None]
    rounds = 150
    grown = []
    for _ in range(4):
        before = [sys.getrefcount(x) for x in watched]
        blocks = sys.getallocatedblocks()
        for _ in range(rounds):
            life(scalar_type)
        collect()
        references = np.subtract([sys.getrefcount(x) for x in watched], before)
        grown.append(max(sys.getallocatedblocks() - blocks, *references.tolist()))
    # Ten rounds must lose no object or reference. The first round fills the caches of
    # NumPy and Python. Other threads may add objects once, but a leak shows each time.
    assert min(grown[1:]) < rounds // 10, grown


@pytest.mark.exhaustive
def test_no_reference_leaks_in_a_million_rounds() -> None:
    """Create, cast, compute, pickle 10^6 times, and count references and memory."""
    scalar_type = td.float8_e4m3fn
    x = np.ones(4, scalar_type)

    def rounds(count: int) -> None:
        for _ in range(count):
            y = (np.zeros(4, np.float32).astype(scalar_type) + x) * 2
            pickle.loads(pickle.dumps((y[0], y.dtype)))

    watched = [np.dtype(scalar_type), scalar_type, type(x.dtype)]
    rounds(1000)
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(1_000_000)
    gc.collect()
    after = [sys.getrefcount(thing) for thing in watched]
    assert max(np.subtract(after, before)) < 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 4 * 1024


def test_memory_does_not_grow() -> None:
    """Measure memory of the C loops, which tracemalloc does not see."""
    x = np.ones((300, 300), td.bfloat16)

    def work() -> None:
        for _ in range(60):
            (np.sort(x, 0), x.sum(0), x.sum(0, where=x > 0), x @ x[:, :3], np.exp(x))
            np.argsort(x.ravel(), kind="stable")

    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024


# -- bad input ---------------------------------------------------------------------

BAD_SCALARS: list[Any] = [
    ("one", ValueError),
    ("", ValueError),
    ("1.5 2", ValueError),
    (b"x", ValueError),
    ({}, TypeError),
    pytest.param(object(), TypeError, id="object()"),
    (1j, TypeError),
    (int, TypeError),
]


@pytest.mark.parametrize(("bad", "error"), BAD_SCALARS, ids=repr)
@pytest.mark.parametrize("scalar_type", [td.tf32, td.float8_e4m3fn])
def test_bad_scalar(scalar_type: Any, bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        scalar_type(bad)
    if isinstance(bad, str):
        assert repr(bad) in str(caught.value)
        with pytest.raises(error):
            np.array([bad], scalar_type)
    target = np.ones(3, scalar_type)
    with pytest.raises((TypeError, ValueError)):
        target[1] = bad
    assert np.all(target == 1)


def test_two_arguments_are_too_many() -> None:
    with pytest.raises(TypeError):
        td.tf32(1, 2)


CODES = np.array([0x3C00, 0x4000, 0x4200], np.uint16)
BAD_CALLS: list[tuple[str, Callable[[np.ndarray], Any], Any, str]] = [
    ("add shapes", lambda o: np.add(o, np.ones(2), out=o), ValueError, "broadcast"),
    ("add casting", lambda o: np.add(o, 1, out=o, casting="nope"), ValueError, "nope"),
    ("no loop", lambda o: np.gcd(o, o, out=o), TypeError, "gcd"),
    ("bits", lambda o: np.bitwise_and(o, o, out=o), TypeError, "bitwise_and"),
    ("axis", lambda o: np.sum(o, 3, out=o), ValueError, "axis 3"),
    ("matmul", lambda o: np.matmul(o, np.ones(7), out=o), ValueError, "mismatch"),
    ("quantize rounding", lambda o: td.quantize(o, td.tf32, rounding="up", out=o),
     ValueError, "up"),
    ("quantize overflow", lambda o: td.quantize(o, td.tf32, overflow="wrap", out=o),
     ValueError, "wrap"),
    ("quantize dtype", lambda o: td.quantize(o, "tf33", out=o), Exception, "tf33"),
    ("quantize numpy dtype", lambda o: td.quantize(o, np.float16, out=o),
     (TypeError, ValueError), "float16"),
    ("quantize rng", lambda o: td.quantize(o, td.tf32, rounding="stochastic", out=o),
     (TypeError, ValueError), "rng"),
    ("quantize out", lambda o: td.quantize(np.ones(5), td.tf32, out=o),
     ValueError, "5"),
    ("quantize text", lambda o: td.quantize(["x"], td.tf32, out=o),
     (TypeError, ValueError), ""),
    ("from_bits dtype", lambda o: td.from_bits(CODES, "half"), Exception, "half"),
    ("from_bits codes", lambda o: td.from_bits([1.5], td.tf32), TypeError, "float"),
    ("from_bits width", lambda o: td.from_bits(np.array([0x1FF]), td.float8_e5m2),
     (TypeError, ValueError), ""),
    ("from_bits dirty", lambda o: td.from_bits(np.uint32([1]), td.tf32),
     ValueError, "1"),
    ("from_bits rule", lambda o: td.from_bits(CODES, td.bfloat16, dirty="x"),
     ValueError, "x"),
    ("bits of float32", lambda o: td.bits(np.ones(2, np.float32)),
     TypeError, "float32"),
    ("formats", lambda o: td.formats["float7"], KeyError, "float7"),
    ("fp8", lambda o: td.fp8, AttributeError, "fp8_e4m3"),
    ("fp8, the other", lambda o: td.fp8, AttributeError, "fp8_e5m2"),
    ("attribute", lambda o: td.float7, AttributeError, "float7"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "names"),
    [c[1:] for c in BAD_CALLS],
    ids=[c[0] for c in BAD_CALLS],
)
def test_bad_input_names_what_was_wrong(call: Any, error: Any, names: str) -> None:
    """Name the invalid value, and leave out= unchanged."""
    out = np.array([1, 2, 3], td.tf32)
    with pytest.raises(error) as caught:
        call(out)
    assert names in str(caught.value)
    assert not isinstance(caught.value, SystemError)
    assert out.tolist() == [1, 2, 3]


def test_failing_floating_point_error_keeps_numpy_rules() -> None:
    """Raise FloatingPointError under errstate(all="raise"), as for float16."""
    with np.errstate(all="raise"):
        for bad in (
            lambda: np.ones(2, td.bfloat16) / np.zeros(2, td.bfloat16),
            lambda: np.sqrt(np.full(2, -1, td.bfloat16)),
            lambda: np.full(2, 1e38, td.bfloat16) * np.full(2, 1e38, td.bfloat16),
            lambda: (
                np.full(2, 300, td.float8_e4m3fn) + np.full(2, 300, td.float8_e4m3fn)
            ),
            lambda: np.full(2, 1e300).astype(td.tf32),
            lambda: td.bfloat16(1) / td.bfloat16(0),
        ):
            with pytest.raises(FloatingPointError):
                bad()


def test_read_only_and_wrong_out() -> None:
    x = np.ones(3, td.bfloat16)
    x.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        np.add(x, x, out=x)
    with pytest.raises(TypeError):
        np.add(x, x, out=np.empty(3, int))
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
