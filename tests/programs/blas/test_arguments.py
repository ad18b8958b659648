"""Calls of BLAS that are rejected, that compute nothing, and measured calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.programs.blas.calls import (
    FORMS,
    Call,
    Form,
    draw,
    mirrored,
    only,
    op,
    triangular,
)

RNG = np.random.default_rng(0)


class Edited(Call):
    """A call with another value for the option or integer number `place`."""

    def __init__(self, *args: Any, place: int, value: Any) -> None:
        self.left, self.value = place, value
        super().__init__(*args)

    def _edited(self, value: Any) -> Any:
        self.left -= 1
        return self.value if self.left == -1 else value

    def integer(self, number: int) -> None:
        super().integer(self._edited(number))

    def option(self, group: str, letter: str) -> None:
        super().option(group, self._edited(letter))


# The arguments of each routine. Sizes are 3, 4 and 5 (m, n, k).


def gemm(call: Call) -> None:
    call.option("trans", "N")
    call.option("trans", "T")
    for size in (3, 4, 5):
        call.integer(size)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 3, 5))
    call.matrix(draw(RNG, call.kind, 4, 5))
    call.scalar(3)
    call.matrix(draw(RNG, call.kind, 3, 4))


def gemmt(call: Call) -> None:
    call.option("uplo", "U")
    call.option("trans", "N")
    call.option("trans", "N")
    call.integer(4)
    call.integer(5)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 4, 5))
    call.matrix(draw(RNG, call.kind, 5, 4))
    call.scalar(3)
    call.matrix(draw(RNG, call.kind, 4, 4))


def symm(call: Call) -> None:
    call.option("side", "R")
    call.option("uplo", "L")
    call.integer(3)
    call.integer(4)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 4, 4))
    call.matrix(draw(RNG, call.kind, 3, 4))
    call.scalar(3)
    call.matrix(draw(RNG, call.kind, 3, 4))


def trmm(call: Call) -> None:
    call.option("side", "L")
    call.option("uplo", "L")
    call.option("trans", "N")
    call.option("diag", "N")
    call.integer(3)
    call.integer(4)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 3, 3))
    call.matrix(draw(RNG, call.kind, 3, 4))


def syrk(call: Call) -> None:
    call.option("uplo", "L")
    call.option("trans", "N")
    call.integer(4)
    call.integer(5)
    call.scalar(2, real="herk" in call.symbol)
    call.matrix(draw(RNG, call.kind, 4, 5))
    if "2k" in call.symbol:
        call.matrix(draw(RNG, call.kind, 4, 5))
    call.scalar(3, real="her" in call.symbol)
    call.matrix(draw(RNG, call.kind, 4, 4))


def gemv(call: Call) -> None:
    call.option("trans", "T")
    call.integer(3)
    call.integer(4)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 3, 4))
    call.vector(draw(RNG, call.kind, 3), 1)
    call.scalar(3)
    call.vector(draw(RNG, call.kind, 4), 1)


def symv(call: Call) -> None:
    call.option("uplo", "L")
    call.integer(4)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 4, 4))
    call.vector(draw(RNG, call.kind, 4), 1)
    call.scalar(3)
    call.vector(draw(RNG, call.kind, 4), 1)


def trmv(call: Call) -> None:
    call.option("uplo", "L")
    call.option("trans", "N")
    call.option("diag", "U")
    call.integer(4)
    call.matrix(draw(RNG, call.kind, 4, 4))
    call.vector(draw(RNG, call.kind, 4), 1)


def strided(call: Call) -> None:
    call.option("trans", "N")
    call.option("trans", "T")
    for size in (3, 4, 5):
        call.integer(size)
    call.scalar(2)
    call.matrix(draw(RNG, call.kind, 3, 5))
    call.integer(0)
    call.matrix(draw(RNG, call.kind, 4, 5))
    call.integer(0)
    call.scalar(3)
    call.matrix(draw(RNG, call.kind, 3, 4))
    call.integer(0)
    call.integer(2)


# By name and kind: options and integers in order. "t" is an option, 0 a size, "v" an
# increment, and "-" any value. A pair has the smallest leading dimension for
# column-major and for row-major order.
Fill = Callable[[Call], None]
ROUTINES: list[tuple[str, str, Fill, list[Any]]] = [
    ("gemm", "s", gemm, ["t", "t", 0, 0, 0, (3, 5), (4, 5), (3, 4)]),
    ("gemm3m", "z", gemm, ["t", "t", 0, 0, 0, (3, 5), (4, 5), (3, 4)]),
    ("gemmt", "d", gemmt, ["t", "t", "t", 0, 0, (4, 5), (5, 4), (4, 4)]),
    ("symm", "c", symm, ["t", "t", 0, 0, (4, 4), (3, 4), (3, 4)]),
    ("hemm", "c", symm, ["t", "t", 0, 0, (4, 4), (3, 4), (3, 4)]),
    ("trmm", "d", trmm, ["t", "t", "t", "t", 0, 0, (3, 3), (3, 4)]),
    ("syrk", "d", syrk, ["t", "t", 0, 0, (4, 5), (4, 4)]),
    ("herk", "z", syrk, ["t", "t", 0, 0, (4, 5), (4, 4)]),
    ("syr2k", "s", syrk, ["t", "t", 0, 0, (4, 5), (4, 5), (4, 4)]),
    ("her2k", "c", syrk, ["t", "t", 0, 0, (4, 5), (4, 5), (4, 4)]),
    ("gemv", "z", gemv, ["t", 0, 0, (3, 4), "v", "v"]),
    ("symv", "d", symv, ["t", 0, (4, 4), "v", "v"]),
    ("hemv", "c", symv, ["t", 0, (4, 4), "v", "v"]),
    ("trmv", "s", trmv, ["t", "t", "t", 0, (4, 4), "v"]),
    (
        "gemm_batch_strided", "d", strided,
        ["t", "t", 0, 0, 0, (3, 5), "-", (4, 5), "-", (3, 4), "-", 0],
    ),
]  # fmt: skip
BF16 = {"precision": "bf16"}


def memory_of(call: Call) -> list[bytes]:
    return [x.tobytes() for x in call.words if isinstance(x, np.ndarray)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("routine", "kind", "fill", "facts"), ROUTINES, ids=[x[0] for x in ROUTINES]
)
def test_refused(
    form: Form, routine: str, kind: str, fill: Fill, facts: list[Any]
) -> None:
    """Return -2, and write nothing."""
    if routine == "gemm_batch_strided" and not form.cblas:
        return
    for place, fact in enumerate(facts):
        if isinstance(fact, tuple):
            wrong: list[Any] = [fact[form.rows] - 1, 0]
        else:
            wrong = {"t": ["X", "-"], "v": [0], "-": [], 0: [-1]}[fact]
        for value in wrong:
            call = Edited(routine, kind, form, place=place, value=value)
            fill(call)
            before = memory_of(call)
            assert call.compute(BF16) == -2, (place, value)
            assert memory_of(call) == before
        if isinstance(fact, tuple):  # the smallest valid value, too
            call = Edited(routine, kind, form, place=place, value=fact[form.rows])
            fill(call)
            assert call.made().measure()[0] == 0, place


def test_options_of_some_routines_alone() -> None:
    """Reject C for T, T for C, and an unknown order of rows."""
    alone = (("syrk", "z", "C"), ("herk", "c", "T"), ("her2k", "z", "T"))
    for name, kind, letter in alone:
        for form in FORMS:
            call = Edited(name, kind, form, place=1, value=letter)
            syrk(call)
            assert call.compute(BF16) == -2
    call = Call("gemm", "s", FORMS[2])
    gemm(call)
    call.words[0] = 100
    assert call.compute(BF16) == -2
    call = Edited("gemm", "s", FORMS[0], place=0, value="R")  # only C's interface has R
    gemm(call)
    assert call.compute(BF16) == -2


@pytest.mark.parametrize(
    ("routine", "kind", "fill", "facts"), ROUTINES, ids=[x[0] for x in ROUTINES]
)
@pytest.mark.parametrize("form", [FORMS[0], FORMS[5]])
def test_nothing_to_compute(
    form: Form, routine: str, kind: str, fill: Fill, facts: list[Any]
) -> None:
    """Compute nothing if m or n is 0, or k for matrices times vectors."""
    if routine == "gemm_batch_strided" and not form.cblas:
        return
    sizes = [place for place, fact in enumerate(facts) if fact == 0]
    k_scales = {"gemm": 3, "gemm3m": 3, "gemmt": 2, "gemm_batch_strided": 3}
    is_update = routine in ("syrk", "herk", "syr2k", "her2k")
    k_place = 2 if is_update else k_scales.get(routine)
    for number, place in enumerate(sizes, 1):
        call = Edited(routine, kind, form, place=place, value=0)
        fill(call)
        status, products = call.made().measure()
        assert status == 0
        assert len(products) == (1 if number == k_place else 0) * (
            2 if routine == "gemm_batch_strided" else 1
        )


def test_what_is_measured() -> None:
    """Measure shapes, multiply-adds, and whole operands."""
    rng = np.random.default_rng(1)
    a, b = draw(rng, "z", 4, 4), draw(rng, "z", 4, 6)
    for form in FORMS:
        call = Call("hemm", "z", form)
        call.option("side", "L")
        call.option("uplo", "U")
        call.integer(4)
        call.integer(6)
        call.scalar(1)
        call.matrix(only(a, "U"))
        call.matrix(b)
        call.scalar(0)
        call.matrix(b)
        status, [(shape, count, x, y)] = call.made().measure()
        assert (status, shape, count) == (0, (4, 6, 4), 4 * 4 * 6 * 4)
        assert np.array_equal(x, mirrored(a, "U", True))
        assert np.array_equal(y, b)
        call = Call("trmm", "z", form)
        call.option("side", "R")
        call.option("uplo", "U")
        call.option("trans", "C")
        call.option("diag", "U")
        call.integer(6)
        call.integer(4)
        call.scalar(1)
        call.matrix(only(a, "U", True))
        call.matrix(b.T)
        status, [(shape, count, x, y)] = call.made().measure()
        assert (status, shape, count) == (0, (6, 4, 4), 4 * 6 * (4 * 5 / 2))
        assert np.array_equal(x, b.T)
        assert np.array_equal(y, op(triangular(a, "U", True), "C"))
        call = Call("syr2k", "d", form)
        call.option("uplo", "U")
        call.option("trans", "T")
        call.integer(6)
        call.integer(4)
        call.scalar(1)
        call.matrix(b.real)
        call.matrix(b.imag)
        call.scalar(0)
        call.matrix(np.zeros((6, 6)))
        status, [(shape, count, x, y)] = call.made().measure()
        assert (status, shape, count) == (0, (6, 6, 4), 2 * 4 * (6 * 7 / 2))
        assert np.array_equal(x, b.real.T)
        assert np.array_equal(y, b.imag)


def test_arguments_on_the_stack() -> None:
    """Read C's arguments of a batch, more than half of which are on the stack."""
    for kind in "sdcz":
        call = Call("gemm_batch_strided", kind, FORMS[3])
        strided(call)
        status, products = call.made().measure()
        assert (status, len(products)) == (0, 2)
        assert [x.shape for x in products[0][2:]] == [(3, 5), (5, 4)]
