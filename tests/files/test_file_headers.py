"""header="names" and "bits", structured arrays, memory maps, interrupted saves."""

import doctest
import io
import os
import zipfile

import numpy as np
import pytest

import tf32dtype as td
from tests.files.test_files import FORMATS, IDS, assert_same, random_array, variants
from tests.support.interpreters import python, run_code
from tf32dtype._files import arrays as _files
from tf32dtype._files import npy

each = pytest.mark.parametrize("form", FORMATS, ids=IDS)
both = pytest.mark.parametrize("header", ["bits", "names"])


def saved(array, **options):
    stream = io.BytesIO()
    td.save(stream, array, **options)
    return stream.getvalue()


@pytest.fixture
def ours():
    """Give NumPy this package's names, whatever another test has imported."""
    before = td.names()
    td.names("tf32dtype")
    yield
    td.names(before)


# -- names ---------------------------------------------------------------------------


@each
def test_names_are_numpys_too(form, tmp_path, ours):
    for i, array in enumerate(variants(form)):
        path = tmp_path / f"{i}.npy"
        td.save(path, array, header="names")
        assert_same(np.load(path), np.asarray(array))
        assert_same(td.load(path), np.asarray(array))
        assert_same(np.load(path, mmap_mode="r"), np.asarray(array))
        text = f"{{'descr': '{form.name}', 'fortran_order': ".encode()
        assert path.read_bytes()[10:].startswith(text)


@each
def test_numbers_lie_alike(form):
    array = random_array(form, (7, 3))
    items = np.frombuffer(array.tobytes(), f"u{form.itemsize}")
    bits, names = (saved(array, header=header) for header in ("bits", "names"))
    assert bits == saved(array)
    assert len(bits) == len(names)
    assert bits[128:] == names[128:] == items.astype(f"<u{form.itemsize}").tobytes()


@both
def test_unused_bits_are_zeros(header):
    for name in ("tf32", "float6_e2m3fn", "float4_e2m1fn"):
        form = td.formats[name]
        dirty = np.random.default_rng(1).integers(0, 256, 400, np.uint8)
        array = dirty.view(f"u{form.itemsize}").view(form.dtype)
        assert saved(array, header=header)[128:] == td.bits(array).tobytes()


@both
def test_many_chunks(monkeypatch, header):
    monkeypatch.setattr(npy, "_CHUNK_BYTES", 64)
    whole = random_array(td.formats["bfloat16"], (50, 7))
    for array in (whole, whole[::-2, ::3], whole.T):
        assert_same(td.load(io.BytesIO(saved(array, header=header))), array)


def test_whose_the_name_is(tmp_path):
    pytest.importorskip("ml_dtypes")
    path = tmp_path / "a.npy"
    td.save(path, np.array([1.5], td.bfloat16), header="names")
    program = f"""
import numpy as np, tf32dtype as td, ml_dtypes
for mode in (None, "r"):
    print(np.load({str(path)!r}, mode).dtype.type.__module__.split(".")[0])
    print(td.load({str(path)!r}, mmap_mode=mode).dtype == td.bfloat16)
"""
    assert run_code(program).split() == ["ml_dtypes", "True"] * 2


def test_readers_without_this_package(tmp_path):
    """Show why "bits" is the default: readers without this package need it."""
    for header in ("bits", "names"):
        td.save(tmp_path / header, np.array([1.5], td.bfloat16), header=header)
    program = """
import sys, numpy as np
print(np.load("bits.npy"))
assert "tf32dtype" not in sys.modules
np.load("names.npy")
"""
    done = python("-c", program, cwd=tmp_path)
    assert done.stdout.strip() == "[16320]"
    assert "descr is not a valid dtype descriptor: 'bfloat16'" in done.stderr


@pytest.mark.parametrize("header", ["bits", "names", None])
def test_header_changes_nothing_else(header, ours):
    plain = np.linspace(0, 1, 5)
    assert saved(plain, header=header) == saved(plain)
    blocks = td.blocks.quantize(np.arange(64), "nvfp4")
    assert saved(blocks, header=header) == saved(blocks)


@pytest.mark.parametrize("header", ["name", "", 1, np.ones(3), True])
def test_unknown_headers(header, tmp_path):
    for save in (td.save, td.savez, td.savez_compressed):
        with pytest.raises(ValueError, match="header must be 'bits' or 'names'"):
            save(tmp_path / "a", np.ones(2, td.tf32), header=header)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_not_known(tmp_path):
    raw = saved(np.ones(2, td.bfloat16), header="names").replace(
        b"bfloat16", b"bfloat17"
    )
    with pytest.raises(
        ValueError, match=r"the file does not have a valid header: .*bfloat17"
    ):
        td.load(io.BytesIO(raw))


# -- memory maps -----------------------------------------------------------------------


@each
@both
def test_memory_maps(form, header, tmp_path):
    array = random_array(form, (30, 3))
    path = tmp_path / "a.npy"
    td.save(path, array, header=header)
    before = path.read_bytes()
    one = np.ones((), form.dtype)
    for mode in ("r", "c", "r+"):
        mapped = td.load(path, mmap_mode=mode)
        assert isinstance(mapped, np.memmap)
        assert_same(mapped, array)
        if mode == "r":
            with pytest.raises(ValueError, match="read-only"):
                mapped[0] = one
            continue
        mapped[0] = one
        mapped.flush()
        assert_same(mapped[0], np.broadcast_to(one, 3))
        assert (path.read_bytes() == before) == (mode == "c")
        del mapped
    assert_same(td.load(path)[0], np.broadcast_to(one, 3))


@both
def test_memory_maps_of_all_layouts(header, tmp_path):
    for form in FORMATS[::4]:
        for i, array in enumerate(variants(form)):
            path = tmp_path / f"{form.name}{i}.npy"
            td.save(path, array, header=header)
            assert_same(td.load(path, mmap_mode="r"), np.asarray(array))


@pytest.mark.parametrize("mode", ["w+", "w", "a", 3, np.ones(2), ""])
def test_modes_that_would_lose_the_file(mode, tmp_path):
    path = tmp_path / "a.npy"
    td.save(path, np.ones(3, td.bf16))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="mmap_mode must be"):
        td.load(path, mmap_mode=mode)
    assert path.read_bytes() == before


# -- structured arrays -----------------------------------------------------------------


STRUCTURES = {
    "fields": [("x", "tf32"), ("n", ">i4"), ("y", "bfloat16"), ("t", "M8[s]")],
    "bytes": [("x", "float8_e4m3fn"), ("y", "float4_e2m1fn"), ("z", "float6_e3m2fn")],
    "subarray": [("x", "bfloat16", (2, 3)), ("s", "S3"), ("u", "U2", 2)],
    "nested": [("a", [("b", "tf32"), ("c", [("d", "float8_e5m2", 2)], 3)]), ("e", "?")],
    "title": [(("a title", "x"), "bfloat16"), ("y", "f8")],
    "letters": [("\u00e4\u03b1", "bfloat16"), ("it's", "float8_e8m0fnu")],
    "ours alone": [("x", "bfloat16")],
}


def dtype_of(fields, align=False):
    """Return a structured dtype with the package's own dtypes for our names."""
    found = []
    for label, item, *shape in fields:
        if isinstance(item, list):
            item = dtype_of(item, align)
        else:
            item = td.formats[item].dtype if item in td.formats else np.dtype(item)
        found.append((label, item, *shape))
    return np.dtype(found, align=align)


def filled(dtype, shape=(5,)):
    """Return an array of random items; a bool has the bytes 0 and 1."""
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.random.default_rng(3).integers(0, 2, count, np.uint8) * 3
    array = raw.view(dtype).reshape(shape)
    if "e" in (dtype.names or ()):
        array["e"] = True
    return array


def assert_same_fields(got, want):
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.names is not None:
        assert got.dtype.fields.keys() == want.dtype.fields.keys()  # titles, too
        for name in want.dtype.names:
            assert_same_fields(got[name], want[name])
    elif want.dtype in [form.dtype for form in FORMATS]:
        assert_same(got, want)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_structured_arrays(kind, align, tmp_path, ours):
    path = tmp_path / "a.npy"
    whole = filled(dtype_of(STRUCTURES[kind], align), (5, 3))
    for array in (whole, whole[::2, ::-1], whole.T, whole[:0], whole[0, 0, ...]):
        for options in ({}, {"header": "names"}):
            td.save(path, array, **options)
            for mode in (None, "r"):
                assert_same_fields(td.load(path, mmap_mode=mode), array)
                assert_same_fields(np.load(path, mode), array)
    td.savez_compressed(tmp_path / "b", whole, a=whole)
    with td.load(tmp_path / "b.npz") as archive:
        assert_same_fields(archive["a"], whole)


def test_the_header_of_a_structure():
    raw = saved(np.zeros(2, dtype_of([("x", "bfloat16", 2), ("n", ">i4")])))
    text = (
        b"{'descr': [('x', 'bfloat16', (2,)), ('n', '>i4')], 'fortran_order': False, "
    )
    assert raw[10:].startswith(text + b"'shape': (2,), } ")


def test_unused_bits_of_fields_are_zeros():
    array = np.zeros(4, dtype_of([("a", "u1"), ("x", "float4_e2m1fn", 3)]))
    array["x"].view(np.uint8)[...] = 0xF3
    raw = saved(array)
    assert raw[-16:] == b"\0\x03\x03\x03" * 4
    assert (array["x"].view(np.uint8) == 0xF3).all()


def test_structures_of_ml_dtypes(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    fields = [("x", "bfloat16", 2), ("y", "float8_e4m3fn"), ("n", "i4")]
    own = filled(dtype_of(fields, align=True))
    kinds = [(n, getattr(ml_dtypes, t, t), *s) for n, t, *s in fields]
    theirs = own.view(np.dtype(kinds, align=True))
    assert saved(theirs) == saved(own)
    assert_same_fields(td.load(io.BytesIO(saved(theirs))), own)  # names of ml_dtypes


OVERLAPPING = {"names": ["a", "b"], "formats": [td.tf32, td.tf32], "offsets": [0, 2]}
MANY = [(f"a long name of field {i}", td.bfloat16) for i in range(400)]


@pytest.mark.parametrize(
    ("dtype", "options", "error", "words"),
    [
        ([("x", td.tf32)], {"header": "bits"}, TypeError, "header='names'"),
        (OVERLAPPING, {}, ValueError, "overlapping or out-of-order"),
        (MANY, {}, ValueError, "header of .* at most 10000 characters; got 1"),
    ],
    ids=["bits", "overlapping", "many"],
)
def test_structures_that_a_file_cannot_hold(dtype, options, error, words, tmp_path):
    array = np.zeros(2, np.dtype(dtype))
    for save in (td.save, td.savez, td.savez_compressed):
        with pytest.raises(error, match=words):
            save(tmp_path / "a", array, **options)
    assert not list(tmp_path.iterdir())


def test_headers_are_read_up_to_the_length_that_is_written(tmp_path):
    fields = [(f"{i:020}", td.bfloat16) for i in range(259)]
    for length in range(1, 200):  # of the last field's name
        array = np.zeros(1, [*fields, ("n" * length, td.bfloat16)])
        try:
            raw = saved(array)
        except ValueError:
            break
        assert td.load(io.BytesIO(raw)).dtype == array.dtype
    assert 1 < length < 199


# -- archives, and interrupted saves ---------------------------------------------------


@both
@pytest.mark.parametrize("save", [td.savez, td.savez_compressed])
def test_archives(save, header, tmp_path, ours):
    arrays = {name: random_array(f, (40, 4)) for name, f in td.formats.items()}
    save(tmp_path / "a", np.zeros(9999), header=header, **arrays)
    with zipfile.ZipFile(tmp_path / "a.npz") as members:
        kinds = {info.compress_type for info in members.infolist()}
    is_compressed = save is td.savez_compressed
    assert kinds == {zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED}
    with td.load(tmp_path / "a.npz") as found, np.load(tmp_path / "a.npz") as numpys:
        assert found.files == ["arr_0", *arrays]
        for name, array in arrays.items():
            assert_same(found[name], array)
            stock = array if header == "names" else td.bits(array)
            assert numpys[name].dtype == stock.dtype
            assert numpys[name].tobytes() == stock.tobytes()
    assert (os.path.getsize(tmp_path / "a.npz") < 9999) == is_compressed


def write_nothing(*_):
    raise OSError("no space left")


@pytest.mark.parametrize("save", [td.save, td.savez, td.savez_compressed])
def test_an_old_file_stays_if_writing_fails(save, tmp_path, monkeypatch):
    path = tmp_path / ("a.npy" if save is td.save else "a.npz")
    save(path, np.ones(5, td.tf32))
    before = path.read_bytes()
    monkeypatch.setattr(npy, "_put", write_nothing)
    with pytest.raises(OSError, match="no space left"):
        save(path, np.zeros(500, td.tf32))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@both
def test_a_map_saved_over_its_own_file(header, tmp_path):
    path = tmp_path / "a.npy"
    array = random_array(td.formats["bfloat16"], 5000)
    td.save(path, array, header=header)
    td.save(path, td.load(path, mmap_mode="r")[::-1], header=header)
    assert_same(td.load(path), array[::-1])


def test_what_cannot_be_opened_is_named(tmp_path):
    path = tmp_path / "missing" / "a.npy"
    with pytest.raises(FileNotFoundError) as caught:
        td.save(path, np.ones(2, td.tf32))
    assert caught.value.filename == str(path)


def test_examples(ours):
    results = doctest.testmod(_files)
    assert results.attempted >= 4
    assert results.failed == 0
