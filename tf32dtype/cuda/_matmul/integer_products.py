"""Emulated precisions on a GPU: products of residues, by Hopper's int8 instruction.

The steps are those of :doc:`/reference/emulated_precisions`, and so are the bits.
Kernels of src/cuda/exact scale the rows, multiply residues in int8, and reconstruct the
products by the Chinese remainder theorem. Only the last step rounds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ..._integer_products.schemes import MODULI, Scheme
from .._runtime.backend import (
    KEPT,
    Constant,
    Kernel,
    Shape,
    View,
    check_aligned,
    current,
    int32,
    int64,
)
from . import operand_rows, wgmma
from .native import Lines
from .tile_options import (
    LARGEST,
    MOST,
    Launches,
    Matrices,
    Room,
    Writer,
    pieces,
    write_zeros,
)

INT8 = np.dtype(np.int8)
INT32 = np.dtype(np.int32)
FLOAT64 = np.dtype(np.float64)

#: Threads of a block of reconstruct.cu.
THREADS = 256
#: struct integer_row
ROW = 12
#: Sums of k bounds, of at most 64 * 64, are below 2^31.
MOST_K = (1 << 19) - 1
#: The largest sum of k products of bounds, and the largest integer of fast mode.
_SUMS, _NORMS = 31, 56

LIMITS = np.dtype(
    [
        ("limits", np.uint64, 40),
        *((name, np.int32) for name in ("count", "first", "most", "unused")),
    ]
)
RECONSTRUCTION = np.dtype(
    [
        ("weights", np.uint64, (len(MODULI), 3)),
        ("product", np.uint64, 3),
        ("half", np.uint64, 3),
        ("inverses", np.uint32, len(MODULI)),
        ("moduli", np.int64),
    ]
)
PRODUCTS = np.dtype(
    [
        ("m", np.int64),
        ("n", np.int64),
        *(
            (name, np.int32)
            for name in ("slices", "count", "a_count", "b_count", "tiles", "unused")
        ),
    ]
)


@lru_cache(maxsize=len(MODULI) * 2)
def limits_of(scheme: Scheme) -> Constant:
    """Return struct scale_limits: the integers for which each scale is allowed.

    2 h 4^c <= P - 1 in accurate mode, and 32 Q 4^c <= P - 1 in fast mode.
    """
    factor, bits = (32, _NORMS) if scheme.is_fast else (2, _SUMS)
    most = (scheme.product - 1).bit_length() // 2 + 1
    found = []
    for c in range(most, -64, -1):
        above, below = max(2 * c, 0), max(-2 * c, 0)
        limit = ((scheme.product - 1) << below) // (factor << above)
        if limit:
            found.append((c, min(limit, 2**64 - 1)))
        if limit >> bits:
            break
    x = np.zeros((), LIMITS)
    x["count"], x["first"] = len(found), found[-1][0]
    x["limits"][: len(found)] = [limit for _, limit in found[::-1]]
    # Norms below 4 count as 4 in fast mode: 32 * 4 = 2 * 4^3.
    x["most"] = ((scheme.product - 1) // 128).bit_length() - 1 >> 1
    return Constant(x)


@lru_cache(maxsize=len(MODULI))
def reconstruction_of(moduli: int) -> Constant:
    """Return struct reconstruction: the constants of the Chinese remainder theorem."""
    product = math.prod(MODULI[:moduli])

    def words(x: int) -> list[int]:
        return [x >> 64 * i & (2**64 - 1) for i in range(3)]

    x = np.zeros((), RECONSTRUCTION)
    x["moduli"] = moduli
    x["product"], x["half"] = words(product), words(product // 2)
    for i, modulus in enumerate(MODULI[:moduli]):
        x["weights"][i] = words(product // modulus)
        x["inverses"][i] = pow(product // modulus, -1, modulus)
    return Constant(x)


def rows_kernel(name: str, dtype: np.dtype[Any]) -> Kernel:
    """Return a kernel that reads float32 or float64, by its name."""
    return operand_rows.kernel("integer_rows.cu", name, dtype)


@lru_cache(maxsize=KEPT)
def product_kernel(tile: wgmma.Tile, has_maxima: bool) -> Kernel:
    """Return the kernel that multiplies matrices of int8."""
    macros = wgmma.macros_of("k32.s32.s8.s8", 1, tile.stages, tile)
    macros |= {"MAXIMA": int(has_maxima)}
    options = tuple(f"-D{name}={x}" for name, x in macros.items())
    return Kernel("cuda/exact/multiply_int8.cu", "multiply_int8", options)


def last_kernel(dtype: np.dtype[Any], to: np.dtype[Any]) -> Kernel:
    """Return the kernel that reconstructs results, and rounds them."""
    single = f"SINGLE={int(to == np.float32)}"
    return operand_rows.kernel("reconstruct.cu", "reconstruct", dtype, single)


@lru_cache(maxsize=KEPT)
def sizes_of(*fields: int) -> Constant:
    """Return struct products."""
    return Constant(np.array((*fields, 0), PRODUCTS))


class _Operand(NamedTuple):
    """An operand, and where its parts begin in an allocation."""

    dtype: np.dtype[Any]
    extents: Shape  #: `Matrices.extents`
    padded: int  #: k of lines of integers, a multiple of 32
    rows: int  #: facts of rows
    maxima: int
    bounds: int
    residues: int

    @property
    def lines(self) -> int:
        """Return the number of all lines."""
        return self.extents[3] * self.extents[4]

    def map(self, memory: Any, planes: int, lines: int) -> Any:
        """Return a tensor map of bounds (one plane) or of residues."""
        count, rows = self.extents[3:5]
        layout = Lines(True, self.padded, self.padded * rows, planes * count)
        start = self.residues if planes > 1 else self.bounds
        storage = at(memory, start)
        told = wgmma.map_of(layout, 1, rows, self.padded, lines)
        return current().tensor_map(storage, 1, *told, True)


def at(memory: Any, start: int) -> View:
    """Return an array of unknown extent that begins somewhere in an allocation."""
    return View(INT8, memory + start, (1,), (1,))


def _plan_operand(x: Matrices, scheme: Scheme, room: Room, shares: bool) -> _Operand:
    count, lines, k = x.shape
    if shares or scheme.is_fast:
        count = x.distinct
    if k > MOST_K or x.shape[0] > MOST or lines > LARGEST:
        raise ValueError(
            f"operands must have k below 2^19 and at most {MOST} matrices with"
            f" precision={scheme.name!r} on a GPU; got shape {x.shape}"
        )
    strides, every = x.extents[:3], count * lines
    padded = pieces(k, operand_rows.ROWS) * operand_rows.ROWS
    return _Operand(
        x.dtype,
        (*strides, count, lines, k),
        padded,
        room.place(ROW * every),
        room.place(4 * every),
        room.place(0 if scheme.is_fast else every * padded),
        room.place(scheme.number * every * padded),
    )


class Residues(NamedTuple):
    """The launches that compute the residues of an integer product."""

    scheme: Scheme
    shape: Shape
    x: _Operand
    y: _Operand
    products: int  #: where residues of the results begin
    size: int  #: bytes of the allocation
    tile: wgmma.Tile
    tiles: int  #: tiles of a plane

    def compute(self, a: View, b: View, memory: Any) -> None:
        """Launch the kernels; `b` has the columns as rows."""
        each = (self.x, a), (self.y, b)
        limits = limits_of(self.scheme)
        for own, x in each:
            if self.scheme.is_fast:
                self._read("scale_rows", own, x, limits, at(memory, own.rows))
            else:
                places = at(memory, own.rows), at(memory, own.bounds)
                self._read("bound_rows", own, x, *places)
        if not self.scheme.is_fast:
            for own, _ in each:
                maxima = View(INT32, memory + own.maxima, (own.lines,), (4,))
                current().call("ndarray.fill", maxima, 0)
            self._multiply(memory, has_maxima=True)
        for own, x in each:
            sums = None if self.scheme.is_fast else at(memory, own.maxima)
            self._read(
                "residues", own, x, limits, at(memory, own.rows), sums,
                at(memory, own.residues), number=self.scheme.number,
            )  # fmt: skip
        self._multiply(memory, has_maxima=False)

    def _read(
        self, name: str, own: _Operand, x: View, *given: Any, number: int | None = None
    ) -> None:
        """Launch a kernel that reads all rows of an operand."""
        last = int64(own.padded), *(() if number is None else (int32(number),))
        kernel = rows_kernel(name, own.dtype)
        operand_rows.read(kernel, own.extents, x, *given, *last)

    def _multiply(self, memory: Any, *, has_maxima: bool) -> None:
        """Launch the product of bounds or of residues."""
        s, m, n = self.shape
        planes = 1 if has_maxima else self.scheme.number
        tiles = self.tiles * planes
        slices = pieces(self.x.padded, wgmma.SLICE)
        counts = s, self.x.extents[3], self.y.extents[3]
        sizes = sizes_of(m, n, slices, *counts, tiles)
        current().launch(
            product_kernel(self.tile, has_maxima),
            (min(tiles, current().processors()),),
            (self.tile.threads,),
            self.x.map(memory, planes, self.tile.rows),
            self.y.map(memory, planes, self.tile.columns),
            sizes,
            *(at(memory, i) for i in (self.products, self.x.maxima, self.y.maxima)),
            shared=self.tile.shared,
        )


def plan_residues(
    a: Matrices, b: Matrices, shape: Shape, scheme: Scheme, *, shares: bool = False
) -> Residues:
    """Plan the residues of a product of (s, m, k) and (s, n, k), by Hopper's wgmma.

    In accurate mode, a matrix that a stack repeats has other scales in each product,
    unless it `shares` them.
    """
    s, m, n = shape
    room = Room()
    x, y = (_plan_operand(i, scheme, room, shares) for i in (a, b))
    products = room.place(scheme.number * s * m * n)
    tile = wgmma.choose_tile(shape, current().processors())
    wgmma.tiles((s * scheme.number, m, n), tile)  # whether one launch has all
    tiles = wgmma.tiles(shape, tile)
    return Residues(scheme, shape, x, y, products, room.size, tile, tiles)


class _IntegerProduct(NamedTuple):
    """The launches of a product in an emulated precision."""

    residues: Residues
    last: Kernel

    def __call__(self, a: View, b: View, out: View) -> None:
        check_aligned((a, b))  # launches cannot check, as they get no arrays
        residues = self.residues
        memory = cupy.cuda.alloc(residues.size)
        b = b.swapaxes(1, 2)
        residues.compute(a, b, memory)
        s, m, n = residues.shape
        each = (residues.x, a), (residues.y, b)
        current().launch(
            self.last,
            (pieces(m * n, THREADS), s),
            (THREADS,),
            *(operand_rows.operand(own.extents, x) for own, x in each),
            reconstruction_of(residues.scheme.number),
            at(memory, residues.products),
            *(at(memory, own.rows) for own, _ in each),
            out,
            int64(s * m * n),
        )


def plan(a: Matrices, b: Matrices, c: Matrices, scheme: Scheme) -> Writer:
    """Plan a product of stacks in an emulated precision.

    Parameters
    ----------
    a, b : Matrices
        Operands (s, m, k) and (s, k, n) of float32 or of float64, with any strides.
    c : Matrices
        Result (s, m, n) of float32 or float64 in C order. It must not overlap the
        operands.
    scheme : Scheme
        The precision, of moduli.

    Raises
    ------
    ValueError
        If the device has no int8 instruction of wgmma, or an operand is too large.
    """
    if scheme.kind != "crt" or not wgmma.is_here():
        where = "the CPU" if scheme.kind != "crt" else "compute capability 9.0"
        raise ValueError(
            f"precision {scheme.name!r} is only available on {where}; got"
            f" {current().name()}. Use td.matmul on the CPU"
        )
    if 0 in c.shape:
        return Launches()
    if a.shape[2] == 0:
        return write_zeros
    residues = plan_residues(a, b.flipped, c.shape, scheme)
    return _IntegerProduct(residues, last_kernel(a.dtype, c.dtype))
