"""td.save, td.savez and td.load: bits and formats survive, NumPy reads the files."""

import gzip
import io
import pickle
import re
import zipfile

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._files import file_kinds
from tf32dtype._files import npy as headers

FORMATS = list(td.formats.values())
IDS = list(td.formats)


def random_array(form, shape, seed=0):
    """Return random codes of any kind, including NaN with payloads."""
    unused = 13 if form.name == "tf32" else 0
    codes = np.random.default_rng(seed).integers(0, 1 << form.bits, shape) << unused
    return td.from_bits(codes.astype(f"u{form.itemsize}"), form.dtype)


def assert_same(got, want):
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(td.bits(got), td.bits(want))


def variants(form):
    a = random_array(form, (6, 5, 4))
    yield from (a, a[0, 0, 0], a[:0], a[:, :0], a[0], a.reshape(-1, 1))
    yield from (a.T, a[::2, ::-1, 1::2], a.transpose(1, 0, 2), np.asfortranarray(a))
    yield np.broadcast_to(a[0, 0], (3, 4))


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
def test_round_trip(form, tmp_path):
    for i, array in enumerate(variants(form)):
        path = tmp_path / f"{i}.npy"
        td.save(path, array)
        assert_same(td.load(path), np.asarray(array))


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
def test_numpy_opens_them_as_unsigned_integers(form, tmp_path):
    for i, array in enumerate(variants(form)):
        path = tmp_path / f"{i}.npy"
        td.save(path, array)
        codes = np.load(path)
        assert codes.dtype == np.dtype(f"<u{form.itemsize}")
        np.testing.assert_array_equal(codes, td.bits(np.asarray(array)))
        mapped = np.lib.format.open_memmap(path) if array.size else codes
        np.testing.assert_array_equal(mapped, codes)


def test_the_header_is_the_documented_one(tmp_path):
    path = tmp_path / "a.npy"
    td.save(path, np.zeros(3, td.bfloat16))
    raw = path.read_bytes()
    text = b"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    assert raw[10:].startswith(text + b" # tf32dtype: bfloat16 ")
    assert len(raw) == 128 + 3 * 2
    assert raw[127:128] == b"\n"


def test_fortran_order_is_kept():
    stream = io.BytesIO()
    array = np.asfortranarray(random_array(td.formats["tf32"], (5, 7)))
    td.save(stream, array)
    stream.seek(0)
    assert td.load(stream).flags.f_contiguous


@pytest.mark.parametrize("name", ["tf32", "float6_e2m3fn", "float4_e2m1fn"])
def test_unused_bits_are_written_as_zeros(name, tmp_path):
    form = td.formats[name]
    dirty = np.random.default_rng(1).integers(0, 256, 4000, np.uint8)
    array = dirty.view(f"u{form.itemsize}").view(form.dtype)
    td.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), td.bits(array))
    assert (np.load(tmp_path / "a.npy") != array.view(f"u{form.itemsize}")).any()


@pytest.mark.parametrize("step", [1, 3, -1])
def test_many_chunks(monkeypatch, step):
    monkeypatch.setattr(headers, "_CHUNK_BYTES", 64)
    array = random_array(td.formats["tf32"], 1000)[::step]
    stream = io.BytesIO()
    td.save(stream, array)
    stream.seek(0)
    assert_same(td.load(stream), array)


def test_paths_get_a_suffix(tmp_path):
    td.save(str(tmp_path / "a"), np.ones(2, td.tf32))
    td.savez(tmp_path / "b", x=np.ones(2, td.tf32))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "b.npz"]


def test_several_arrays_in_one_stream():
    first = random_array(td.formats["bfloat16"], 10)
    second = np.arange(4.0)
    third = random_array(td.formats["float8_e5m2"], (2, 2))
    stream = io.BytesIO()
    for array in (first, second, third):
        td.save(stream, array)
    stream.seek(0)
    assert_same(td.load(stream), first)
    np.testing.assert_array_equal(td.load(stream), second)
    assert_same(td.load(stream), third)


@pytest.mark.parametrize("dtype", ["<f4", ">i8", "c16", "U3", "M8[s]", "f4,u1"])
def test_numpys_dtypes_are_written_as_numpy_does(dtype):
    array = np.zeros((2, 3), dtype)
    ours, theirs = io.BytesIO(), io.BytesIO()
    td.save(ours, array)
    np.save(theirs, array)
    assert ours.getvalue() == theirs.getvalue()
    ours.seek(0)
    loaded = td.load(ours)
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)


def test_sequences_and_scalars_are_arrays():
    stream = io.BytesIO()
    td.save(stream, [td.tf32(1.5), td.tf32(2)])
    td.save(stream, td.bfloat16(3))
    stream.seek(0)
    assert_same(td.load(stream), np.array([1.5, 2], td.tf32))
    assert_same(td.load(stream), np.array(3, td.bfloat16))


def test_archive(tmp_path):
    arrays = {name: random_array(f, (3, 4)) for name, f in td.formats.items()}
    plain = np.linspace(0, 1, 5)
    td.savez(tmp_path / "a.npz", plain, **arrays)
    with td.load(tmp_path / "a.npz") as archive:
        assert list(archive) == archive.files == ["arr_0", *arrays]
        assert len(archive) == 14
        assert "tf32" in archive
        assert "tf33" not in archive
        for name, array in arrays.items():
            assert_same(archive[name], array)
        np.testing.assert_array_equal(archive["arr_0"], plain)
        with pytest.raises(KeyError, match="tf33"):
            archive["tf33"]
    with np.load(tmp_path / "a.npz") as stock:
        np.testing.assert_array_equal(stock["tf32"], td.bits(arrays["tf32"]))


def test_archive_in_a_stream_and_of_numpy():
    stream = io.BytesIO()
    np.savez(stream, x=np.arange(3))
    stream.seek(0)
    np.testing.assert_array_equal(td.load(stream)["x"], np.arange(3))


def test_archive_members_that_are_no_arrays():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("note.txt", "words")
    stream.seek(0)
    assert td.load(stream)["note.txt"] == b"words"


def test_archive_names_must_differ(tmp_path):
    with pytest.raises(ValueError, match="arr_0"):
        td.savez(tmp_path / "a.npz", np.ones(1), arr_0=np.ones(1))
    assert not list(tmp_path.iterdir())


def test_memory_map(tmp_path):
    array = random_array(td.formats["bfloat16"], (50, 3))
    td.save(tmp_path / "a.npy", array)
    mapped = td.load(tmp_path / "a.npy", mmap_mode="r+")
    assert isinstance(mapped, np.memmap)
    assert_same(mapped, array)
    mapped[0] = 2
    mapped.flush()
    assert_same(td.load(tmp_path / "a.npy")[0], np.full(3, 2, td.bfloat16))


def test_without_a_name_a_file_is_what_numpy_reads():
    stream = io.BytesIO()
    np.save(stream, np.arange(5, dtype=np.uint16))
    stream.seek(0)
    assert td.load(stream).dtype == np.uint16


def test_a_field_cannot_pass_for_a_name():
    array = np.zeros(2, [("} # tf32dtype: bfloat16", "u2")])
    stream = io.BytesIO()
    td.save(stream, array)
    stream.seek(0)
    assert td.load(stream).dtype == array.dtype


@pytest.mark.parametrize("version", [(2, 0), (3, 0)])
def test_longer_headers_are_read_too(version):
    text = b"{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }"
    text += b" # tf32dtype: bfloat16\n"
    raw = np.lib.format.magic(*version) + len(text).to_bytes(4, "little") + text
    loaded = td.load(io.BytesIO(raw + b"\x80\x3f"))
    assert_same(loaded, np.array([1], td.bfloat16))


def edited(old, new):
    stream = io.BytesIO()
    td.save(stream, np.ones(3, td.bfloat16))
    return io.BytesIO(stream.getvalue().replace(old, new))


def test_unknown_format():
    with pytest.raises(ValueError, match=r"bfloat17.*bfloat16"):
        td.load(edited(b"bfloat16", b"bfloat17"))


def test_format_of_another_size():
    with pytest.raises(ValueError, match=r"tf32.*4 bytes.*uint16"):
        td.load(edited(b"bfloat16", b"tf32    "))


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


SAFETENSORS = b'{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
SAFETENSORS = len(SAFETENSORS).to_bytes(8, "little") + SAFETENSORS + bytes(4)
OBJECTS = npy(np.array([1, None]), allow_pickle=True)
NOT_OURS = {
    "empty": (b"", "is empty"),
    "a letter": (b"\x93NUMPY", "not have a valid header"),
    "half a header": (b"\x93NUMPY\x01\x00\x05", "not have a valid header"),
    "no dictionary": (
        npy(np.ones(3)).replace(b"{", b"(", 1),
        "not have a valid header",
    ),
    "a shape of bools": (
        npy(np.ones(1)).replace(b"(1,)", b"(True,)"),
        "not have a valid header",
    ),
    "another version": (
        b"\x93NUMPY\x09" + npy(np.ones(3))[7:],
        "not have a valid header",
    ),
    "cut short": (
        npy(np.ones(9))[:-8],
        r"72 bytes \(float64, shape \(9,\)\); got 64",
    ),
    "objects": (
        OBJECTS,
        r"np\.load\(file, allow_pickle=True\) reads the file and runs",
    ),
    "pickle": (
        pickle.dumps({"a": 1}),
        r"got a pickle; pickle\.load reads the file and",
    ),
    "safetensors": (SAFETENSORS, r"td\.safetensors\.load"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(99), r"td\.hdf5\.load"),
    "GGUF": (b"GGUF\x03" + bytes(99), r"td\.interop\.gguf\.load"),
    "gzip": (gzip.compress(npy(np.ones(3))), "gzip -d"),
    "text": (b"1,2,3\n4,5,6\n", r"got text, '1,2,3\\n4,5,6\\n'.*np\.loadtxt"),
    "long text": (("\u00e4" * 600).encode(), "got text"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(99), r"begins with b'\\x89PNG"),
    "PyTorch": (archive(**{"m__data.pkl": "x"}), r"torch\.load\(file"),
    "a cut archive": (archive(a="1")[:-9], "not a valid archive"),
}


@pytest.mark.parametrize("kind", NOT_OURS)
def test_what_is_no_array_file(kind, tmp_path):
    """Name the kind of file and how to read it, but no argument of td.load."""
    raw, words = NOT_OURS[kind]
    path = tmp_path / "weights.bin"
    path.write_bytes(raw)
    for file, mmap_mode in ((io.BytesIO(raw), None), (path, None), (path, "r")):
        with pytest.raises((ValueError, EOFError), match=words) as caught:
            td.load(file, mmap_mode=mmap_mode)
        said = str(caught.value)
        assert said.startswith("the file" if file is not path else str(path))
        assert "allow_pickle" not in said or "np.load(file, allow_pickle" in said
        assert len(said) < 400


def test_what_is_no_member_of_an_archive(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones(3), b=np.array([1, None]))
    with td.load(path) as archive:
        with pytest.raises(ValueError, match=r"b in .*a\.npz holds pickled Python"):
            archive["b"]
        with pytest.raises(KeyError, match=r"files.* of .*a\.npz; .* use a or b"):
            archive["c"]
    raw = bytearray(path.read_bytes())
    raw[150] ^= 1  # in the data of a
    with pytest.raises(ValueError, match="a in the file is not a valid archive"):
        td.load(io.BytesIO(bytes(raw)))["a"]


def test_what_is_no_file(tmp_path):
    with pytest.raises(TypeError, match="path or a binary file; got an array"):
        td.load(np.ones(3))
    (tmp_path / "a.csv").write_text("1,2")
    with (
        open(tmp_path / "a.csv") as stream,
        pytest.raises(TypeError, match="must be open in binary mode"),
    ):
        td.load(stream)


@pytest.mark.parametrize(
    ("array", "error", "advice"),
    [
        (np.ma.masked_invalid(np.ones(2, td.tf32)), TypeError, r"mask=a\.mask"),
        (np.array([1, None], object), ValueError, "pickle"),
    ],
    ids=["masked", "object"],
)
def test_what_a_file_would_not_give_back(array, error, advice, tmp_path):
    with pytest.raises(error, match=advice):
        td.save(tmp_path / "a.npy", array)
    with pytest.raises(error, match=advice):
        td.savez(tmp_path / "a.npz", np.ones(2), array)
    assert not list(tmp_path.iterdir())


def test_objects_are_never_unpickled():
    stream = io.BytesIO()
    np.save(stream, np.array([1, None]), allow_pickle=True)
    stream.seek(0)
    with pytest.raises(ValueError, match="allow_pickle"):
        td.load(stream)


def test_ml_dtypes_arrays_are_saved_under_their_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    stream = io.BytesIO()
    td.save(stream, np.array([1.5, -2], ml_dtypes.float8_e4m3fn))
    stream.seek(0)
    assert_same(td.load(stream), np.array([1.5, -2], td.float8_e4m3fn))


def test_other_custom_dtypes_are_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(TypeError, match=r"int4.*uint8"):
        td.save(io.BytesIO(), np.ones(2, ml_dtypes.int4))


@pytest.mark.skipif(
    not hasattr(np.dtypes, "register_dlpack_dtype"), reason="NumPy 2.5 has it"
)
def test_dlpack():
    for name, form in td.formats.items():
        a = np.arange(6).astype(form.dtype)
        if name == "tf32" or form.bits < 8:
            with pytest.raises(BufferError):
                a.__dlpack__()
        else:
            found = np.from_dlpack(a)
            assert found.dtype == form.dtype
            assert np.shares_memory(found, a)
            assert found.tobytes() == a.tobytes()


# -- names of other kinds of files ----------------------------------------------------

WRITERS = {
    "td.save": (lambda path: td.save(path, np.ones(2)), [".npy"]),
    "td.savez": (lambda path: td.savez(path, np.ones(2)), [".npz"]),
    "td.savez_compressed": (lambda path: td.savez_compressed(path, a=1), [".npz"]),
    "td.safetensors.save": (
        lambda path: td.safetensors.save(path, {"a": np.ones(2)}),
        [".safetensors"],
    ),
    "td.hdf5.save": (
        lambda path: td.hdf5.save(path, {"a": np.ones(2)}),
        [".h5", ".hdf5"],
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_names_of_other_kinds_are_errors(writer, tmp_path):
    if writer == "td.hdf5.save":
        pytest.importorskip("h5py")
    write, own = WRITERS[writer]
    for suffix, (what, cure) in file_kinds._SUFFIXES.items():
        for name in (f"a{suffix}", f"b.c{suffix.upper()}"):
            path = tmp_path / name
            if suffix in own:
                write(path)
                continue
            with pytest.raises(ValueError, match=re.escape(f"{name}. Use {cure}")):
                write(path)
            with pytest.raises(
                ValueError, match=re.escape(f"cannot write {what};")
            ) as caught:
                write(str(path))
            assert cure in str(caught.value)
    assert {x.suffixes[-1].lower() for x in tmp_path.iterdir()} <= {*own, ".npy"}
    before = len([*tmp_path.iterdir()])
    write(tmp_path / "d.other")
    assert len([*tmp_path.iterdir()]) == before + 1


def test_sizes_of_shards_are_integers(tmp_path):
    for size in (True, False, np.True_, 0, -1, 1.5, "x", None):
        path = tmp_path / "a.safetensors"
        if size is None:
            td.safetensors.save(path, {"a": np.ones(2)}, max_shard_size=size)
            continue
        with pytest.raises(ValueError, match="max_shard_size must"):
            td.safetensors.save(path, {"a": np.ones(2)}, max_shard_size=size)
        assert not path.exists()


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
def test_raw_items_are_told_where_they_are_read(form, tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3, form.dtype))
    np.savez(tmp_path / "a.npz", a=np.ones(3, form.dtype))
    for read in (
        lambda: td.load(tmp_path / "a.npy"),
        lambda: td.load(tmp_path / "a.npz")["a"],
    ):
        with pytest.warns(UserWarning, match=r"array\.view\(td\.") as caught:
            assert read().view(form.dtype).dtype == form.dtype
        # The garbage collector may warn of files of other tests during the call.
        lines = {x.filename for x in caught if x.category is UserWarning}
        assert lines == {__file__}
