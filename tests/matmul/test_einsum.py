"""td.einsum: the values of np.einsum, the bits of np.matmul."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import oracle

hypothesis = pytest.importorskip("hypothesis")
given, st = hypothesis.given, hypothesis.strategies

TYPES = [f.type for f in td.formats.values() if f.signed]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)
LETTERS = ascii_uppercase + ascii_lowercase
OPTIMIZE = [False, True, "greedy", "optimal", ("greedy", 0), ("optimal", 40)]


def small(shape: tuple[int, ...], scalar_type: Any, seed: int = 0) -> np.ndarray:
    """Draw nonzero numbers that every format has. Without zeros, no partial sum of
    magnitudes is larger than the whole sum."""
    numbers = np.random.default_rng(seed).choice([-2.0, -1.0, 1.0, 2.0], shape)
    return np.asarray(numbers).astype(scalar_type)


def random(shape: tuple[int, ...], scalar_type: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(scalar_type)


def check(got: Any, wanted: np.ndarray, dtype: Any) -> None:
    assert np.asarray(got).dtype == dtype
    assert np.shape(got) == np.shape(wanted)
    assert np.all(oracle.same(got, wanted))


def same_bits(got: Any, wanted: Any) -> None:
    assert np.shape(got) == np.shape(wanted)
    assert np.asarray(got).dtype == np.asarray(wanted).dtype
    assert np.array_equal(td.bits(got), td.bits(wanted))


def largest_integer(dtype: np.dtype[Any]) -> float:
    """Return the largest n for which the dtype has all integers up to n."""
    if dtype.name in td.formats:
        return min(td.formats[dtype.name].max, 2 / td.formats[dtype.name].eps)
    return 2 / float(np.finfo(dtype).eps)


def agree(subscripts: str, arrays: list[np.ndarray], **options: Any) -> None:
    """Compare td.einsum of exact numbers with np.einsum of float64."""
    wide = [a.astype(np.float64) for a in arrays]
    wanted = np.einsum(subscripts, *wide)
    largest = np.max(np.einsum(subscripts, *map(np.abs, wide)), initial=0)
    common = np.result_type(*arrays)
    # Without elements, partial sums may exceed the largest sum.
    exact = largest <= largest_integer(common) and all(a.size for a in arrays)
    dtype = None if exact else np.float64
    got = td.einsum(subscripts, *arrays, dtype=dtype, **options)
    assert got.dtype == (common if exact else np.float64)
    assert got.shape == wanted.shape
    assert np.array_equal(got.astype(np.float64), wanted)


# -- expressions -------------------------------------------------------------------


@st.composite
def calls(draw: Any) -> tuple[str, list[tuple[int, ...]]]:
    """Draw subscripts that fit together, and the shapes of the operands."""
    lengths = {x: draw(st.sampled_from([2, 3, 2, 3, 1, 0])) for x in "abcdXY"}
    dots = draw(st.lists(st.sampled_from([2, 3, 1]), max_size=2))
    inputs, shapes = [], []
    for _ in range(draw(st.integers(1, 4))):
        letters = draw(st.lists(st.sampled_from("abcdXY"), max_size=4))
        single = {x: draw(st.integers(0, 7)) == 0 for x in letters}
        shape = [1 if single[x] else lengths[x] for x in letters]
        text = "".join(letters)
        if dots and draw(st.booleans()):
            at = draw(st.integers(0, len(letters)))
            own = dots[draw(st.integers(0, len(dots))) :]
            shape[at:at] = [1 if draw(st.integers(0, 7)) == 0 else n for n in own]
            text = text[:at] + "..." + text[at:]
        inputs.append(text)
        shapes.append(tuple(shape))
    subscripts = ",".join(inputs)
    if draw(st.booleans()):
        used = sorted({x for text in inputs for x in text if x != "."})
        output = draw(st.permutations(used)) if used else []
        output = output[: draw(st.integers(0, len(output)))]
        if "..." in subscripts:
            output.insert(draw(st.integers(0, len(output))), "...")
        subscripts += "->" + "".join(output)
    return subscripts, shapes


def interleaved(subscripts: str, arrays: list[np.ndarray]) -> list[Any]:
    """Return the arguments of the call form without a string."""

    def numbers(text: str) -> list[Any]:
        marked = text.replace("...", ".")
        return [Ellipsis if x == "." else LETTERS.index(x) for x in marked]

    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    arguments: list[Any] = []
    for array, text in zip(arrays, inputs.split(","), strict=True):
        arguments += [array, numbers(text)]
    return arguments + [numbers(output)] * bool(arrow)


SIGNED = [*TYPES, np.float16, np.float32, np.float64]


some_calls = given(calls(), st.lists(st.sampled_from(SIGNED), min_size=4), st.data())


@hypothesis.settings(max_examples=60)
@some_calls
def test_random_expressions(
    call: tuple[str, list[tuple[int, ...]]], types: list[Any], data: Any
) -> None:
    check_expression(call, types, data)


@pytest.mark.exhaustive
@hypothesis.settings(max_examples=500)
@some_calls
def test_more_random_expressions(
    call: tuple[str, list[tuple[int, ...]]], types: list[Any], data: Any
) -> None:
    check_expression(call, types, data)


def check_expression(
    call: tuple[str, list[tuple[int, ...]]], types: list[Any], data: Any
) -> None:
    subscripts, shapes = call
    alike = data.draw(st.booleans())  # if false, of several dtypes
    arrays = [
        small(shape, types[0 if alike else i], i) for i, shape in enumerate(shapes)
    ]
    optimize = data.draw(st.sampled_from(OPTIMIZE))
    agree(subscripts, arrays, optimize=optimize)
    got = td.einsum(subscripts, *arrays, dtype=np.float64, optimize=optimize)
    numbered = td.einsum(
        *interleaved(subscripts, arrays), dtype=np.float64, optimize=optimize
    )
    assert np.array_equal(got, numbered)


#: Expressions of NumPy's own tests.
EXPRESSIONS = """
a,ab,abc->abc a,b,ab->ab ea,fb,gc,hd,abcd->efgh ea,fb,abcd,gc,hd->efgh
abcd,ea,fb,gc,hd->efgh acdf,jbje,gihb,hfac,gfac,gifabc,hfac
cd,bdhe,aidb,hgca,gc,hgibcd,hgac abhe,hidj,jgba,hiab,gab
bde,cdh,agdb,hica,ibd,hgicd,hiac chd,bde,agbc,hiad,hgc,hgi,hiad
chd,bde,agbc,hiad,bdi,cgh,agdb bdhe,acad,hiab,agac,hibd ab,ab,c-> ab,ab,c->c
ab,ab,cd,cd-> ab,ab,cd,cd->ac ab,ab,cd,cd->cd ab,ab,cd,cd,ef,ef-> ab,cd,ef->abcdef
ab,cd,ef->acdf ab,cd,de->abcde ab,cd,de->be ab,bcd,cd->abcd ab,bcd,cd->abd
eb,cb,fb->cef dd,fb,be,cdb->cef bca,cdb,dbf,afc-> dcc,fce,ea,dbf->ab
fdf,cdd,ccd,afe->ae abcd,ad ed,fcd,ff,bcf->be baa,dcf,af,cde->be bd,db,eac->ace
fff,fae,bef,def->abd efc,dbc,acf,fd->abe ba,ac,da->bcd ab,ab ab,ba abc,abc abc,bac
abc,cba aab,fa,df,ecc->bde ecb,fef,bad,ed->ac bcf,bbb,fbf,fc-> bb,ff,be->e
bcb,bb,fc,fff-> fbb,dfd,fc,fc-> afd,ba,cc,dc->bf adb,bc,fa,cfc->d bbd,bda,fc,db->acf
dba,ead,cad->bce aef,fbc,dca->bde a,ac,ab,ad,cd,bd,bc-> i-> ij->j ii iii->i ijij->
aabb->ab jii->ij ba z,mz,zm-> i,j ij,jk ijk,jil->kl x,yx,zx->xzy mi,mi,mi->m
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("subscripts", EXPRESSIONS.split())
def test_expressions_of_numpy(subscripts: str) -> None:
    lengths = dict(zip(ascii_lowercase, [2, 3, 1, 3, 2] * 6, strict=False))
    arrays = [
        small(tuple(lengths[x] for x in text), td.bfloat16, i)
        for i, text in enumerate(subscripts.partition("->")[0].split(","))
    ]
    for optimize in OPTIMIZE[:4]:
        agree(subscripts, arrays, optimize=optimize)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("...i->...", [(2, 3, 4)]),
        ("i...->...", [(2, 3, 4)]),
        ("i...i->...i", [(3, 2, 3)]),
        ("...", [()]),
        ("", [()]),
        (",", [(), ()]),
        ("i,->i", [(3,), ()]),
        (",i->", [(), (3,)]),
        ("..., ...", [(3, 4), (2, 3, 4)]),
        ("...i, ...i", [(2, 3, 4), (4,)]),
        ("i..., i...", [(4, 3, 2), (4,)]),
        ("ij..., j... -> ij...", [(2, 3, 4), (3,)]),
        ("ij...,...j->ij...", [(2, 3, 4), (3,)]),
        ("ik...,...kj->i...j", [(4, 3), (3, 2)]),
        ("...k,kj", [(4, 3), (3, 2)]),
        ("...kl,k", [(2, 3, 4, 5), (4,)]),
        ("...lmn,lmno->...o", [(1, 1, 1, 4, 5, 6), (4, 5, 6, 3)]),
        ("ij...,j...->i...", [(1, 2), (2, 2, 1)]),
        ("...ij,...jk->...ik", [(1, 5), (5, 5)]),
        ("ij->...ij", [(2, 3)]),
        ("i,i", [(2,), (1,)]),
        ("i,i->i", [(1,), (4,)]),
        ("ij,ij->j", [(10, 2), (1, 2)]),
        ("ijk,kl,jl", [(1, 5, 4), (4, 6), (5, 6)]),
        ("abjk,kl,jl,ab->ab", [(1, 1, 5, 4), (4, 6), (5, 6), (7, 7)]),
        ("obk,ijk->ioj", [(2, 4, 8), (2, 4, 8)]),
        ("bbcdc->d", [(1, 1, 3, 1, 3)]),
        ("ijp,ipq,ikq->ijk", [(3, 1, 1), (3, 1, 3), (1, 3, 3)]),
        ("cacc,bcb->", [(1, 1, 1, 1), (1, 4, 1)]),
        ("baegffahgc,hdggeff", [(2, 1, 4, 1, 1, 1, 1, 2, 1, 1), (1,) * 4 + (4, 1, 1)]),
        ("ij,jk->ik", [(0, 3), (3, 2)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,jk,kl->il", [(2, 0), (0, 3), (3, 4)]),
        ("ij,jk,kl->il", [(2, 1), (0, 3), (3, 4)]),
        ("ij->i", [(2, 0)]),
        ("i,i", [(0,), (1,)]),
    ],
)
def test_shapes(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    for scalar_type in (td.bfloat16, td.float8_e4m3fn, np.float32):
        arrays = [small(shape, scalar_type, i) for i, shape in enumerate(shapes)]
        agree(subscripts, arrays)
        got = td.einsum(subscripts, *arrays, dtype=np.float64)
        numbered = td.einsum(*interleaved(subscripts, arrays), dtype=np.float64)
        assert np.array_equal(got, numbered)


@pytest.mark.parametrize("scalar_type", [td.tf32, np.float32])
def test_random_paths(scalar_type: Any) -> None:
    rng = np.random.default_rng(0)
    subscripts = "ab,bc,cda,de,ee->ae"
    arrays = [small((2,) * n, scalar_type, n) for n in (2, 2, 3, 2, 2)]
    for _ in range(30):
        path: list[Any] = ["einsum_path"]
        left = len(arrays)
        while left > 1:
            count = int(rng.integers(1, min(left, 3) + 1))
            path.append(tuple(map(int, rng.permutation(left)[:count])))
            left -= count - 1
        agree(subscripts, arrays, optimize=path)
    path = np.einsum_path(subscripts, *arrays)[0]
    agree(subscripts, arrays, optimize=path)
    agree(subscripts, arrays, optimize=tuple(path))
    agree("ij->j", arrays[:1], optimize=["einsum_path"])
    agree("ij->j", arrays[:1], optimize=["einsum_path", (0,), (0,)])


def test_many_dimensions() -> None:
    a = small((1,) * 30 + (2,), td.tf32)
    assert td.einsum(a, range(31)).shape == a.shape
    assert np.array_equal(td.einsum(a, range(31), [30]), a.ravel())
    assert td.einsum(a, [...], a, [...]).shape == a.shape


def test_call_forms() -> None:
    a = small((3, 3), td.bfloat16)
    for sublist in ([0, 0], (0, 0), np.array([0, 0]), list(np.array([51, 51]))):
        assert td.einsum(a, sublist) == td.einsum("ii", a)
    for i, j in product((0, 26, 51), (1, 25, 50)):
        same_bits(td.einsum(a, [i, j], a, [j, 2], [i, 2]), a @ a)
    same_bits(td.einsum(a, [1, 0]), a.T)
    same_bits(td.einsum("Ba", a), a)  # capitals come first
    same_bits(td.einsum("aB", a), a.T)
    same_bits(td.einsum(" i j , j k - > k i ", a, a), (a @ a).T)


# -- bits --------------------------------------------------------------------------


@each_type
def test_one_product_has_the_bits_of_matmul(scalar_type: Any) -> None:
    for k in (0, 1, 7, 256, 300):
        check_one_product(scalar_type, k)


def check_one_product(scalar_type: Any, k: int) -> None:
    a, b = random((5, k), scalar_type, k), random((k, 3), scalar_type, k + 1)
    accumulated = oracle.product_float32(a.astype(float), b.astype(float))
    rounded = oracle.round_to(np.dtype(scalar_type).name, accumulated)
    calls: list[tuple[str, tuple[np.ndarray, ...], Callable[[Any], Any]]] = [
        ("ij,jk->ik", (a, b), lambda x: x),
        ("ij,jk", (a, b), lambda x: x),
        ("ij,kj->ik", (a, b.T), lambda x: x),
        ("ji,jk->ki", (a.T, b), lambda x: x.T),
        ("jk,ij->ik", (b, a), lambda x: x),
        ("j,jk", (a[1], b), lambda x: x[1]),
        ("ij,j", (a, b[:, 2]), lambda x: x[:, 2]),
        ("j,j", (a[1], b[:, 2]), lambda x: x[1, 2]),
        ("...j,j...->...", (a[:3], b.T[..., None][:, :, 0].T), np.diagonal),
        ("nij,njk->nik", (a[None], b[None]), lambda x: x[None]),
        ("nij,jk->nik", (np.stack([a, a]), b), lambda x: np.stack([x, x])),
    ]
    with np.errstate(all="ignore"):
        for subscripts, operands, part in calls:
            check(td.einsum(subscripts, *operands), part(rounded), scalar_type)
            sums = td.einsum(subscripts, *operands, dtype=np.float32)
            check(sums, part(accumulated), np.float32)
        got, matmul = td.einsum("ij,jk", a, b), a @ b
        same_bits(got, matmul)


@each_type
def test_letters_are_summed_in_the_order_of_the_first_operand(scalar_type: Any) -> None:
    a, b = random((3, 5, 70), scalar_type, 1), random((70, 5, 2), scalar_type, 2)
    turned = a.transpose(2, 1, 0).reshape(350, 3)
    for dtype in (scalar_type, np.float32):
        with np.errstate(all="ignore"):
            wanted = np.matmul(
                a.reshape(3, 350), b.swapaxes(0, 1).reshape(350, 2), dtype=dtype
            )
            check(td.einsum("ijk,kjl", a, b, dtype=dtype), wanted, dtype)
            wanted = np.matmul(b.reshape(350, 2).T, turned, dtype=dtype)
            check(td.einsum("kjl,ijk->li", b, a, dtype=dtype), wanted, dtype)


@each_type
def test_products_of_two_formats(scalar_type: Any) -> None:
    for other in TYPES:
        a, b = random((4, 60), scalar_type, 3), random((60, 3), other, 4)
        common = np.result_type(a, b)
        accumulated = oracle.product_float32(a.astype(float), b.astype(float))
        with np.errstate(all="ignore"):
            rounded = oracle.round_to(common.name, accumulated)
            check(td.einsum("ij,jk->ik", a, b), rounded, common)
            check(td.einsum("jk,ij->ki", b, a), rounded.T, common)
            check(td.einsum("ij,jk", a, b, dtype=np.float32), accumulated, np.float32)
            exact = a[:, 0, None].astype(float) * b[0].astype(float)
            rounded = oracle.round_to(common.name, exact)
            check(td.einsum("i,k", a[:, 0], b[0]), rounded, common)


@each_type
def test_products_without_a_sum(scalar_type: Any) -> None:
    """Round the exact product once, as a * b does."""
    a, b = random((3, 4), scalar_type, 5), random((3, 4), scalar_type, 6)
    with np.errstate(all="ignore"):
        same_bits(td.einsum("ij,ij->ij", a, b), a * b)
        same_bits(td.einsum("ij,->ij", a, b[0, 0]), a * b[0, 0])
        same_bits(td.einsum("ij,kj->jki", a, b), a.T[:, None] * b.T[:, :, None])
        wide = td.einsum("i,j", a[0], b[0], dtype=np.float32)
        check(wide, np.outer(a[0].astype(float), b[0].astype(float)), np.float32)


@each_type
def test_every_step_rounds_once(scalar_type: Any) -> None:
    a, b, c = (random((6, 6), scalar_type, seed) for seed in (7, 8, 9))
    with np.errstate(all="ignore"):
        got = td.einsum("ij,jk,kl->il", a, b, c, optimize=False)
        same_bits(got, (a @ b) @ c)
        path = ["einsum_path", (1, 2), (0, 1)]
        got = td.einsum("ij,jk,kl->il", a, b, c, optimize=path)
        same_bits(got, a @ (b @ c))
        got = td.einsum("ij,jk->k", a, b)
        same_bits(got, np.sum(a, axis=0) @ b)
        got = td.einsum("ij,jk,kl->il", a, b, c, optimize=False, dtype=np.float32)
        first = np.matmul(a, b, dtype=np.float32)
        assert np.array_equal(got, np.matmul(first, c, dtype=np.float32))
        got = td.einsum("ij->j", a, dtype=np.float32)
        assert np.array_equal(got, np.sum(a, axis=0, dtype=np.float32))


def test_no_order_of_products_changes_the_dtype() -> None:
    types = [td.float8_e4m3fn, td.float8_e5m2, td.bfloat16]
    arrays = [small((2, 2), t) for t in types]
    for path in ([(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 2), (0, 1)], [(0, 1, 2)]):
        got = td.einsum("ij,jk,kl", *arrays, optimize=["einsum_path", *path])
        assert got.dtype == np.result_type(*arrays)


def test_products_are_those_of_matmul(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use replacements of np.matmul, or of its loops, for the products of td.einsum."""
    shapes, matmul = [], np.matmul

    def seen(a: Any, b: Any, **keywords: Any) -> Any:
        shapes.append((a.shape, b.shape))
        return matmul(a, b, **keywords)

    monkeypatch.setattr(np, "matmul", seen)
    a = np.ones((2, 3, 4), np.float32)
    td.einsum("bij,bkj,bkl->bil", a, a, a, optimize=False)
    assert shapes == [((2, 3, 4), (2, 4, 3)), ((2, 3, 3), (2, 3, 4))]


# -- dtypes, views, out ------------------------------------------------------------


@pytest.mark.parametrize("optimize", [False, True])
def test_operands_that_are_no_arrays(optimize: bool) -> None:
    f = np.ones(3, np.float32)
    for operands in ((3, f), (3.5, f), ([1, 2, 3], f), (True, f), (1j, f), (2, [1, 2])):
        subscripts = "i,i->i" if isinstance(operands[0], list) else ",i->i"
        got = td.einsum(subscripts, *operands, optimize=optimize)
        wanted = np.einsum(subscripts, *operands, optimize=optimize)
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted)
    got = td.einsum(",i->i", td.bfloat16(3), [td.bfloat16(1), td.bfloat16(2)])
    check(got, np.array([3.0, 6.0]), td.bfloat16)


def test_scalars() -> None:
    a = small((3,), td.tf32)
    assert type(td.einsum("i,i", a, a)) is td.tf32
    assert type(td.einsum("i->", a)) is td.tf32
    assert type(td.einsum("", a[0])) is td.tf32
    assert type(td.einsum(",", a[0], a[1], dtype=np.float32)) is np.float32
    assert not np.signbit(td.einsum("i,i", a[:0], a[:0]))


def test_dtype() -> None:
    a, f = small((2, 3), td.bfloat16), random((2, 3), np.float32)
    half = f.astype(td.bfloat16)
    got = td.einsum("ij,kj", f, f, dtype=td.bfloat16)  # this converts the operands
    same_bits(got, half @ half.T)
    got = td.einsum("ji", f, dtype=td.bfloat16)
    same_bits(got, half.T.copy())
    assert td.einsum("ij->i", a, dtype=np.float64).dtype == np.float64
    assert td.einsum("ij,ij", a, a, dtype=complex) == np.sum(a.astype(float) ** 2)
    assert td.einsum("ij->ij", a, dtype="tf32").dtype == td.tf32


def test_unsigned() -> None:
    a = np.array([1, 2, 4], td.float8_e8m0fnu)
    check(td.einsum("i,i->i", a, a), np.array([1.0, 4.0, 16.0]), td.float8_e8m0fnu)
    check(td.einsum("i->", a[:2], dtype=np.float32), np.array(3.0), np.float32)


@pytest.mark.parametrize(
    ("subscripts", "wanted"),
    [
        ("...", lambda a: a),
        ("ijk", lambda a: a),
        ("kji", lambda a: a.T),
        ("ijk->jik", lambda a: a.swapaxes(0, 1)),
        ("iii->i", lambda a: a[range(3), range(3), range(3)]),
        ("...ii->...i", lambda a: a[:, range(3), range(3)]),
        ("...ii->i...", lambda a: a[:, range(3), range(3)].T),
        ("ii...->...i", lambda a: a[range(3), range(3)].T),
        ("jii->ij", lambda a: a[:, range(3), range(3)].T),
        ("i...i->i...", lambda a: a[range(3), :, range(3)]),
    ],
)
def test_views(subscripts: str, wanted: Callable[[np.ndarray], np.ndarray]) -> None:
    for layout in ("C", "F"):
        a = np.arange(27.0).reshape(3, 3, 3).astype(td.bfloat16, order=layout)
        got = td.einsum(subscripts, a)
        assert np.shares_memory(got, a)
        check(got, wanted(a).astype(float), td.bfloat16)
        got[...] = 0
        assert not np.any(wanted(a))
        a.flags.writeable = False
        assert not td.einsum(subscripts, a).flags.writeable


def test_out() -> None:
    a, b = small((3, 4), td.bfloat16, 1), small((4, 3), td.bfloat16, 2)
    wanted = (a @ b).astype(float)
    for dtype in (td.bfloat16, td.float8_e4m3fn, np.float32, np.float64, complex):
        spaced = np.zeros((6, 6), dtype)
        out = spaced[::2, ::-2].T
        assert td.einsum("ij,jk->ki", a, b, out=out.T) is not None
        assert np.array_equal(out.T.astype(complex), wanted.T)
        assert not np.any(spaced[1::2])
        assert td.einsum("ij,jk", a, b, out=out) is out
        assert np.array_equal(out.astype(complex), wanted)
    zero = np.zeros((), np.float32)
    assert td.einsum("ij,ji", a, b, out=zero, optimize="optimal") is zero
    assert zero == np.trace(wanted)
    square = small((3, 3), td.bfloat16, 3)
    wanted = (square @ square).astype(float)
    assert td.einsum("ij,jk", square, square, out=square) is square
    check(square, wanted, td.bfloat16)
    td.einsum("ij->ji", square, out=square)
    check(square, wanted.T, td.bfloat16)
    x = small((2, 2, 3, 3), td.tf32, 4)
    out = np.zeros((2, 3), td.tf32)
    td.einsum("aabb->ab", x, out=out)
    assert np.array_equal(out, td.einsum("aabb->ab", x))


# -- errors ------------------------------------------------------------------------

M = np.ones((2, 3), np.float32).astype(td.bfloat16)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("i%,jk", M, M),
            ValueError,
            "must consist of letters, .*; got '%' in 'i%,jk'",
        ),
        (("i->&", M[0]), ValueError, "'&'"),
        (("i..", M), ValueError, r"; got '\.' in"),
        ((".i...", M), ValueError, r"; got '\.' in"),
        (("j->..j", M), ValueError, r"; got '\.' in"),
        (
            ("...i...", M),
            ValueError,
            r"operand 0 .* at most one .*; got '\.\.\.i\.\.\.'",
        ),
        (("...i->...i...", M), ValueError, "of the result must have at most one"),
        (("ij->i->j", M), ValueError, "'-' in"),
        (("ij-i", M), ValueError, "'-' in"),
        (("ij>i", M), ValueError, "'>' in"),
        (("ij->i,j", M), ValueError, "',' in"),
        (("ij,jk", M), ValueError, "each of 1 operands; got 2"),
        (("ij", M, M), ValueError, "each of 2 operands; got 1"),
        (("",), ValueError, "each of 0 operands; got 1"),
        (
            ("i", 0),
            ValueError,
            r"operand 0 of shape \(\) .* 0 dimensions; got 1 in 'i'",
        ),
        (("ij,i", M, M), ValueError, r"operand 1 of shape \(2, 3\) .*; got 1 in 'i'"),
        (("ijk...", M), ValueError, "2 dimensions; got 3"),
        (("ij->iji", M), ValueError, "not repeat a letter; got 'i' twice in 'iji'"),
        (("ij->ix", M), ValueError, "letters of the operands, 'ij'; got 'x' in 'ix'"),
        (("...j->j", M), ValueError, r"result must have '\.\.\.', .*; got 'j'"),
        (("ij,jk", M, M), ValueError, "'j' must .*; got 2 in operand 1 and 3 before"),
        (
            ("...,...", M, M.T),
            ValueError,
            r"'\.\.\.-2' must .*; got 3 in operand 1 and 2",
        ),
        (("ii", M), ValueError, r"diagonal 'i' must .*; got \[2, 3\]"),
        (("ii,i", M[:, :1], M[0]), ValueError, r"diagonal 'i' must .*; got \[2, 1\]"),
        ((M,), TypeError, "subscripts must be a string"),
        (
            (M, 0),
            TypeError,
            "subscripts in a list must be numbers from 0 to 51.* got 0",
        ),
        ((M, [0, 1.5]), TypeError, r"subscripts in a list must .* got \[0, 1.5\]"),
        ((M, [0, 52]), ValueError, r"52 in \[0, 52\]"),
        ((M, [0, -1]), ValueError, r"-1 in \[0, -1\]"),
        ((M, [0, 1], [0, 0]), ValueError, "not repeat a letter; got 'A' twice in 'AA'"),
    ],
)
def test_errors(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        td.einsum(*arguments)
    wide = [x.astype(float) if isinstance(x, np.ndarray) else x for x in arguments]
    with pytest.raises((ValueError, TypeError)):
        np.einsum(*wide)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        (
            {"optimize": "fast"},
            ValueError,
            "optimize must be False, True, .*; got 'fast'",
        ),
        ({"optimize": None}, ValueError, "optimize must be .*; got None"),
        ({"optimize": ("greedy", "x")}, ValueError, "optimize must be"),
        ({"optimize": [(0, 1), (0, 1)]}, ValueError, "optimize must be"),
        (
            {"optimize": ["einsum_path", (0, 1)]},
            ValueError,
            "must leave one operand; got 2",
        ),
        (
            {"optimize": ["einsum_path", (0, 3)]},
            ValueError,
            r"0 to 2 here; got \(0, 3\)",
        ),
        (
            {"optimize": ["einsum_path", (0, -1)]},
            ValueError,
            r"path of optimize .*; got \(0, -1\)",
        ),
        (
            {"optimize": ["einsum_path", ()]},
            ValueError,
            r"path of optimize .*; got \(\)",
        ),
        ({"optimize": ["einsum_path", 0]}, ValueError, "path of optimize .*; got 0"),
        ({"out": [[0.0] * 2] * 2}, TypeError, "out must be an array"),
        ({"out": np.zeros((2, 3))}, ValueError, r"shape \(2, 2\); got \(2, 3\)"),
        ({"out": np.zeros((1, 2, 2))}, ValueError, r"; got \(1, 2, 2\)"),
        ({"out": np.zeros((2, 2), int)}, TypeError, "int64.* 'same_kind'"),
        ({"dtype": int}, TypeError, "operand 0 of dtype bfloat16 .* dtype=int64"),
        ({"dtype": "bad"}, TypeError, "'bad'"),
        ({"casting": "unsafe"}, TypeError, "casting"),
    ],
)
def test_errors_of_keywords(
    keywords: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        td.einsum("ij,jk,kl->il", M, M.T, M[:, :2], **keywords)
