"""Faults in the kernels of wgmma, each of which tests should detect, and layouts.

Each fault changes a line: barriers, waits, fences, descriptors, coordinates.
"""

# ruff: noqa: F811

from __future__ import annotations

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda import block_cases as cases
from tests.cuda.native_cases import model, numbers
from tests.cuda.wgmma_cases import (
    E4M3,
    blocks_are_right,
    by_model,
    orders,
    product,
    sums_by_model,
    sums_of_parts,
    with_one_nan,
)
from tests.support.cuda import HOST, backend, tfc  # noqa: F401
from tests.support.cuda_operands import on_host
from tests.support.simulator.backend import LINE, KernelError, numpy_view
from tf32dtype._base import nvrtc
from tf32dtype.cuda._matmul import wgmma
from tf32dtype.cuda._runtime.backend import Kernel


@pytest.fixture(autouse=True)
def one_processor(monkeypatch):
    """Use one processor, which computes all tiles one after the other."""
    monkeypatch.setattr(HOST, "processors", lambda: 1)
    with np.errstate(all="ignore"):
        yield


# -- layouts ---------------------------------------------------------------------------

PROBE = """
#include "cuda/common/hopper.h"
extern "C" __global__ void probe(const TensorMap map, uint64_t *out, uint8_t *bytes)
{
    DYNAMIC_SHARED(uint8_t, memory);
    uint8_t *const base = memory + (-shared_of(memory) & 1023);
    const shared_address barrier = shared_of(base) + 16384;
    barrier_init(barrier, 1);
    publish_barriers();
    barrier_expect(barrier, 16384);
    copy_box(shared_of(base), &map, 64, 8, 1, barrier);
    barrier_await(barrier, 0);
    for (int i = 0; i < 16384; i++) {
        bytes[i] = base[i];
    }
    out[0] = descriptor(shared_of(base));
    out[1] = descriptor_across(shared_of(base));
}
"""


def swizzle(bits, address):
    """Return CuTe's Swizzle<bits, 4, 3> of an address: swizzle.hpp."""
    return address ^ (address >> 3 & ((1 << bits) - 1) << 4)


def of_atom(row, byte):
    """Return a byte's address by CUTLASS's GMMA::Layout_K_SW128_Atom_Bits. In
    mma_traits_sm90_gmma.hpp, it is Swizzle<3,4,3> of ((8, 1024):(1024, 1)) in bits. The
    next 8 rows follow."""
    return swizzle(3, row // 8 * 1024 + row % 8 * 128 + byte)


def of_descriptor(bits, row, byte):
    """Return a byte's address by a descriptor of K-major B128. In
    mma_traits_sm90_gmma.hpp, it is Swizzle<3,4,3> o smem_ptr o
    ((8,m),(T,2)):((8T,SBO),(1,T)), with T elements of 16 bytes."""
    start, stride = (bits & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4
    assert bits >> 62 == 1  # LayoutType::B128
    assert bits >> 49 & 7 == 0  # base_offset_
    linear = row % 8 * 128 + row // 8 * stride + byte // 16 * 16 + byte % 16
    return swizzle(3, start + linear)


def of_atom_across(line, k):
    """Return an element's address by CUTLASS's GMMA::Layout_MN_SW128_Atom_Bits. For
    2-byte elements, it is Swizzle<3,4,3> of ((1024, 8):(1, 1024)) in bits. A box has 64
    k, and the next 64 lines follow."""
    return swizzle(3, line // 64 * 8192 + k * 128 + line % 64 * 2)


def of_descriptor_across(bits, line, k):
    """Return an element's address by a descriptor of MN-major B128. In
    mma_traits_sm90_gmma.hpp, it is Swizzle<3,4,3> o smem_ptr o
    ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)), with T = 8 elements of 2 bytes."""
    start, leading, stride = ((bits >> i & 0x3FFF) << 4 for i in (0, 16, 32))
    assert bits >> 62 == 1  # LayoutType::B128
    assert bits >> 49 & 7 == 0  # base_offset_
    linear = line % 64 * 2 + line // 64 * leading + k % 8 * 128 + k // 8 * stride
    return swizzle(3, start + linear)


def test_layouts(backend, tmp_path, monkeypatch):
    """The box of a copy has CUTLASS's layout, and is zero outside of the tensor.
    Descriptors read this layout, for all steps of k and both halves of the rows."""
    if backend is not HOST:
        pytest.skip("of the host")
    (tmp_path / "probe.cu").write_text(PROBE)
    monkeypatch.setattr(nvrtc, "FOLDERS", [*nvrtc.FOLDERS, tmp_path])
    rng = np.random.default_rng(11)
    numbers = rng.integers(1, 1 << 16, (2, 70, 104), np.uint16)
    x = HOST.put(numbers)
    extents, strides = (100, 70, 2), (208, 70 * 208)
    one = HOST.tensor_map(x, 2, extents, strides, (64, 128, 1), True)
    out = HOST.put(np.zeros(2, np.uint64))
    shared = HOST.put(np.zeros(16384, np.uint8))
    HOST.launch(Kernel("probe.cu", "probe"), (1,), (1,), one, out, shared, shared=18432)
    (bits, across), there = map(int, HOST.get(out)), HOST.get(shared)
    box = np.zeros((128, 64), np.uint16)  # from (64, 8, 1) on
    box[:62, :36] = numbers[1, 8:, 64:100]
    bytes_ = box.view(np.uint8)
    start = (bits & 0x3FFF) << 4
    assert start % 1024 == 0
    for row in range(128):
        for byte in range(128):
            assert there[of_atom(row, byte)] == bytes_[row, byte]
            step, group = byte // 32, row // 64
            moved = bits + (group * 64 * 128 >> 4) + step * 2
            place = of_descriptor(moved, row % 64, byte % 32)
            assert place == start + of_atom(row, byte)
    for k in range(64):  # rows of the same box, as k of the first 64 lines
        for line in range(64):
            place = of_atom_across(line, k)
            assert there[place : place + 2].view(np.uint16)[0] == box[k, line]
    for line in range(256):
        for k in range(64):
            step, group = k // 16, line // 64
            moved = across + (group * 64 * 128 >> 4) + step * 128
            place = of_descriptor_across(moved, line % 64, k % 16)
            assert place == start + of_atom_across(line, k)
            moved = across + step * 128  # all of b
            assert place == of_descriptor_across(moved, line, k % 16)


# -- faults ----------------------------------------------------------------------------

#: edits, each of which `is_right` should detect
FAULTS = {
    "a stage released unread": (
        "await_products<0>();",
        "Ring::release(ring.empty()); await_products<0>();",
    ),
    "no wait for bytes": (LINE, ""),
    "a stage filled while read, by wgmma": (LINE, ""),
    "parity stays": (LINE, ""),
    "too few bytes expected": (
        "expect(full(), FILLED)",
        "expect(full(), FILLED - 64)",
    ),
    "a warp releases for all": (
        "barriers + i * 16 + 8, WARPS)",
        "barriers + i * 16 + 8, 1)",
    ),
    "barriers not published": (LINE, ""),
    "no barrier after barriers are made": (LINE, ""),
    "steps are of 16 bytes": ("slice) + step * 2", "slice) + step"),
    "rows of the other warpgroup": ("group * 64 * SLICE", "0 * SLICE"),
    "8 lines are 512 bytes": ("1024 >> 4", "512 >> 4"),
    "chunks permuted within 64 bytes": ("(uint64_t)1 << 62", "(uint64_t)2 << 62"),
    "stages begin anywhere": ("memory + (-shared_of(memory) & 1023)", "memory"),
    "chains go on, by wgmma": ("* 2, 0);", "* 2, 1);"),
    "accumulators read early": ("await_products<1>();", "await_products<2>();"),
    "no fence of registers": (LINE, ""),
    "the last sums read early": ("<0>();", "<1>();"),
    "no instruction added": (LINE, ""),
    "a stretch is a slice too long, by wgmma": (
        "left < stretch ? left : stretch;",
        "left < stretch + 1 ? left : stretch + 1;",
    ),
    "stretches forgotten": (LINE, ""),
    "sums not restarted, by wgmma": (LINE, ""),
    "orders count alike": (LINE, ""),
    "parts of b in their own order": ("PARTS - 1 - order + least", "order - least"),
    "always the first columns": ("+ column * SLICE", ""),
    "the next slice begins too early, by wgmma": (
        "range.in_a + i) * DEPTH,",
        "range.in_a + i) * (DEPTH - 8),",
    ),
    "columns of another tile": ("(int)tile.column,", "(int)tile.row,"),
    "always the first tile": (
        "const Tile tile = tile_of(at, rows, columns);",
        "const Tile tile = tile_of(blockIdx.x, rows, columns);",
    ),
    "another instruction, by wgmma": (
        "simt_wgmma(unit,",
        'simt_wgmma("m64n64k16.f32.f16.f16",',
    ),
}


def is_right(backend):
    """Return whether sums of components are right in either order of threads. There are
    two pieces, more slices than stages, and two tiles."""
    rng = np.random.default_rng(12)
    parts = wgmma.Parts(2, 2, 2.0**-8, 2)
    a, b = (numbers(rng, (2, 1, x, 460), td.bfloat16) for x in (70, 300))
    want = sums_by_model(a, b, parts, 2)
    right = True
    for _ in orders(backend):
        got = with_one_nan(sums_of_parts(backend, a, b, parts, 2))
        right = right and bool((got == want).all())
    return right


def is_caught(right, *arguments):
    """Return whether a fault shows, in bits or in an error of the simulator."""
    try:
        return not right(*arguments)
    except KernelError:
        return True


@pytest.mark.sampled(15)
@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_faults(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS[fault])
    assert is_caught(is_right, backend) == (fault is not None)


FAULTS_OF_CHAINS = {
    "the stage itself released": (LINE, ""),
    "a chain for each slice": ("step, 0, 1);", "step, 0, step);"),
    "a stage released early": (LINE, ""),
    "results read early": ("await_products<0>();", "await_products<1>();"),
    "the last stage not released": (LINE, ""),
    "no fence of registers, in chains": (LINE, ""),
}


def chains_are_right(backend):
    rng = np.random.default_rng(13)
    # two wide tiles, of more slices than stages
    a, b = (numbers(rng, x, E4M3) for x in ((1, 70, 650), (1, 650, 260)))
    want = model(backend, a, b, instruction="wgmma")
    return all((product(backend, a, b) == want).all() for _ in orders(backend))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", [None, *FAULTS_OF_CHAINS])
def test_faults_of_chains(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS_OF_CHAINS[fault])
    assert is_caught(chains_are_right, backend) == (fault is not None)


FAULTS_ACROSS = {
    "boxes are 4096 bytes": ("8192 >> 4", "4096 >> 4"),
    "8 k are 512 bytes": ("1024 >> 4", "512 >> 4"),
    "steps are of 8 k": ("step * 128", "step * 64"),
    "always the first lines": ("map, line + i, k", "map, line, k"),
}


def across_is_right(backend):
    rng = np.random.default_rng(16)
    a, b = (numbers(rng, x, np.float16) for x in ((1, 72, 200), (1, 200, 136)))
    want = model(backend, a, b, instruction="wgmma")
    layouts = "columns", "rows"
    return all(
        (product(backend, a, b, layouts=layouts) == want).all() for _ in orders(backend)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [None, *FAULTS_ACROSS])
def test_faults_across(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS_ACROSS[fault])
    assert is_caught(across_is_right, backend) == (fault is not None)


FAULTS_OF_BLOCKS = {
    "the other level's scales, by wgmma": (
        "(turn.block * B_LEVELS + turn.b_level) * COLUMNS",
        "(turn.block * B_LEVELS) * COLUMNS",
    ),
    "scales of rows swapped": ("of_rows[r / 2]", "of_rows[1 - r / 2]"),
    "scales of columns swapped": ("r % 2 ? of_col", "r % 2 == 0 ? of_col"),
    "scales of another block": ("row, 0, block, of_a", "row, 0, slice, of_a"),
    "the other level's codes": ("turn.a_level * A_BYTES", "0 * A_BYTES"),
    "residuals of another slice": (
        "&a.residuals, first, row",
        "&a.residuals, first + 32, row",
    ),
    "the other set of accumulators": ("(sums, d[turn % 2]", "(sums, d[0]"),
    "no stage released": (LINE, ""),
    "terms are in another order, by wgmma": (
        "term / B_LEVELS % A_LEVELS, term % B_LEVELS}",
        "term % B_LEVELS, term / B_LEVELS % A_LEVELS}",
    ),
    "a stage released before its scales": (
        "begin(",
        "Ring::release(ring.empty()); begin(",
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("fault", [None, *FAULTS_OF_BLOCKS])
def test_faults_of_blocks(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS_OF_BLOCKS[fault])
    given = backend, "tcfp16", "tcfp16", 3, 32
    assert is_caught(blocks_are_right, *given) == (fault is not None)


FAULTS_OF_HALVES = {
    "first and last swapped": ("*(uint4 *)(to + 16) =", "*(uint4 *)(to + 8) ="),
    "codes beyond k count": ("rest >= 4  ?", "rest > -99 ?"),
    "lines of the next matrix": ("row / lines * matrix", "row / lines * line"),
    "the other codes of a word": ("words[j] & kept) >> 16", "words[j] & kept) >> 8"),
}


def halves_are_right(backend):
    rng = np.random.default_rng(14)
    a, p = cases.both(cases.numbers(rng, (2, 40, 70)), "tcfp16", scale="amax")
    b, q = cases.both(cases.numbers(rng, (5, 70)).T, "tcfp16", 0, scale="amax")
    for x in (p, q):  # outside of k, which is never read
        numpy_view(x.codes)[..., -1, 70 % 32 :] = 0x3C
    with tfc.matmul_mode("native"):
        got = on_host(p @ q)
    want = np.array([by_model(a[i], b, None, "mma.sync") for i in range(2)])
    return bool((got.view("u4") == want.view("u4")).all())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", [None, *FAULTS_OF_HALVES])
def test_faults_of_halves(backend, fault, monkeypatch):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    monkeypatch.setattr(wgmma, "ENABLED", True)
    if fault is not None:
        HOST.put_fault(fault, *FAULTS_OF_HALVES[fault])
    assert is_caught(halves_are_right, backend) == (fault is not None)
