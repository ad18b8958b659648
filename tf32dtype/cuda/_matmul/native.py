"""Multiply matrices by mma.sync, in a kernel with a fixed order of k.

The kernel (src/cuda/matmul/native.cu) computes each element of the result by one chain
of mma.sync from +0, k ascending. `tf32dtype.tensor_core.matmul` with `device_of(...)`
and instruction="mma.sync" gives the same bits. They do not depend on the tile.

The kernel can also compute chains of a few k, and add their results with rounding to
nearest, because a tensor core truncates. `tf32dtype.tensor_core.matmul` with
`promote_every` then gives the same bits. See `Sums`.

Without a GPU, tests compute the instruction by its model, with registers placed as in
PTX, and inspect the machine code. Tiles and their weights are estimates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from ... import tensor_core
from .._runtime.backend import Constant, Kernel, Shape, View, current, int32, int64
from .._runtime.storage import raw
from .operand_lines import lines_along_k
from .tile_options import CHUNK, Launches, Matrices, Writer, pieces

#: Formats of mma.sync: the name in PTX, and the first architecture that supports it.
FORMATS = {
    "tf32": ("tf32", 80),
    "bfloat16": ("bf16", 80),
    "float16": ("f16", 80),
    "float8_e4m3fn": ("e4m3", 89),
    "float8_e5m2": ("e5m2", 89),
}

#: Architectures with 99 KiB of shared memory per block; others have 163 KiB or more.
LITTLE = (86, 89, 120, 121)


class Tile(NamedTuple):
    """The way in which the kernel divides a product."""

    rows: int  #: rows of the result per block
    columns: int  #: columns of the result per block
    warp_rows: int  #: rows of the result per warp
    warp_columns: int  #: columns of the result per warp
    slice: int  #: bytes of k that are copied at a time
    stages: int  #: slices in shared memory
    resident: int  #: blocks that a multiprocessor runs at the same time
    #: estimated time per element; small tiles take longer, because they reuse less
    weight: float
    totals: bool = False  #: whether sums of stretches are stored in shared memory

    @property
    def macros(self) -> dict[str, int]:
        """Return the macros for the compilation."""
        return {x.upper(): y for x, y in zip(self._fields[:7], self[:7], strict=True)}

    @property
    def threads(self) -> int:
        """Return the number of threads per block."""
        return self.rows // self.warp_rows * self.columns // self.warp_columns * 32

    @property
    def shared(self) -> int:
        """Return the bytes of shared memory per block."""
        stages = (self.rows + self.columns) * self.slice * self.stages
        return stages + self.totals * self.rows * self.columns * 4


class Sums(NamedTuple):
    """The order in which the kernel adds the terms of a sum.

    It computes ``out = Σ stretches (Σ chains) + beta * out``. With `promote`::

        for each stretch of k:
            t = +0
            for each chain of the stretch:  # of `promote` k, from +0
                t = t + chain  # float32, to nearest
            out = fma(beta, out, t)  # rounded once; then beta = 1

    A stretch is a segment of k whose chains are added first. Without `promote`, `out`
    is one chain of all k, and the other fields have no meaning.
    """

    #: k of a chain, at most 64 bytes: the k of an instruction times a power of two, or
    #: 8 for 2-byte formats (m16n8k8)
    promote: int = 0
    #: k of a stretch, a multiple of `STRETCHES` bytes; 0 means all k
    stretch: int = 0
    #: factor of the previous contents of `out`; with 0, `out` is not read
    beta: float = 0.0


#: The order of one chain of all k.
CHAIN = Sums()

#: Bytes of k that are whole slices of every tile.
STRETCHES = 128

WIDE = Tile(128, 256, 64, 64, 128, 3, 1, 1.0)
#: Tile if there is little shared memory, or few registers are left.
WIDE_SHORT = Tile(128, 256, 64, 64, 64, 4, 1, 1.0)
SQUARE = Tile(128, 128, 64, 64, 64, 3, 2, 1.1)
#: Tile for sums of chains, which need additional registers.
SUMS = Tile(128, 192, 64, 48, 64, 4, 1, 1.05)
#: Tile if the compiler replaces an instruction by several, or if sums of chains need
#: more registers.
SPARING = Tile(128, 128, 64, 32, 64, 4, 1, 1.1)
SMALL = Tile(64, 64, 32, 32, 128, 3, 2, 1.7)
SMALL_SHORT = Tile(64, 64, 32, 32, 64, 4, 2, 1.7)


def device_of(arch: str) -> str:
    """Return the name in `tensor_core.devices` of a GPU with an architecture.

    Parameters
    ----------
    arch : str
        Architecture as `backend.Backend.architecture` returns it, for example "sm_90a".

    Raises
    ------
    ValueError
        If no device with this architecture is modeled.
    """
    try:
        return tensor_core.devices[arch].name
    except KeyError:
        known = [x for d in tensor_core.devices.values() for x in d.aliases]
        raise ValueError(
            f"the tensor cores of {arch} are not modeled; modeled architectures are"
            f" {', '.join(x for x in known if x.startswith('sm_'))}"
        ) from None


def number(arch: str) -> int:
    """Return the number of an architecture: 90 for "sm_90a"."""
    return int("".join(c for c in arch if c.isdigit()))


class Lines(NamedTuple):
    """The memory layout of rows of a, or of columns of b."""

    along_k: bool  #: whether lines in memory are along k
    pitch: int  #: bytes from a line to the next
    stack: int  #: bytes from a matrix to the next
    matrices: int  #: number of matrices


class Reading(NamedTuple):
    """The way in which a kernel reads (s, rows, k): as it is stored, or a copy."""

    lines: Lines
    #: shape of the copy, (s, rows, k) or (s, k, rows); None to read without a copy
    copy: Shape | None = None
    transposes: bool = False  #: whether the copy needs a kernel of `operand_lines`

    def storage(self, x: View) -> Any:
        """Return the storage of an operand, copied if planned."""
        if self.copy is None:
            return x
        x = raw(x)
        if self.transposes:
            return lines_along_k(x, *self.copy[1:])
        one = x[: self.copy[0]]  # copy a repeated matrix only once
        copy = cupy.empty(self.copy, x.dtype)
        one = one if self.lines.along_k else one.swapaxes(1, 2)
        current().call("copyto", copy[..., : one.shape[2]], one)
        return copy


class Plan(NamedTuple):
    """A launch of the kernel."""

    a: Reading
    b: Reading
    kernel: Kernel
    blocks: int
    threads: int
    shared: int
    numbers: tuple[Constant, ...]

    def __call__(self, a: View, b: View, out: View) -> None:
        x, y = self.a.storage(a), self.b.storage(b.swapaxes(1, 2))
        current().launch(
            self.kernel, (self.blocks,), (self.threads,), x, y, out, *self.numbers,
            shared=self.shared,
        )  # fmt: skip


def plan(
    a: Matrices, b: Matrices, c: Matrices, tile: Tile | None = None, sums: Sums = CHAIN
) -> Writer:
    """Plan a @ b, for formats that this GPU supports; c is float32 in C order."""
    machine = current()
    arch, processors = machine.architecture(), machine.processors()
    (s, m, k), n = a.shape, b.shape[2]
    x, y = reading(a), reading(b.flipped)
    asked = a.dtype.itemsize, x.lines.along_k, y.lines.along_k
    if tile is None:
        tile = choose_tile(arch, processors, (s, m, n), *asked, sums.promote)
    blocks = s * -(-m // tile.rows) * -(-n // tile.columns)
    if blocks >= 1 << 31:
        raise ValueError(
            "a and b must be small enough for one launch; got a matrix multiplication"
            f" of shape {(s, m, n)}"
        )
    if blocks == 0:
        return Launches()
    sizes = m, n, k, x.lines.pitch, y.lines.pitch, x.lines.stack, y.lines.stack
    return Plan(
        x,
        y,
        kernel((a.dtype.name, b.dtype.name), *asked, tile, sums.promote),
        blocks,
        tile.threads,
        tile.shared,
        (
            *map(int64, sizes),
            int32(sums.stretch or 1 << 30),
            Constant(np.float32(sums.beta)),
        ),
    )


def kernel(
    formats: tuple[str, str],
    size: int,
    a_along_k: bool,
    b_along_k: bool,
    tile: Tile,
    promote: int = 0,
) -> Kernel:
    """Return the kernel for operands of `size` bytes per element, of given layouts."""
    a, b = (FORMATS[name][0] for name in formats)
    depth = min(32 // size, promote or 32)
    macros = {
        "UNIT": f'"m16n8k{depth}.row.col.f32.{a}.{b}.f32"',
        "UNIT_BYTES": depth * size,
        "PROMOTE": promote // depth,
        "SIZE": size,
        "A_ALONG_K": int(a_along_k),
        "B_ALONG_K": int(b_along_k),
        "TOTALS": int(tile.totals),
        **tile.macros,
    }
    options = tuple(f"-D{name}={value}" for name, value in macros.items())
    return Kernel("cuda/matmul/native.cu", "native", options)


def tiles(
    arch: str, size: int, a_along_k: bool, b_along_k: bool, promote: int = 0
) -> list[Tile]:
    """Return the tiles for which registers and shared memory are sufficient.

    4-byte operands that are not contiguous along k need more registers, because they
    are loaded word by word.
    """
    if promote:
        version, halves = number(arch), promote * size < 32
        both = a_along_k and b_along_k
        found = [SUMS] if both and version < 120 - 20 * halves else []
        found += [SMALL_SHORT] if halves and version >= 120 else [SPARING, SMALL_SHORT]
        return [with_totals(tile, arch) for tile in found]
    if size == 1 and device_of(arch) in ("H100", "B200"):
        return [SPARING, SMALL]
    across = (not a_along_k) + (not b_along_k) if size == 4 else 0
    if across == 2:
        return [SQUARE, SMALL]
    short = across == 1 or number(arch) in LITTLE
    return [WIDE_SHORT if short else WIDE, SQUARE, SMALL]


def with_totals(tile: Tile, arch: str) -> Tile:
    """Return the tile with totals in shared memory, or unchanged if they do not fit.

    The tile may have one stage less to make room for them.
    """
    version = number(arch)
    room = 100 if version in LITTLE else 164 if version < 90 else 228  # KiB, all blocks
    for stages in (tile.stages, tile.stages - 1):
        found = tile._replace(stages=stages, totals=True)
        if (found.shared + 1024) * tile.resident <= room << 10:
            return found
    return tile


def choose_tile(
    arch: str,
    processors: int,
    shape: tuple[int, int, int],
    size: int,
    a_along_k: bool,
    b_along_k: bool,
    promote: int = 0,
) -> Tile:
    """Return the tile with the shortest estimated time; all give the same bits."""
    s, m, n = shape

    def time(tile: Tile) -> float:
        blocks = s * -(-m // tile.rows) * -(-n // tile.columns)
        return -(-blocks // processors) * tile.rows * tile.columns * tile.weight

    return min(tiles(arch, size, a_along_k, b_along_k, promote), key=time)


def reading(
    x: Matrices,
    mixed: bool = True,
    suits: Callable[[int, int], bool] = lambda pitch, stack: True,
) -> Reading:
    """Plan how the kernel reads (s, rows, k).

    The kernel reads lines of 16-byte chunks along k. If `mixed`, it also reads 2-byte
    and 4-byte elements across k. Lines whose pitch and stack do not suit are copied.
    """
    size, (stacks, rows, depth) = x.dtype.itemsize, x.shape
    stack, of_row, of_k = x.strides
    mixed = mixed and size > 1
    closer = abs(of_row) < abs(of_k)
    across = mixed and closer
    for along_k in (False, True) if across else (True, False):
        inner, within = (of_k, depth) if along_k else (of_row, rows)
        outer, count = (of_row, rows) if along_k else (of_k, depth)
        pitch, apart = outer if count > 1 else 0, stack if stacks > 1 else 0
        if (
            (inner == size or within <= 1)
            and (along_k or mixed)
            and x.aligned
            and all(i % CHUNK == 0 for i in (x.start, pitch, apart))
            and suits(pitch, apart)
        ):
            return Reading(Lines(along_k, pitch, apart, stacks))
    lines, width = (depth, rows) if across else (rows, depth)
    pitch = pieces(width * size, CHUNK) * CHUNK
    copy = x.distinct, lines, pitch // size
    apart = lines * pitch if x.strides[0] else 0
    made = Lines(not across, pitch, apart, x.distinct)
    return Reading(made, copy, size != 2 and not mixed and closer)
