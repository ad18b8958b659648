"""The recorder's kernels without a GPU: addressing and assembly."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.paths import ROOT
from tf32dtype._base import nvrtc as compiler
from tf32dtype._base.nvrtc import CudaError
from tools.tensor_core_recorder import bulk_inputs, instructions, launch, tiles
from tools.tensor_core_recorder.probes import probes

pytestmark = pytest.mark.once

WARP = ROOT / "tests" / "support" / "simulator" / "warp.h"
#: V100 is left out by CUDA 13, whose NVRTC begins with sm_75.
CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]

ALL = {unit.name: unit for c in CAPABILITIES for unit in instructions.units(c)}


def shape_of(unit):
    """Return a key. Units with the same key differ only in one word of PTX."""
    size = unit.instruction, unit.rows, unit.k, unit.a.storage
    return *size, unit.half, "kind" in unit.ptx


SHAPES = list({shape_of(unit): unit for unit in ALL.values()}.values())

# -- on the CPU ------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


FLAGS = "-std=c++20 -O1 -pthread -fPIC -Wno-unknown-pragmas".split()


def built(tmp_path, name, before, after, *options):
    """Return a kernel file as a library, between replacements for CUDA and a caller."""
    text = tmp_path / "kernel.cpp"
    text.write_text("\n".join([before, compiler.source(name), after]))
    library = tmp_path / "kernel.so"
    command = [
        "g++",
        *FLAGS,
        "-shared",
        *options,
        f"-I{compiler.FOLDERS[0]}",
        str(text),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def pointers(*arrays):
    return [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]


def mixture(a, b, c, half):
    """Return the results of warp.h for codes: a (m, k), b (n, k), c (m, n)."""
    a, b, d = (x.astype(np.uint32) for x in (a, b, c))
    for k in range(a.shape[1]):
        d = (d ^ a[:, None, k]) * np.uint32(2654435761) + b[None, :, k] * np.uint32(
            k + 1
        )
    return d & np.uint32(0xFFFF) if half else d


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """Return the C++ headers that warp.h includes, compiled once for all units."""
    header = tmp_path_factory.mktemp("headers") / "standard.h"
    included = [x for x in WARP.read_text().splitlines() if x.startswith("#include <")]
    header.write_text("\n".join(included))
    subprocess.run(["g++", *FLAGS, "-x", "c++-header", str(header)], check=True)
    return header


def dots(tmp_path, unit, headers):
    """Return a unit's kernel with the threads and the instruction of warp.h."""
    options = "-include", str(headers), f"-DBITS={unit.a.storage}", *unit.options
    return built(
        tmp_path,
        "cuda/recorder/record_mma.cu",
        f'#include "{WARP}"',
        "",
        *options,
    )


@pytest.mark.sampled(10)
@needs_compiler
@pytest.mark.parametrize("unit", SHAPES, ids=lambda unit: unit.name)
def test_fragments_are_where_ptx_has_them(unit, tmp_path, headers):
    library = dots(tmp_path, unit, headers)
    rng, count, chain = np.random.default_rng(1), 2, 3
    a, b = (
        rng.integers(0, 1 << f.storage, (count * chain, n, unit.k)).astype(f.unsigned)
        for f, n in ((unit.a, unit.rows), (unit.b, 8))
    )
    c = rng.integers(0, 1 << unit.accumulator.storage, (count, unit.rows, 8))
    c = c.astype(np.uint32)
    for scale_d in (1, 0) if unit.instruction == "wgmma" else (1,):
        d = np.zeros_like(c)
        operands = pointers(instructions.pack(a), instructions.pack(b), c, d)
        library.launch(*operands, count, chain, scale_d)
        for tile in range(count):
            want = c[tile] * scale_d
            for step in range(tile * chain, (tile + 1) * chain):
                want = mixture(a[step], b[step], want, unit.half)
            np.testing.assert_array_equal(d[tile], want)


INPUTS = """
#define STAND_IN
#define __device__
#define __global__
struct Index { unsigned x, y; };
static Index threadIdx, blockIdx, blockDim;
static unsigned converted(unsigned x) { return x * 2654435761u; }
static void atomicAdd(unsigned long long *sum, unsigned long long x) { *sum += x; }
"""
LOOPS = """
extern "C" void fill_all(void *out, u32 first, u32 count, u32 seed, u32 per_tile,
                         int bits, int m, int e, int shift, const u32 *low,
                         const u32 *span) {
    blockDim.x = 1;
    for (blockIdx.x = 0; blockIdx.x < count; blockIdx.x++)
        fill(out, first, count, seed, per_tile, bits, m, e, shift, low, span);
}
extern "C" void convert_all(const u32 *x, u32 *y, u32 count) {
    blockDim.x = 1;
    for (blockIdx.x = 0; blockIdx.x < count; blockIdx.x++)
        convert(x, y, count);
}
extern "C" void digest_grid(u64 *out) {
    for (int i = 0; i < 256; i++)
        out[i] += i;
}
extern "C" void digest_all(u64 *out, u32 y) {
    blockIdx.y = y;
    for (blockIdx.x = 0; blockIdx.x < 256; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++)
            digest(out);
    threadIdx.x = blockIdx.y = 0;
}
"""


def conversion_digest(first, y):
    """Return the sum that `digest` adds for conversions y of successive floats."""
    x = np.uint64(first) + np.arange(len(y), dtype=np.uint64)
    z = (x << np.uint64(32) | y) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.sum(z ^ z >> np.uint64(31))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Return the library of the kernels that make operands and digests."""
    return built(
        tmp_path_factory.mktemp("inputs"), "cuda/recorder/record_inputs.cu", INPUTS,
        LOOPS, "-DCONVERSION",
    )  # fmt: skip


@needs_compiler
def test_random_operands_and_digests_are_numpys(inputs):
    library = inputs
    for unit in SHAPES:
        for draw in bulk_inputs.draws(unit):
            first, count = 4 * draw.per_tile - 5, draw.per_tile + 9
            got = np.zeros(count, f"u{draw.width // 8}")
            low, span = (np.array(x, np.uint32) for x in (draw.low, draw.span))
            f = draw.format
            library.fill_all(
                *pointers(got), first, count, draw.seed, draw.per_tile, draw.width,
                f.mantissa_bits, f.exponent_bits, f.shift, *pointers(low, span),
            )  # fmt: skip
            np.testing.assert_array_equal(got, draw.codes(first, count))
    sums = np.zeros(256, np.uint64)
    library.digest_all(*pointers(sums), 0x7F)
    found = []
    for first in range(0x7F000000, 0x80000000, 1 << 15):  # which a cache holds
        x = np.uint32(first) + np.arange(1 << 15, dtype=np.uint32)
        found.append(conversion_digest(first, x * np.uint32(2654435761)))
    want = np.zeros(256, np.uint64)
    want[0x7F] = np.sum(found)
    np.testing.assert_array_equal(sums, want)


# -- as CuPy would launch them ---------------------------------------------------------


#: The function that calls a kernel in the libraries, and the types that the kernel
#: takes. None is an array.
CALLS = {
    "run": ("launch", [None, None, None, None, np.int32, np.int32]),
    "fill": ("fill_all", [None, *[np.uint32] * 4, *[np.int32] * 4, None, None]),
    "digest": ("digest_grid", [None]),
    "convert": ("convert_all", [None, None, np.uint32]),
}


class DeviceArray(np.ndarray):
    """An argument of a kernel, in the memory of the CPU."""

    def get(self):
        return np.array(self)


class Module:
    """A file of kernels that runs on the CPU, with the interface of CuPy."""

    def __init__(self, library):
        self.library = library

    def get_function(self, name):
        def call(grid, block, arguments):
            function, types = CALLS[name]
            assert len(arguments) == len(types)
            given = []
            for x, kind in zip(arguments, types, strict=True):
                assert type(x) is (kind or DeviceArray)
                given.append(pointers(x)[0] if kind is None else int(x))
            if name == "run":
                assert block in ((32,), (128,))
                getattr(self.library, function)(*given[:4], grid[0], *given[4:])
                return
            threads = grid[0] * block[0]
            if name != "digest":
                assert 0 <= threads - int(arguments[2]) < block[0]
            getattr(self.library, function)(*given)

        return call


def made_up_cupy(libraries):
    """Return the parts of CuPy that the recorder uses."""
    runtime = SimpleNamespace(
        CUDARuntimeError=RuntimeError,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda i: {"major": 8, "minor": 9, "name": b"made up"},
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13000,
    )
    nvrtc = SimpleNamespace(getVersion=lambda: (13, 0))
    return SimpleNamespace(
        __version__="0",
        cuda=SimpleNamespace(runtime=runtime, nvrtc=nvrtc),
        asarray=lambda x: np.array(x).view(DeviceArray),
        empty=lambda shape, dtype: np.full(shape, 77, dtype).view(DeviceArray),
        RawModule=lambda path: Module(libraries[Path(path).read_bytes()]),
    )


@pytest.mark.exhaustive
@needs_compiler
@pytest.mark.parametrize(
    "unit", ["mma.m16n8k16.f16.f16.f16", "wgmma.m64n8k32.e5m2.e4m3.f32"]
)
def test_launches(unit, inputs, tmp_path, headers, monkeypatch):
    unit = ALL[unit]
    libraries = {
        b"cuda/recorder/record_inputs.cu": inputs,
        b"cuda/recorder/record_mma.cu": dots(tmp_path, unit, headers),
    }
    monkeypatch.setattr(launch, "_cupy", lambda: made_up_cupy(libraries))
    monkeypatch.setattr(launch, "compile_cuda", lambda name, *_: name.encode())
    monkeypatch.setattr(launch, "CHUNKS", 1)
    monkeypatch.setattr(launch, "CHUNK", 512)
    monkeypatch.setattr(bulk_inputs, "CHUNK", 512)

    gpu = launch.Gpu()
    assert (gpu.capability, gpu.architecture, gpu.name) == ((8, 9), "sm_89", "made up")
    assert gpu.facts()["capability"] == [8, 9]

    found = probes(unit)
    words = tiles.words(unit, found)
    few = tiles.Words(*(x[-24:] for x in words))
    codes = [
        instructions.encode(f, x[-24:])
        for f, x in zip((unit.a, unit.b), found, strict=False)
    ]
    want = [
        mixture(a[None], b[None], c[None, None], unit.half)[0, 0]
        for a, b, c in zip(*codes, few.c, strict=True)
    ]
    np.testing.assert_array_equal(tiles.alone(gpu.run, unit, few), want)
    np.testing.assert_array_equal(tiles.beside(gpu.run, unit, few), want)
    everywhere = tiles.everywhere(gpu.run, unit, few)
    assert (everywhere == np.array(want)[:, None, None]).all()

    a, b, c = bulk_inputs.chunk(unit, 0)
    a, b, c = (
        instructions.encode(f, x)
        for f, x in zip((unit.a, unit.b, unit.accumulator), (a, b, c), strict=True)
    )
    d = [
        mixture(*x, unit.half)[0, 0]
        for x in zip(a[:, None], b[:, None], c[:, None, None], strict=True)
    ]
    assert gpu.bulk(unit).tolist() == [bulk_inputs.digest(np.array(d))]

    conversion = bulk_inputs.CONVERSIONS[0]
    x = bulk_inputs.boundaries()
    np.testing.assert_array_equal(gpu.convert(conversion, x), x * np.uint32(2654435761))
    assert gpu.convert_all(conversion).tolist() == list(range(256))


def test_a_machine_without_a_gpu(monkeypatch):
    def none():
        raise RuntimeError("cudaErrorNoDevice")

    stub = made_up_cupy({})
    monkeypatch.setattr(launch, "_cupy", lambda: stub)
    stub.cuda.runtime.getDeviceCount = none
    with pytest.raises(CudaError, match=r"no NVIDIA GPU, .* cudaErrorNoDevice"):
        launch.Gpu()
    stub.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(CudaError, match="there is no NVIDIA GPU"):
        launch.Gpu()


# -- by NVIDIA's compiler --------------------------------------------------------------


@pytest.fixture(scope="module")
def nvrtc():
    """Return the compiler, which needs no GPU."""
    pytest.importorskip("cupy")
    try:
        compiler.compile_cuda("cuda/recorder/record_inputs.cu", (), "sm_90a")
    except CudaError as error:
        pytest.skip(str(error).splitlines()[0])


def check_opcodes(capability, unit):
    cubin = compiler.compile_cuda(
        "cuda/recorder/record_mma.cu",
        unit.options,
        instructions.architecture(capability),
    )
    found = compiler.opcodes(cubin)
    if found is None:
        return 0
    for prefix in unit.opcodes(capability):
        assert any(name.startswith(prefix) for name in found), (prefix, found)
    tensor = sum(n for name, n in found.items() if "MMA" in name.split(".")[0])
    emulated = (
        unit.a.storage == 8
        and unit.instruction != "wgmma"
        and (capability[0] in (9, 10))
    )
    assert tensor == (2 if emulated else 1) or unit.rows == 8, found
    assert not any("FTZ" in name for name in found), found
    assert not {"LDL", "STL"} & {name.split(".")[0] for name in found}, found
    return 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("capability", CAPABILITIES, ids=instructions.architecture)
def test_every_shape_assembles(capability, nvrtc, compared):
    chosen = {shape_of(unit): unit for unit in instructions.units(capability)}
    compared(sum(check_opcodes(capability, unit) for unit in chosen.values()))


@pytest.mark.exhaustive
@pytest.mark.parametrize("capability", CAPABILITIES, ids=instructions.architecture)
def test_every_unit_assembles(capability, nvrtc, compared):
    chosen = instructions.units(capability)
    compared(sum(check_opcodes(capability, unit) for unit in chosen))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("capability", CAPABILITIES, ids=instructions.architecture)
def test_every_conversion_assembles(capability, nvrtc):
    for conversion in bulk_inputs.conversions(capability):
        arch = instructions.architecture(capability)
        cubin = compiler.compile_cuda(
            "cuda/recorder/record_inputs.cu", conversion.options, arch
        )
        found = compiler.opcodes(cubin)
        if found is not None and "rna" not in conversion.name:  # which is integer work
            assert any(name.startswith("F2F") for name in found), (conversion, found)


def test_architectures_that_are_left_out(nvrtc):
    with pytest.raises(CudaError, match="does not compile for sm_60"):
        compiler.compile_cuda("cuda/recorder/record_mma.cu", (), "sm_60")


def test_errors_of_the_source(nvrtc):
    with pytest.raises(CudaError, match="error"):
        compiler.compile_cuda("cuda/recorder/record_mma.cu", ("-DROWS=16",), "sm_90a")
