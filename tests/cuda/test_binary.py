"""Kernels of two arrays of bfloat16 and tf32: the CPU's results in all bits."""

# ruff: noqa: F811 - the fixture

import numpy as np
import pytest

from tests.cuda.test_ufuncs import assert_same, on_cpu, put, sample
from tests.support import near_ties
from tests.support.bits import WIDE, array, dtype, name
from tests.support.cuda import HOST, backend  # noqa: F401
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE
from tests.ufuncs.test_binary import edges, moderate_pairs
from tf32dtype.cuda._functions.ufuncs import BINARY, FUNCTIONS, call
from tf32dtype.cuda._runtime.backend import Kernel

BF, TF = sorted(WIDE, key=lambda f: f.count)


def same(function, f, first, second):
    """Check that the device's results for two arrays of items are the CPU's."""
    x, y = array(f, first), array(f, second)
    ufunc = getattr(np, function)
    found = call(ufunc, (put(x), put(y)))
    assert_same(found, on_cpu(ufunc, x, y), f"{function} {f.name}")


@pytest.mark.parametrize("function", [*BINARY, *FUNCTIONS, "divmod"])
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_random_pairs(backend, f, function):
    """Test random codes, numbers near one another, and all pairs of special values."""
    same(function, f, *moderate_pairs(f, 20_000))
    ends = edges(f)
    ones = (ends + (1 << f.shift)).astype(ends.dtype)  # next to the special values
    ends = np.concatenate([ends, ones])
    same(function, f, np.repeat(ends, ends.size), np.tile(ends, ends.size))


@pytest.mark.parametrize("function", near_ties.ARITHMETIC)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_near_ties_of_arithmetic(backend, f, function):
    rng = np.random.default_rng(21)
    same(function, f, *near_ties.ARITHMETIC[function](f, rng, 20_000))


@pytest.mark.parametrize("function", near_ties.FUNCTIONS)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_near_ties_of_functions(backend, f, function):
    rng = np.random.default_rng(22)
    same(function, f, *near_ties.solved(function, f, rng, 5_000))


@pytest.mark.parametrize("f", WIDE, ids=name)
def test_powers_that_underflow(backend, f):
    """Results are near halves of the smallest number, or exact and subnormal."""
    rng = np.random.default_rng(23)
    least = f.least_exponent
    x = np.exp2(rng.integers(1, 12, 4000) * rng.choice([-1.0, 1.0], 4000))
    x = np.concatenate([x, rng.random(4000) * 4])
    y = (least + rng.integers(-4, 12, x.size)) / np.log2(x + (x == 1))
    x, y = x.astype(dtype(f)), y.astype(dtype(f))
    assert_same(call(np.power, (put(x), put(y))), on_cpu(np.power, x, y), "power")
    y = np.rint(y.astype(float)).astype(dtype(f))
    assert_same(call(np.power, (put(x), put(y))), on_cpu(np.power, x, y), "power")


@pytest.mark.parametrize("f", WIDE, ids=name)
def test_unused_bits_are_ignored(backend, f):
    x, y = sample(f, 4000), sample(f, 4000, 1)
    y[::3] = x[::3]
    for function in (*BINARY, *FUNCTIONS):
        ufunc = getattr(np, function)
        assert_same(call(ufunc, (put(x), put(y))), on_cpu(ufunc, x, y), function)
        # One operand is a scalar.
        assert_same(call(ufunc, (put(x), y[9])), on_cpu(ufunc, x, y[9]), function)
        assert_same(call(ufunc, (x[9], put(y))), on_cpu(ufunc, x[9], y), function)


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", [*near_ties.ARITHMETIC, *near_ties.FUNCTIONS])
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_a_million_near_ties(backend, f, function):
    rng = np.random.default_rng(24)
    if function in near_ties.ARITHMETIC:
        same(function, f, *near_ties.ARITHMETIC[function](f, rng, 1_000_000))
    else:
        same(function, f, *near_ties.solved(function, f, rng, 1_000_000))
    same(function, f, *moderate_pairs(f, 1_000_000))


# -- CUDA's functions are less accurate than the C library's ---------------------------

#: Changes results by up to two units in the last place, as CUDA's may err. The result's
#: bits decide the change.
LESS_ACCURATE = """
inline double less_accurate(double r)
{
    long long bits = __double_as_longlong(r);
    const unsigned long long mixed = (unsigned long long)bits * 0x9E3779B97F4A7C15ull;
    const int off = (int)(mixed >> 40) % 5 - 2;
    const bool is_exact = r == 0 || r == 1 || !(fabs(r) < 1e300);
    return is_exact ? r : __longlong_as_double(bits + off);
}
#define pow(x, y) less_accurate(pow(x, y))
#define atan2(x, y) less_accurate(atan2(x, y))
#define hypot(x, y) less_accurate(hypot(x, y))
#define exp(x) less_accurate(exp(x))
#define exp2(x) less_accurate(exp2(x))
#define log1p(x) less_accurate(log1p(x))
#include "ufuncs/binary_formulas.h"
"""


@pytest.mark.parametrize("f", WIDE, ids=name)
def test_errors_of_cuda_do_not_show(backend, f):
    if backend is not HOST:
        pytest.skip("a GPU has its own errors")
    HOST.put_fault("functions that err", LINE, LESS_ACCURATE)
    rng = np.random.default_rng(25)
    for function in near_ties.FUNCTIONS:
        same(function, f, *near_ties.solved(function, f, rng, 20_000))
        same(function, f, *moderate_pairs(f, 20_000))


@pytest.mark.parametrize("function", ["power", "hypot"])
def test_such_errors_would_show(backend, function):
    """The errors show for operands with many exact ties."""
    if backend is not HOST:
        pytest.skip("kernels are changed on the host")
    HOST.put_fault("functions that err", LINE, LESS_ACCURATE)
    HOST.put_fault("no doubt", "512", "0")
    rng = np.random.default_rng(26)
    x = np.ldexp(rng.integers(1, 4096, 20_000), -6).astype(dtype(TF))
    y = np.array(2, dtype(TF)) if function == "power" else x * 0.75
    want = on_cpu(getattr(np, function), x, y)
    with pytest.raises(AssertionError, match="of 20000"):
        assert_same(call(getattr(np, function), (put(x), put(y))), want)


# -- faults ----------------------------------------------------------------------------

FAULTS = {
    "products in float32": ("FORMAT.mantissa_bits <= 7", "true", "multiply"),
    "maximum without NaN": ("? x + y : y > x", "? y : y > x", "maximum"),
    "nextafter of ignored bits": ("from & ~(unit - 1)", "from", "nextafter"),
    "fmod as a remainder": (
        "FMOD: return arrays.slowly([](double x, double y) { return fmod",
        "FMOD: return arrays.slowly([](double x, double y) { return remainder",
        "fmod",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault):
    if backend is not HOST:
        pytest.skip("kernels are changed on the host")
    *change, function = FAULTS[fault]
    HOST.put_fault(fault, *change)
    rng = np.random.default_rng(27)
    if function in near_ties.ARITHMETIC:
        x, y = near_ties.ARITHMETIC[function](TF, rng, 20_000)
    else:
        x, y = moderate_pairs(TF, 1000)
    x[::2] |= np.uint32(5)  # bits that are ignored
    with pytest.raises(AssertionError, match=" of "):
        same(function, TF, x, y)


# -- machine code ----------------------------------------------------------------------


def options(f):
    return f"-DFORMAT=tf_{f.name}", f"-DITEM=uint{8 * dtype(f).itemsize}_t"


def cases(formats, plain):
    """Return all architectures; pairs that are not in `plain` take long and are
    exhaustive."""
    return [
        pytest.param(
            arch, f, marks=[] if (arch, f) in plain else pytest.mark.exhaustive
        )
        for arch in ARCHITECTURES
        for f in formats
    ]


BASIC = [("sm_80", BF), ("sm_90a", TF), ("sm_100a", BF)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("arch", "f"), cases(WIDE, BASIC))
def test_machine_code_of_arithmetic(arch, f):
    # A float32 division tests its operands for NaN and Inf, and adds NaNs.
    division = ("FSETP.GTU.FTZ", "FSETP.NEU.FTZ", "FADD.FTZ")
    kernel = Kernel("cuda/ufuncs/binary.cu", "binary", options(f))
    check(kernel, arch, needs=("LDG.E.128", "STG.E.128"), but=division)


@pytest.mark.parametrize(("arch", "f"), cases(WIDE, [("sm_90a", BF)]))
def test_machine_code_of_functions(arch, f):
    check(
        Kernel("cuda/ufuncs/binary_exact.cu", "function", options(f)),
        arch,
        needs=("DFMA", "DADD"),
    )
