"""Names of formats, wherever one is accepted, and of dtypes together with ml_dtypes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import python, run_code
from tf32dtype._base.errors import UserError
from tf32dtype._cli.main import main
from tf32dtype._formats.aliases import BLOCK_FORMATS, meanings
from tf32dtype._formats.table import find, find_dtype
from tf32dtype._matmul.precisions import PRECISIONS, find_precision
from tf32dtype._measures.format_facts import facts

ALL = list(td.formats)
SHORT = {alias: name for name, f in td.formats.items() for alias in f.aliases}
each_name = pytest.mark.parametrize("name", [*ALL, *SHORT])

# -- import order --------------------------------------------------------------------

#: The answers of a program that has imported both packages.
BOTH = """
import hashlib
import numpy as np, tf32dtype as td, ml_dtypes
assert td.names() == "ml_dtypes"
sums = np.ones(10000).astype("bfloat16").sum(), np.ones(10000, "bf16").sum()
found = hashlib.sha256()
np.seterr(all="ignore")
theirs = {n: np.dtype(getattr(ml_dtypes, n)) for n in td.formats if n != "tf32"}
assert len(theirs) == 12
codes = {
    n: td.from_bits(np.arange(1 << min(f.bits, 16)).astype(f"u{f.itemsize}")
                    << (f.bits - 16 if f.bits > 16 else 0) + f.unused_low_bits, n)
    for n, f in td.formats.items()
}
cast = lambda x, to: x.astype(float if x.dtype == to else x.dtype).astype(to)
for n, x in codes.items():
    for m, dtype in theirs.items():
        here, code = td.formats[m].dtype, f"u{dtype.itemsize}"
        there = x.astype(dtype)
        assert there.dtype == dtype
        assert (there.view(code) == td.bits(cast(x, here))).all(), (n, m)
        back = codes[m].view(dtype).astype(x.dtype)
        assert (td.bits(back) == td.bits(cast(codes[m], x.dtype))).all(), (m, n)
        common = np.promote_types(x.dtype, here)
        assert np.promote_types(x.dtype, dtype) == common, (n, m)
        assert np.promote_types(dtype, x.dtype) == common, (m, n)
        added = x[:1] + codes[m][:1].view(dtype)
        assert added.dtype == common
        can = [np.can_cast(*pair, how) for pair in ((x.dtype, dtype), (dtype, x.dtype))
               for how in ("safe", "same_kind", "unsafe")]
        found.update(repr((n, m, str(common), can)).encode())
print(*map(float, sums), found.hexdigest())
"""
ORDERS = {
    "ours first": "import tf32dtype; import ml_dtypes",
    "theirs first": "import ml_dtypes; import tf32dtype",
    "ours first, theirs by another": "import tf32dtype; import third",
    "theirs by another, then ours": "import third; import tf32dtype",
    "ours in use when theirs come": """
import importlib.util, numpy as np, tf32dtype as td
assert importlib.util.find_spec("ml_dtypes") is not None  # finds, imports nothing
assert np.dtype("bfloat16") == np.dtype("bf16") == td.bfloat16
x = np.ones(3, td.bfloat16)
(x + x.astype(td.tf32)).astype(td.float8_e5m2)
import ml_dtypes
""",
    # Import NumPy first: its import may fail in two threads at once.
    "both at once, in two threads": """
import numpy
from threading import Thread
both = [Thread(target=__import__, args=(n,)) for n in ("tf32dtype", "ml_dtypes")]
for thread in both: thread.start()
for thread in both: thread.join()
""",
}


@pytest.mark.exhaustive
def test_both_packages_in_every_order_of_import(tmp_path: Any) -> None:
    pytest.importorskip("ml_dtypes")
    (tmp_path / "third.py").write_text("import ml_dtypes\n")
    found = {}
    for name, start in ORDERS.items():
        done = python("-W", "error", "-c", f"{start}\n{BOTH}", cwd=tmp_path)
        assert done.returncode == 0, (name, done.stderr)
        found[name] = done.stdout.split()
    assert len(set(map(tuple, found.values()))) == 1, found
    assert found["ours first"][:2] == ["256.0", "256.0"]


NEVER = """
import sys
{hide}
import numpy as np, tf32dtype as td
assert td.names() == "tf32dtype"
for form in td.formats.values():
    assert all(np.dtype(n) == form.dtype for n in (form.name, *form.aliases))
assert float(np.ones(10000).astype("bfloat16").sum()) == 9984
td.bits(np.ones(1, "bf16")), td.quantize(1, "fp4"), td.blocks, td.tensor_core
td.einsum("i,i", np.ones(2, td.tf32), np.ones(2, td.tf32))
print(sys.modules.get("ml_dtypes"))
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hide", ["", "sys.modules['ml_dtypes'] = None"])
def test_what_is_installed_does_not_count(hide: str) -> None:
    assert run_code(NEVER.format(hide=hide)) == "None"


def test_names_are_set() -> None:
    pytest.importorskip("ml_dtypes")
    program = """
import numpy as np, tf32dtype as td
def whose():
    types = {np.dtype(n).type.__module__ for n in ("bfloat16", "bf16", "fp4")}
    assert types == {td.names()}, types
    assert np.dtype("tf32") == td.tf32
    assert td.quantize(1.0, "bfloat16").dtype == td.formats["BF16"].dtype == td.bf16
    a = np.ones((1, 1), td.bf16)
    assert td.matmul(a, a, dtype="bfloat16").dtype == td.bf16
    assert td.einsum("ij,jk", a, a, dtype="bf16").dtype == td.bf16
    return td.names()
for wrong in ("jax", "ml_dtypes", 3):
    try:
        td.names(wrong)
    except ValueError as error:
        assert str(wrong) in str(error), error
    else:
        raise AssertionError(wrong)
assert whose() == "tf32dtype"
{first}
import ml_dtypes
print(whose(), td.names("ml_dtypes") and whose(), td.names("tf32dtype") and whose())
"""
    assert run_code(program.replace("{first}", "")) == "ml_dtypes ml_dtypes tf32dtype"
    chosen = program.replace("{first}", 'td.names("tf32dtype")')
    assert run_code(chosen) == "tf32dtype ml_dtypes tf32dtype"


def test_names_of_a_third_package_are_left_to_it() -> None:
    program = """
import numpy as np
class other(np.float64): pass
np.sctypeDict["bf16"] = other
import tf32dtype as td
print(np.sctypeDict["bf16"] is other, np.dtype("bfloat16") == td.bf16)
"""
    assert run_code(program) == "True True"


def test_masked_arrays_after_a_search_for_their_module() -> None:
    program = """
import importlib.util, sys, tf32dtype as td
importlib.util.find_spec("numpy.ma.core")
loaded = "numpy.ma.core" in sys.modules
import numpy as np
print(np.ma.array([1, 2], mask=[True, True], dtype=td.bf16).max(), loaded)
print(np.ma.maximum_fill_value(td.bf16(1)))
"""
    assert run_code(program).split()[-1] == "-inf"


# -- ml_dtypes' arrays as arguments --------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if name != "tf32"])
def test_arrays_of_ml_dtypes_are_taken(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    scalar = getattr(ml_dtypes, name)
    ours = np.array([[1, 0.5], [2, 0.5]], td.formats[name].type)
    theirs = ours.view(scalar)
    for which in (scalar, np.dtype(scalar), theirs.dtype):
        assert td.formats[which] is find(which) is td.formats[name]
        assert which in td.formats
        assert find_dtype(which) == ours.dtype
    calls: list[Any] = [
        td.bits,
        lambda x: td.bits(x[0, 1]),
        lambda x: td.matmul(x, x),
        lambda x: td.matmul(x, ours),
        lambda x: td.matmul(x, x, dtype=np.float32),
        lambda x: td.matmul(x, x, dtype=x.dtype),
        lambda x: td.einsum("ij,jk->ik", x, x),
        lambda x: td.einsum("ij->j", x, dtype=x.dtype),
        lambda x: td.quantize(x, x.dtype),
        lambda x: td.quantize(x, name, out=np.empty_like(x)).view(ours.dtype),
        lambda x: td.quantize(x, "tf32", rounding="toward_zero"),
        lambda x: td.blocks.quantize(np.ones(32, x.dtype), "mxfp4").elements,
    ]
    for call in calls:
        want, found = np.asarray(call(ours)), np.asarray(call(theirs))
        assert found.dtype == want.dtype
        assert found.tobytes() == want.tobytes()
    out = np.zeros_like(theirs)
    td.einsum("ij,jk->ik", ours, ours, out=out)
    assert out.tobytes() == (ours @ ours).tobytes()


# -- spellings of a name -------------------------------------------------------------


def spellings(name: str) -> set[str]:
    return {name, name.upper(), name.capitalize(), name.swapcase(), name.title()}


@each_name
def test_names_of_formats(name: str, capsys: Any) -> None:
    form = td.formats[SHORT.get(name, name)]
    assert getattr(td, name) is form.type
    assert name in td.__all__
    for text in spellings(name):
        assert td.formats[text] is find(text) is form
        assert find_dtype(text) == form.dtype
        assert td.quantize(1.0, text).dtype == form.dtype
        assert td.from_bits(np.zeros(1, f"u{form.itemsize}"), text).dtype == form.dtype
        assert main(["inspect", "1", "--format", text]) == 0
        assert form.name in capsys.readouterr().out
    block = td.blocks.quantize(np.ones(32), "MXFP4", scale_format="FLOAT8_E8M0FNU")
    assert block.format == "mxfp4"


def test_names_of_precisions() -> None:
    for mode in PRECISIONS:
        more = [mode.format] if mode.components == 1 else []
        more += [alias for alias, name in SHORT.items() if name in more]
        more += {"float16": ["fp16", "half"], "float32": ["fp32"]}.get(mode.format, [])
        for name in (mode.preset, mode.short, *more):
            assert all(find_precision(text) is mode for text in spellings(name)), name
    a = np.full((2, 2), 1.001, np.float32)
    with td.matmul_precision("Bf16"):
        assert (a @ a == td.matmul(a, a, precision="BFLOAT16")).all()
        assert (a @ a == 2).all()


@pytest.mark.parametrize(
    ("name", "full"),
    [("fp16", "float16"), ("HALF", "float16"), ("FP32", "float32"), ("f64", "float64")],
)
def test_names_of_numpys_floats(name: str, full: str, capsys: Any) -> None:
    assert find_dtype(name) == np.dtype(full)
    assert main(["inspect", "1", "--format", name]) == 0
    assert full in capsys.readouterr().out


def test_numpys_own_names_mean_what_they_meant() -> None:
    for text in (*"?bBhHiIlLqQefdgFDGSUVMmO", "f4", "<f8", "i4", "float", "M8[s]"):
        assert find_dtype(text) == np.dtype(text)
    fields = np.dtype([("a", td.bf16), ("b", "f4")])
    assert find_dtype(fields) is fields
    with pytest.raises(TypeError, match="bfloat61"):
        find_dtype("bfloat61")


@pytest.mark.parametrize("name", ALL)
def test_a_format_is_a_dtype(name: str) -> None:
    form = td.formats[name]
    assert np.dtype(form) == form.dtype
    assert np.ones(3).astype(form).dtype == np.zeros(2, form).dtype == form.dtype
    assert np.ones(2, form.dtype).view(form).dtype == form.dtype
    assert td.quantize(1.0, form).dtype == form.dtype
    assert pickle.loads(pickle.dumps(form)) == form
    assert len({form, *td.formats.values()}) == len(td.formats)
    with pytest.raises(AttributeError):
        form.bits = 3  # type: ignore[misc]


def test_what_is_no_format_is_not_among_them() -> None:
    for which in ("float32", "fp8", np.float32, np.dtype("i4"), None, 3, [1], ("q", 2)):
        assert which not in td.formats
        with pytest.raises(KeyError):
            td.formats[which]  # type: ignore[index]


# -- near misses ---------------------------------------------------------------------

CURES = {
    "fp8": ["fp8_e4m3", "fp8_e5m2"],
    "float8": ["fp8_e4m3", "fp8_e5m2"],
    "fp6": ["float6_e2m3fn", "float6_e3m2fn"],
    "float6": ["float6_e2m3fn", "float6_e3m2fn"],
    "float4": ["float4_e2m1fn"],
    "e4m3": ["float8_e4m3fn", "float8_e4m3"],
    "e5m2": ["float8_e5m2"],
    "fp8_e4m3fn": ["float8_e4m3fn"],
    "fp16": ["np.float16"],
    "float32": ["np.float32"],
    "mxfp4": ["td.blocks.quantize(x, 'mxfp4')"],
    "nvfp4": ["td.blocks.quantize(x, 'nvfp4')"],
    "tcfp8": ["td.blocks.quantize(x, 'tcfp8')"],
    "mxfp8": ["td.blocks.quantize(x, 'mxfp8_e4m3')", "'mxfp8_e5m2'"],
    "mxfp3": ["td.blocks.formats", "mxfp4"],
}


@pytest.mark.parametrize("name", CURES)
def test_near_misses_name_the_cure(name: str) -> None:
    for written in (name, name.upper()):
        check_cure(name, written)


def check_cure(name: str, written: str) -> None:
    with pytest.raises(AttributeError) as attribute:
        getattr(td, written)
    texts = [str(attribute.value)]
    is_numpys = "np." in CURES[name][0]  # NumPy's formats
    if is_numpys:
        assert td.quantize(1.0, written).dtype == getattr(np, CURES[name][0][3:])
    else:
        with pytest.raises(ValueError, match="dtype must be one of") as value:
            td.quantize(1.0, written)
        texts.append(str(value.value))
    for text in texts:
        assert repr(written) in text
        assert all(part in text for part in CURES[name]), text
    if is_numpys:
        return
    with pytest.raises(UserError) as command:
        facts(written)
    text = str(command.value)
    assert all(part in text for part in CURES[name]), text


@pytest.mark.parametrize(
    ("name", "kinds"),
    {
        "fp8": ("float8_e4m3fn", "float8_e5m2"),
        "float8": ("float8_e4m3fn", "float8_e5m2"),
        "FP6": ("float6_e2m3fn", "float6_e3m2fn"),
        "float6": ("float6_e2m3fn", "float6_e3m2fn"),
        "fp4": ("float4_e2m1fn",),
        "half": ("float16",),
        "mxfp8": ("mxfp8_e4m3",),
        "MXFP6": ("mxfp6_e2m3", "mxfp6_e3m2"),
        "nonsense": ("nonsense",),
    }.items(),
)
def test_what_a_name_may_mean(name: str, kinds: tuple[str, ...]) -> None:
    assert meanings(name) == kinds


@pytest.mark.parametrize(
    ("name", "near"),
    [("bf17", "bf16"), ("tf23", "tf32"), ("float8_e4m3fm", "float8_e4m3fn")],
)
def test_unknown_names_tell_the_nearest(name: str, near: str) -> None:
    for call in (lambda: td.formats[name], lambda: facts(name)):
        with pytest.raises(ValueError, match=rf"Did you mean .*\b{near}\b.*\?"):
            call()


def test_block_formats_are_those_of_the_table() -> None:
    assert tuple(td.blocks.formats) == BLOCK_FORMATS


def test_other_near_misses() -> None:
    with pytest.raises(ValueError, match=r"fp8_e4m3 .* fp8_e5m2"):
        td.matmul_precision("fp8")
    with pytest.raises(ValueError, match=r"td\.quantize\(x, 'bf16'\)"):
        td.blocks.quantize(np.ones(32), "bf16")
    with pytest.raises(AttributeError, match=r"'finfo'\. Use NumPy's np\.finfo$"):
        td.finfo  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        td.nonsense  # noqa: B018


def test_attributes_in_other_case() -> None:
    """Suggest every public name for other case and missing underscores."""
    for name in dir(td):
        for other in (name.upper(), name.title(), name.replace("_", "").upper()):
            if other not in dir(td) and not name.startswith("_"):
                with pytest.raises(AttributeError) as error:
                    getattr(td, other)
                near = str(error.value).partition("Did you mean td.")[2].rstrip("?")
                assert near.replace("_", "") == name.replace("_", "")


def test_modules_of_other_libraries_are_found():
    with pytest.raises(AttributeError, match=r"Use td\.interop\.gguf"):
        td.gguf  # noqa: B018
