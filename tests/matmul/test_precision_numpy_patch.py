"""NumPy's functions that use a precision, and that they otherwise are NumPy's."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.documents import blocks, run, table
from tests.support.interpreters import run_code
from tests.support.paths import ROOT
from tests.support.precision_switch import (
    OWN,
    PLAIN,
    ROUNDED,
    SQUARE,
    A,
    Array,
    B,
    random,
    same,
    typed,
)
from tests.ufuncs import numpy_surface
from tf32dtype import _core
from tf32dtype._matmul.precisions import PRECISIONS

DOCUMENT = ROOT / "docs" / "reference" / "precision.md"

pytestmark = [
    pytest.mark.usefixtures("own_numpy"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # np.matrix
]


def test_it_matters() -> None:
    assert not same(PLAIN, ROUNDED)


def changes(precision: td.matmul_precision) -> set[str]:
    """Return all names of NumPy whose results a block changes."""
    found = set()
    outside = of_numpy()
    for i, (name, function, expression) in enumerate(expressions()):
        with precision:
            inside = evaluate(function, expression)
        if outside[i] != inside:
            found.add(name)
    return found


@functools.cache
def of_numpy() -> list[Any]:
    """Return the results of the expressions outside of all blocks, evaluated once."""
    return [evaluate(function, expression) for _, function, expression in expressions()]


def expressions() -> Iterator[tuple[str, Callable[[], Any], str]]:
    for part in numpy_surface.GROUPS.values():
        for prefix, rows in part.items():
            for name, text in rows.items():
                if not hasattr(numpy_surface.namespace(prefix), name):
                    continue
                find = functools.partial(find_in, prefix, name)
                for expression in (text,) if isinstance(text, str) else text:
                    yield prefix + name, find, expression
    for name in sorted({*numpy_surface.UFUNCS} - numpy_surface.STRING_UFUNCS):
        ufunc = getattr(numpy_surface.umath, name, None) or getattr(np, name)
        for calls in numpy_surface.ufunc_expressions(name).values():
            for call in calls:
                yield f"np.{name}", lambda ufunc=ufunc: ufunc, call


def find_in(prefix: str, name: str) -> Any:
    return getattr(numpy_surface.namespace(prefix), name)


def evaluate(find: Callable[[], Any], expression: str) -> list[Any]:
    """Return the comparable bits of a value: its floats' dtypes, shapes and bits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_surface, "letters", full_letters)
        value = numpy_surface.evaluate(find(), expression, np.float32)
    arrays = [np.asarray(leaf) for _, leaf in numpy_surface.leaves(value)]
    return [(x.dtype, x.shape, bits(x)) for x in arrays]


def bits(x: np.ndarray) -> bytes | None:
    """Return the bits of floats, without the unused bytes of a long double."""
    plain = {"g": np.float64, "G": np.complex128}.get(x.dtype.char, x.dtype)
    return x.astype(plain).tobytes() if x.dtype.kind in "fc" else None


short_letters = numpy_surface.letters


def full_letters(scalar_type: Any, wanted: Any) -> dict[str, Any]:
    """Return the surface's arrays, with more bits than narrow formats have."""
    factor = np.float32(1.001)
    return {
        name: value * factor
        if isinstance(value, np.ndarray) and value.dtype == np.float32
        else value
        for name, value in short_letters(scalar_type, wanted).items()
    }


OBEY = set(
    """np.matmul np.matvec np.vecmat np.vecdot ndarray.__matmul__ ndarray.__rmatmul__
    ndarray.__imatmul__ np.dot np.inner np.vdot np.tensordot np.linalg.matmul
    np.linalg.tensordot np.linalg.vecdot np.linalg.matrix_power np.linalg.multi_dot
    np.linalg.pinv np.ma.dot np.ma.inner np.ma.innerproduct""".split()
)
OBEY_IN_FLOAT64 = set(
    """np.cov np.corrcoef np.ma.cov np.ma.corrcoef
    np.random.Generator.multivariate_normal""".split()
)


def test_of_all_names_of_numpy_these_obey() -> None:
    assert changes(td.matmul_precision("bf16")) == OBEY


def test_of_all_names_of_numpy_these_obey_in_all_dtypes() -> None:
    precision = td.matmul_precision("bf16", float64=True, complex64=True)
    assert changes(precision) == OBEY | OBEY_IN_FLOAT64


@pytest.mark.exhaustive
@pytest.mark.skipif(not _core.blas_available(), reason="not on this platform")
def test_of_all_names_of_numpy_these_obey_with_blas() -> None:
    every: dict[str, Any] = {"blas": True, "float64": True, "complex64": True}
    products = OBEY | OBEY_IN_FLOAT64 | {"ndarray.dot"}
    numbers = {"np.linalg.norm", "np.ma.convolve"}
    assert changes(td.matmul_precision("bf16", **every, dots=True)) == (
        products | numbers
    )
    # The expressions of these functions multiply vectors.
    numbers = set(
        """np.vdot np.vecdot np.linalg.vecdot np.ma.dot np.ma.inner
        np.ma.innerproduct""".split()
    )
    assert changes(td.matmul_precision("bf16", **every)) == products - numbers


def values(expression: str, **options: Any) -> tuple[Any, Any]:
    """Evaluate an expression of the page outside of a block, and in a block."""
    names: dict[str, Any] = {}
    for block in blocks(DOCUMENT, "python"):
        run(block, names)
    outside = run(expression, names)
    with td.matmul_precision("bf16", **options):
        return outside, run(expression, names)


@pytest.mark.parametrize("row", table(DOCUMENT, "included"), ids=lambda row: row[0])
def test_calls_that_the_document_includes(row: list[str]) -> None:
    assert not same(*values(row[0]))


@pytest.mark.parametrize("row", table(DOCUMENT, "not included"), ids=lambda row: row[0])
def test_calls_that_the_document_excludes(row: list[str]) -> None:
    assert same(*values(row[0]))
    if row[2]:
        assert not same(*values(row[2].strip("`")))
    if _core.blas_available():
        with_blas = row[3].replace("`", "")
        assert with_blas in ("", "included", "included with dots=True")
        assert same(*values(row[0], blas=True)) == (with_blas != "included")
        assert same(*values(row[0], blas=True, dots=True)) == (with_blas == "")


def test_the_document_has_every_precision() -> None:
    rows = {row[0]: row[1].strip("`") for row in table(DOCUMENT, "long name")}
    assert rows == {mode.preset: mode.short for mode in PRECISIONS}
    assert all(row[0] in td.matmul_precision.__doc__ + str(rows) for row in rows)


# Results of functions, from products of matrices.
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "a @ b": lambda p, t: p,
    "np.matmul(a, b)": lambda p, t: p,
    "np.matmul(a, b, dtype=np.float32)": lambda p, t: p,
    "np.matvec(a, b[:, 1])": lambda p, t: p[:, 1],
    "np.vecmat(a[2], b)": lambda p, t: p[2],
    "np.vecdot(a[:5], b.T)": lambda p, t: np.diagonal(p[:5]).copy(),
    "np.dot(a, b)": lambda p, t: p,
    "np.dot(a=a, b=b, out=np.empty((7, 5), np.float32))": lambda p, t: p,
    "np.dot(a[1], b[:, 2])": lambda p, t: p[1, 2],
    "np.dot(a[1], b)": lambda p, t: p[1],
    "np.dot(a, b[:, 2])": lambda p, t: p[:, 2],
    "np.dot(a.reshape(7, 1, 300), b)": lambda p, t: p.reshape(7, 1, 5),
    "np.dot(a, b.T.reshape(1, 5, 300, 1))": lambda p, t: p.reshape(7, 1, 5, 1),
    "np.dot(a[1], b.T.reshape(1, 5, 300, 1))": lambda p, t: p[1].reshape(1, 5, 1),
    "np.inner(a, b.T)": lambda p, t: p,
    "np.inner(a, b[:, 0])": lambda p, t: p[:, 0],
    "np.inner(a[0], b.T)": lambda p, t: p[0],
    "np.inner(a, b.T.reshape(5, 1, 300))": lambda p, t: p.reshape(7, 5, 1),
    "np.vdot(a[1], b[:, 2])": lambda p, t: p[1, 2],
    "np.vdot(a.reshape(2, -1)[:1, :300], b[:, :1])": lambda p, t: p[0, 0],
    "np.tensordot(a, b, 1)": lambda p, t: p,
    "np.tensordot(a.reshape(7, 3, 100), b.reshape(3, 100, 5))": lambda p, t: p,
    "np.einsum('ij,jk', a, b, optimize=True)": lambda p, t: p,
    "np.einsum('ij,jk->ki', a, b, optimize='greedy')": lambda p, t: p.T,
    "np.linalg.matmul(a, b)": lambda p, t: p,
    "np.linalg.tensordot(a, b, axes=1)": lambda p, t: p,
    "np.linalg.vecdot(a[:5], b.T)": lambda p, t: np.diagonal(p[:5]).copy(),
    "np.linalg.multi_dot([a, b])": lambda p, t: p,
    "np.linalg.multi_dot([a[0], b, b[:5, :5]])": lambda p, t: t(p[:1], B[:5, :5])[0],
    "np.linalg.matrix_power(q, 3)": lambda p, t: t(t(SQUARE, SQUARE), SQUARE),
    "np.ma.dot(a, b).data": lambda p, t: p,
    "np.ma.array(a).dot(b).data": lambda p, t: p,
    "np.asarray(np.matrix(a) * np.matrix(b))": lambda p, t: p,
    "np.asarray(np.matrix(a) @ np.matrix(b))": lambda p, t: p,
    "td.matmul(a, b)": lambda p, t: p,
    "a.astype(np.float32, order='F') @ np.asfortranarray(b)": lambda p, t: p,
    "a[::-1, ::-1] @ b[::-1]": lambda p, t: t(A[::-1, ::-1], B[::-1]),
    "a.astype('>f4') @ b": lambda p, t: p,
    "np.broadcast_to(a, (2, 7, 300)) @ b": lambda p, t: np.stack([p, p]),
    "a @ b[:300, :5].astype(np.float16)": lambda p, t: t(A, B.astype(np.float16)),
    "a.astype(td.bfloat16) @ b": lambda p, t: p,
    "np.dot(a.astype(td.bfloat16), b)": lambda p, t: p,
    "a[:, :0] @ b[:0]": lambda p, t: np.zeros((7, 5), np.float32),
    "np.dot(a[:, :0], b[:0])": lambda p, t: np.zeros((7, 5), np.float32),
    "np.dot(a[:0].reshape(0, 2, 300), b)": lambda p, t: p[:0].reshape(0, 1, 5)[
        :, [0, 0]
    ],
}


@pytest.mark.parametrize("expression", PRODUCTS)
def test_bits(expression: str) -> None:
    names = {"np": np, "td": td, "a": A, "b": B, "q": SQUARE}
    wanted = PRODUCTS[expression](ROUNDED, typed)
    with td.matmul_precision("bf16"):
        got = eval(expression, names)
    assert same(np.ascontiguousarray(got), np.ascontiguousarray(wanted))
    assert same(np.float32(1), got) or np.ndim(got) == np.ndim(wanted)


def test_in_place() -> None:
    a = SQUARE.copy()
    with td.matmul_precision("bf16"):
        a @= SQUARE
    assert same(a, typed(SQUARE, SQUARE))


SHAPES = [(), (1,), (4,), (3, 4), (4, 3), (2, 3, 4), (2, 4, 3), (0, 4), (4, 0), (1, 1)]


@pytest.mark.parametrize("name", OWN)
def test_shapes_and_errors_are_those_of_numpy(name: str) -> None:
    """Call with arrays, lists, and classes of arrays; with and without an `out`."""
    for shapes in product(SHAPES, repeat=2):
        a, b = random(*shapes[0]), random(*shapes[1], seed=1)
        for x, y in ((a, b), (a.tolist(), b), (np.ma.array(a), b), (a, memmap(b))):
            compare(name, x, y)
    for x, y in product((np.matrix(SQUARE), SQUARE, memmap(SQUARE)), repeat=2):
        if name != "vdot":  # NumPy's vdot sums only the first elements of np.matrix
            compare(name, x, y)


def memmap(x: Array) -> Array:
    return x.view(np.memmap)


def compare(name: str, *arguments: Any, **keywords: Any) -> None:
    wanted = outcome(OWN[name], *arguments, **keywords)
    with td.matmul_precision("f32", float64=True):
        assert getattr(np, name) is not OWN[name]
        got = outcome(getattr(np, name), *arguments, **keywords)
    assert type(got) is type(wanted)
    if isinstance(wanted, Exception):
        assert str(got) == str(wanted)
    else:
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def outcome(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    try:
        return function(*arguments, **keywords)
    except (ValueError, TypeError) as error:
        return error


def test_the_out_of_dot() -> None:
    for out in (
        np.empty((7, 5), np.float32),
        np.empty((7, 5), np.float64),
        np.empty((7, 5), np.float32, order="F"),
        np.empty((7, 6), np.float32),
        np.empty((7, 5), ">f4"),
        np.empty(35, np.float32),
        np.ma.empty((7, 5), np.float32),
        memmap(np.empty((7, 5), np.float32)),
        [],
    ):
        compare("dot", A, B, out=copy.copy(out))
    compare("dot", A[0], B[:, 0], out=np.empty((), np.float32))
    compare("dot", A, B, None)
    compare("dot", A)
    compare("dot", A, B, other=1)
    compare("inner", A)
    compare("vdot", A, b=B)
    out = np.empty((7, 5), np.float32)
    with td.matmul_precision("bf16"):
        assert np.dot(A, B, out) is out
    assert same(out, ROUNDED)
    overlap = SQUARE.copy()
    with td.matmul_precision("bf16"):
        np.dot(overlap, overlap.T, out=overlap)
    assert same(overlap, typed(SQUARE, SQUARE.T))


def test_what_computes_by_itself_is_handed_on() -> None:
    with td.matmul_precision("bf16"):  # also as seen in a block
        handled: dict[Any, str] = {np.dot: "dot", np.matmul: "matmul"}

    class Own:
        def __array_function__(
            self, function: Any, types: Any, args: Any, kwargs: Any
        ) -> str:
            return handled[function]

    class Unhandled(np.ndarray):
        def __array_function__(self, *args: Any) -> str:
            return "own"

    with td.matmul_precision("bf16"):
        assert np.dot(Own(), A) == "dot"
        assert np.dot(A, A, out=Own()) == "dot"
        assert np.inner(A.view(Unhandled), A) == "own"
        assert {OWN["dot"]: 1}[np.dot] == 1
        assert np.dot == OWN["dot"] != np.inner
    assert np.dot(Own(), A) == "dot"
    for strange in ("x", object(), None, [[1], [2, 3]], {}, np.array(["x"])):
        compare("dot", A, strange)
        compare("vdot", strange, A)


def test_stand_ins_look_like_numpys_own() -> None:
    with td.matmul_precision("bf16"):
        for name, own in OWN.items():
            function = getattr(np, name)
            assert function is not own
            assert inspect.signature(function) == inspect.signature(own)
            for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
                assert getattr(function, attribute) == getattr(own, attribute)
            assert repr(function) == repr(own)
            assert function._implementation is own._implementation
            pickled = pickle.dumps(function)
            assert pickle.loads(pickled) is copy.copy(function) is function
    assert pickle.loads(pickled) is np.vdot
    assert same(function(A, A), np.vdot(A, A))  # a kept function


def test_modules_imported_in_a_block() -> None:
    code = """
import sys
import numpy as np, tf32dtype as td
with td.matmul_precision("bf16"):
    import numpy.matlib, numpy.ma, numpy.polynomial
    assert numpy.matlib.dot is np.dot
assert numpy.matlib.dot is np.dot is np._core.multiarray.dot
print(type(np.dot).__name__)
"""
    assert run_code(code) == "_ArrayFunctionDispatcher"
