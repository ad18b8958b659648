"""Layouts and launches of products, and their arguments: src/cuda/matmul/tile_loader.h.

A product is planned from the layouts of its operands and its result. The plan is called
with their addresses, and launches kernels. Only the plan of the whole product is cached
(`product_plan`), so that functions which make parts of it need no caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import cupy
import numpy as np

from .._arrays.ndarray import lying
from .._runtime.backend import Constant, Kernel, Shape, View, current

FLOAT32 = np.dtype(np.float32)

#: struct tf_task
TASK = np.dtype(
    [
        *((name, np.int64, 3) for name in "abc"),
        ("part", np.int64),
        *((name, np.int32) for name in ("m", "n", "k", "count")),
        *((name, np.int32) for name in ("a_across", "b_across", "parts", "rounds")),
        *((name, np.int32) for name in ("continues", "exactly")),
    ]
)

#: Largest size along an axis: int32, less the size of a tile.
LARGEST = (1 << 31) - (1 << 10)
#: Largest number of blocks of threads along y and z.
MOST = 65535
#: Arrays in one allocation begin at multiples of so many bytes.
BEGINS = 256
#: Bytes that kernels copy at a time, from and to multiples of this number.
CHUNK = 16


class Matrices(NamedTuple):
    """The memory layout of a stack of matrices, (s, rows, columns).

    A stack that repeats one matrix has the stride 0. Only operands of `plan_product`
    have other numbers of axes before the last two.
    """

    shape: Shape
    strides: Shape  #: in bytes
    dtype: np.dtype[Any]
    start: int = 0  #: bytes from the first element of an array to that of the stack
    #: whether the array begins at a multiple of `CHUNK` bytes
    aligned: bool = True

    @classmethod
    def of(cls, x: Any) -> Matrices:
        """Return the layout of an array."""
        return cls(x.shape, x.strides, x.dtype, aligned=x.data.ptr % CHUNK == 0)

    @property
    def flipped(self) -> Matrices:
        """Return the layout of the transposed matrices."""
        (s, m, n), (stack, down, across) = self.shape, self.strides
        return self._replace(shape=(s, n, m), strides=(stack, across, down))

    @property
    def distinct(self) -> int:
        """Return the number of different matrices: 1 if the stack repeats one."""
        return self.shape[0] if self.strides[0] else 1

    @property
    def extents(self) -> Shape:
        """Return strides in elements, and the numbers of matrices, rows and columns.

        With an address before them, they are `struct strided_operand` of
        src/cuda/matmul/operands.h, and `struct operand` of src/cuda/exact/operand.h.
        """
        strides = (step // self.dtype.itemsize for step in self.strides)
        return *strides, self.distinct, *self.shape[1:]

    def part(self, axis: int, first: int, most: int) -> Matrices:
        """Return the layout of at most `most` positions along an axis."""
        shape = list(self.shape)
        shape[axis] = min(most, shape[axis] - first)
        start = self.start + first * self.strides[axis]
        return self._replace(shape=tuple(shape), start=start)

    def view(self, data: Any) -> View:
        """Return the matrices of an array that begins at an address."""
        return View(self.dtype, data, self.shape, self.strides).at(self.start)


class Room:
    """Give arrays their places in one allocation."""

    size = 0

    def place(self, size: int) -> int:
        """Return where an array of so many bytes begins."""
        start = self.size
        self.size = pieces(start + size, BEGINS) * BEGINS
        return start


class Writer(Protocol):
    """A plan of a product: a function that writes a @ b to `out`."""

    def __call__(self, a: View, b: View, out: View, /) -> None: ...


#: Positions of the arrays of a product in `Launch.arrays`. The last is memory for sums.
A, B, C, SUMS = range(4)


class Launch(NamedTuple):
    """A launch of a kernel, without addresses."""

    kernel: Kernel
    grid: Shape
    block: Shape
    task: Constant
    #: arrays that the kernel takes, and the bytes from their first elements
    arrays: tuple[tuple[int, int], ...]
    shared: int = 0


class Launches(NamedTuple):
    """The launches that compute a product."""

    launches: tuple[Launch, ...] = ()
    sums: int = 0  #: number of float32 sums that launches pass on

    def __call__(self, *arrays: View) -> None:
        machine, given = current(), [*arrays]
        if self.sums:
            memory = cupy.cuda.alloc(4 * self.sums)
            given.append(View(FLOAT32, memory, (self.sums,), (4,)))
        for kernel, grid, block, told, places, shared in self.launches:
            views = (given[i].at(start) for i, start in places)
            machine.launch(kernel, grid, block, told, *views, shared=shared)


def write_zeros(a: View, b: View, out: View) -> None:
    """Write a product without k."""
    current().call("ndarray.fill", out, 0)


def in_c_order(plan: Callable[[Matrices], Any], c: Matrices) -> Any:
    """Plan a product, by a function for results in C order, for results of any strides.

    The plan is called with the operands' arrays and the result.
    """
    made = c._replace(strides=lying(c.shape, c.dtype.itemsize))
    write = plan(made)
    if c.shape[0] == 1 or c.strides == made.strides:
        return write

    def through_copy(*arrays: View) -> None:
        result = made.view(cupy.empty(made.shape, made.dtype).data)
        write(*arrays[:-1], result)
        current().call("copyto", arrays[-1], result)

    return through_copy


def task(a: Matrices, b: Matrices, c: Matrices, **fields: Any) -> Constant:
    """Return a kernel's argument for the product of (s, m, k) and (s, k, n)."""
    x = np.zeros((), TASK)
    (count, m, k), n = a.shape, b.shape[2]
    if max(m, k, n) > LARGEST:
        raise ValueError(
            f"a and b must have at most {LARGEST} elements along an axis; got matrices"
            f" of {m} x {k} and {k} x {n}"
        )
    x["a"], x["b"], x["c"] = a.strides, b.flipped.strides, c.strides
    x["m"], x["n"], x["k"], x["count"] = m, n, k, count
    for name, lines in (("a_across", a), ("b_across", b.flipped)):
        _, down, across = lines.strides
        x[name] = abs(down) < abs(across)
    for name, value in fields.items():
        x[name] = value
    return Constant(x)


def option(macro: str, dtype: np.dtype[Any]) -> str:
    """Return the compilation option that sets a macro to an operand's format."""
    row = "single" if dtype.name == "float32" else dtype.name
    return f"-D{macro}=tf_{row}"


def pieces(whole: int, piece: int) -> int:
    """Return how many pieces cover a whole."""
    return -(-whole // piece)
