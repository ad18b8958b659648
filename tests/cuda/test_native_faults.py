"""Faults in src/cuda/matmul/native.cu, each of which its tests should detect.

Each fault changes a line: fragments, permutations, barriers, waits, edges, addresses.
"""

# ruff: noqa: F811

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda.native_cases import model, numbers, ours, product
from tests.support.cuda import HOST, backend  # noqa: F401
from tests.support.simulator.backend import LINE, KernelError
from tf32dtype.cuda._matmul import native

#: the change of the line with this anchor, and whether operands are across k
FAULTS = {
    "fragments of b swapped": ("[j % 2 * 2 +", "[2 - j % 2 * 2 +", False),
    "ldmatrix has its second and third matrix swapped": (
        "line = lane % 8 + down * 8, chunk = step * 2 + further",
        "line = lane % 8 + further * 8, chunk = step * 2 + down",
        False,
    ),
    "rows of the result swapped": (
        "{results[i][j][down * 2],",
        "{results[i][j][2 - down * 2],",
        False,
    ),
    "no barrier between reading a stage and filling it": (LINE, "", False),
    "no barrier before the first step": (LINE, "", False),
    "a wait of one group less": (
        "await_copies<STAGES - 2>();",
        "await_copies<STAGES - 1>();",
        False,
    ),
    "groups not committed": (LINE, "", False),
    "chunks permuted when read alone": (
        "stage += line * LINE + (chunk ^ swizzle(line)) * 16;",
        "stage += line * LINE + chunk * 16;",
        False,
    ),
    "the next slice begins too early": (
        "from += ALONG_K ? SLICE :",
        "from += ALONG_K ? SLICE - 16 :",
        False,
    ),
    "the step read twice": (
        "y[next][j], reads + Left::BYTES, (step + 1) % STEPS, j",
        "y[next][j], reads + Left::BYTES, step, j",
        False,
    ),
    "a stage filled while read": (
        "writes = stages + (STAGES - 1) * STAGE;",
        "writes = stages;",
        False,
    ),
    "nonzero beyond k": (
        "clamp(depth * SIZE - chunk * 16) : edge",
        "16 : edge",
        False,
    ),
    "nonzero beyond k, across it": (
        "ALONG_K ? edge : depth - line",
        "ALONG_K ? edge : LINES",
        True,
    ),
    "rows beyond the last read": (
        "const int here = rows < EXTENT ? (int)rows : EXTENT;",
        "const int here = rows < EXTENT ? (int)rows - 1 : EXTENT;",
        True,
    ),
    "ldmatrix does not transpose": (
        "(const void *)row, true",
        "(const void *)row, false",
        True,
    ),
    "a slice less deep at the end": (
        "(int)((k - 1) % DEPTH) + 1;",
        "(int)((k - 1) % DEPTH);",
        False,
    ),
    "another instruction": (
        "simt_mma(UNIT,",
        'simt_mma("m16n8k16.row.col.f32.f16.f16.f32",',
        False,
    ),
}


def chain(backend, across):
    """Return whether the kernel is right for more slices than stages, in any order."""
    rng = np.random.default_rng(8)
    right = True
    for m, k, n in ((64, 330, 64), (50, 70, 60)):
        a, b = (numbers(rng, x, td.bfloat16) for x in ((1, m, k), (1, k, n)))
        # Other numbers follow chunks that are partly out of range.
        x, y = (numbers(rng, (1, 400, 400), td.bfloat16) for _ in range(2))
        x[:, :m, :k], y[:, :n, :k] = a, b.swapaxes(-1, -2)
        if across:
            x, y = (ours(backend, i, "columns") for i in (x, y))
        else:
            x, y = (ours(backend, i, "rows") for i in (x, y))
        x, y = x[:, :m, :k], y[:, :n, :k].swapaxes(-1, -2)
        for HOST.descends in (False, True):
            got = product(backend, x, y, native.SMALL)
            right = right and bool((got == model(backend, a, b)).all())
    return right


@pytest.mark.parametrize("across", [False, True])
def test_without_faults(backend, across):
    assert chain(backend, across)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    before, after, across = FAULTS[fault]
    HOST.put_fault(fault, before, after)
    assert not chain(backend, across)


#: faults of sums of chains
FAULTS_OF_SUMS = {
    "the last chain forgotten": (
        "(unit + 1) % CHAIN == 0; r++",
        "(unit + 1) % CHAIN == 0 && unit == 0; r++",
    ),
    "chains go on, by native": ("unit % CHAIN == 0;", "unit % CHAIN == CHAIN;"),
    "sums not restarted": (
        "(WARP_COLUMNS / 8)][e % 4] = 0;",
        "(WARP_COLUMNS / 8)][e % 4] += 0;",
    ),
    "beta always": (LINE, ""),
    "what is there not counted": (
        "__fmaf_rn(beta, before[down][e / 2].x",
        "__fmaf_rn(0, 0",
    ),
    "rows of what is there swapped": (
        "before[down][e / 2] = *",
        "before[1 - down][e / 2] = *",
    ),
    "columns of what is there swapped": (
        "j * 8 < columns ? from[0]",
        "j * 8 < columns ? from[1]",
    ),
    "a stretch is a slice too long": (
        "ahead - stretch / DEPTH",
        "ahead - stretch / DEPTH - 1",
    ),
    "halves of a step swapped": ("&x[i][half * 2]", "&x[i][2 - half * 2]"),
    "results cut": ("__fadd_rn(sums[i][j][r], d[i][j][r])", "d[i][j][r]"),
}

#: faults of totals in shared memory
FAULTS_OF_TOTALS = {
    "what is there not fetched": ("if (TOTALS && beta != 0) {", "if (false) {"),
    "totals of other threads": (
        "totals[e * THREADS] = {x[0], x[1]}",
        "totals[e * THREADS - 1] = {x[0], x[1]}",
    ),
    "totals where the slices are": ("(memory + STAGES * STAGE)", "(memory)"),
    "totals are not kept": ("if (more) {", "if (!more) {"),
    "totals not added": ("__fmaf_rn(beta, before.x, x[0])", "x[0]"),
    "pairs of other rows": ("&results[i / 2][j][i % 2 * 2]", "&results[i / 2][j][0]"),
    "columns of what is there": ("j * 8 + 1 < of.columns", "j * 8 < of.columns - 8"),
    "what is there counts twice": ("TOTALS ? 0 : beta", "beta"),
}


def summed(backend, tile=native.SMALL):
    """Return whether sums of chains are right, for whole and partial tiles."""
    rng = np.random.default_rng(9)
    right = True
    for m, k, n in ((64, 330, 64), (50, 70, 63)):
        a, b = (numbers(rng, x, td.bfloat16) for x in ((1, m, k), (1, k, n)))
        c = rng.standard_normal((1, m, n)).astype(np.float32)
        x, y = ours(backend, a, "rows"), ours(backend, b, "columns")
        for promote in (8, 16, 32):
            sums = native.Sums(promote, 128, 2.0**-2)
            got = product(backend, x, y, tile, sums, c)
            right = right and bool((got == model(backend, a, b, sums, c)).all())
    return right


@pytest.mark.parametrize("fault", [None, *FAULTS_OF_SUMS])
def test_faults_of_sums(backend, fault):
    if fault is None:
        assert summed(backend)
        return
    if backend is not HOST:
        pytest.skip("faults are for the host")
    HOST.put_fault(fault, *FAULTS_OF_SUMS[fault])
    assert not summed(backend)


@pytest.mark.parametrize("fault", [None, *FAULTS_OF_TOTALS])
def test_faults_of_totals(backend, fault):
    tile = native.SMALL._replace(totals=True)
    if fault is None:
        assert summed(backend, tile)
        return
    if backend is not HOST:
        pytest.skip("faults are for the host")
    HOST.put_fault(fault, *FAULTS_OF_TOTALS[fault])
    assert not summed(backend, tile)


@pytest.mark.parametrize(
    ("fault", "before", "after", "message"),
    [
        ("a copy to an odd address", "line * LINE", "8 + line * LINE",
         "cp.async of an address"),
        ("a fragment at an odd address", "stage +", "stage + 4 +",
         "ldmatrix of an address"),
        ("a barrier of some warps", "__sync", "if (threadIdx.x / 32) __sync",
         "missed"),
    ],
)  # fmt: skip
def test_errors_of_the_kernel(backend, fault, before, after, message):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    HOST.put_fault(fault, before, after)
    with pytest.raises(KernelError, match=message):
        chain(backend, False)


@pytest.mark.parametrize("tile", [native.SMALL, native.SQUARE])
@pytest.mark.parametrize("across", [False, True])
def test_banks(backend, tile, across):
    """By `swizzle`, the chunks that ldmatrix reads together are in different banks."""
    if backend is not HOST:
        pytest.skip("counted on the host")
    zeros = np.zeros((1, 128, 128), td.bfloat16)
    x, y = (ours(HOST, zeros, i) for i in ("columns" if across else "rows",) * 2)

    def conflicts():
        before = set(HOST._libraries)
        product(HOST, x, y.swapaxes(-1, -2), tile)
        (key,) = set(HOST._libraries) - before
        return ctypes.c_int.in_dll(HOST._libraries[key], "simt_conflicts").value

    HOST._libraries.clear()  # excludes the counts of other tests
    HOST.put_fault("chunks not permuted", "line % 8", "(line % 8)")  # changes nothing
    assert conflicts() == 0
    HOST.faults.clear()
    HOST.put_fault("chunks not permuted", "line % 8", "0")
    HOST.put_fault("short chunks not permuted", "line / 2 % 4", "0")
    assert conflicts() > 0
