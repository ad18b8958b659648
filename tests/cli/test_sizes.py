"""`tf32dtype sizes`: bytes of a number of elements in every format."""

import pytest

import tf32dtype as td
from tests.blocks.arrays import BITS
from tests.support.command_line import ALL, complaint, plain, report


def sizes(capsys, *argv):
    found = report(capsys, "sizes", *argv)
    return found["parameters"], {row["format"]: row for row in found["formats"]}


def test_seven_thousand_million(capsys):
    lines = plain(capsys, "sizes", "--parameters", "7e9").splitlines()
    gib = {line.split()[0]: line.split()[4] for line in lines[3:]}
    published = {
        "float32": "26.1",
        "bfloat16": "13.0",
        "tcfp16": "13.4",
        "tcfp12": "10.2",
        "float8_e4m3fn": "6.5",
        "tcfp8": "6.7",
    }
    assert {name: gib[name] for name in published} == published


def test_every_format_is_there(capsys):
    count, rows = sizes(capsys, "--parameters", "1024e3")
    assert count == 1024000
    assert list(rows) == [*ALL, *BITS]
    for name, form in td.formats.items():
        assert rows[name]["bytes"] == count * form.itemsize
        assert rows[name]["block_size"] is None
    for name, bits in BITS.items():
        assert rows[name]["bits_per_value"] == bits
        assert rows[name]["bytes"] == count * bits / 8
        assert rows[name]["gib"] == rows[name]["bytes"] / 2**30
        assert rows[name]["block_size"] == (16 if name == "nvfp4" else 32)


@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_block_sizes(size, capsys):
    _, rows = sizes(capsys, "--parameters", "1280", "--block-size", str(size))
    assert rows["tcfp8"]["bytes"] == 1280 + 1280 // size
    assert rows["tcfp12"]["bytes"] == 1920 + 2 * (1280 // size)
    assert rows["nvfp4"]["bytes"] == 640 + 1280 // size
    assert rows["int12"]["bytes"] == 1920 + 1280 // size
    assert {rows[name]["block_size"] for name in BITS} == {size}
    assert rows["bfloat16"]["bytes"] == 2560


def test_the_last_block_is_filled_up(capsys):
    _, rows = sizes(capsys, "--parameters", "33")
    assert rows["tcfp8"]["bytes"] == 2 * 33
    assert rows["mxfp6_e2m3"]["bytes"] == 2 * 25
    assert rows["nvfp4"]["bytes"] == 3 * 9
    assert rows["float32"]["bytes"] == 4 * 33


@pytest.mark.parametrize("name", ["tcfp8", "mxfp6_e3m2", "int12", "nvfp4", "tcfp16"])
@pytest.mark.parametrize("size", [16, 128])
def test_arrays_have_that_size(name, size, capsys):
    argv = ("--parameters", "1000", "--block-size", str(size))
    row = sizes(capsys, *argv)[1][name]
    array = td.blocks.quantize([1.0] * 1000, name, block_size=size)
    tensor = 4 if array.scale_format != "float8_e8m0fnu" else 0
    assert array.nbytes - tensor == row["bytes"]


@pytest.mark.parametrize("count", ["0", "-5", "1.5", "7x", "inf", "nan", "1e19", ""])
def test_wrong_counts(count, capsys):
    error = complaint(capsys, "sizes", "--parameters", count)
    assert "COUNT must be an integer from 1 to 1e18" in error


@pytest.mark.parametrize("size", ["8", "33", "x"])
def test_wrong_block_sizes(size, capsys):
    error = complaint(capsys, "sizes", "--parameters", "1", "--block-size", size)
    assert f"--block-size must be one of 16, 32, 64, 128; got {size}" in error


def test_a_count_is_needed(capsys):
    assert "tf32dtype sizes 7B" in complaint(capsys, "sizes")


@pytest.mark.parametrize(
    ("text", "count"),
    [("7B", 7 * 10**9), ("124m", 124 * 10**6), ("1.5T", 15 * 10**11), ("8k", 8000)],
)
def test_counts_as_models_have_them(text, count, capsys):
    for argv in ([text], ["--parameters", text]):
        assert sizes(capsys, *argv)[0] == count


@pytest.mark.parametrize("text", ["B", "7BB", "7GB", "1.0005K", "7 B x", "-1B", "infB"])
def test_what_is_no_count(text, capsys):
    assert "COUNT must be an integer from 1 to 1e18" in complaint(capsys, "sizes", text)


def test_one_count(capsys):
    assert "COUNT must be given once; got 2" in complaint(
        capsys, "sizes", "1", "--parameters", "1"
    )
