"""`tf32dtype inspect` of numbers in block formats, compared with `td.blocks`."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import complaint, plain, report

pytestmark = pytest.mark.once

TYPED = ["1", "2.2", "-3.4", "1/3", "0", "100"]
X = np.array([1, 2.2, -3.4, 1 / 3, 0, 100])
RULES = ("amax", "floor", "even", "nf", "mse")


@pytest.mark.parametrize("name", td.blocks.formats)
def test_scales_codes_and_values(name, capsys):
    found = report(capsys, "inspect", *TYPED, "--format", name)
    row = td.blocks.formats[name]
    rules = [*RULES, "published"] if name.startswith("tcfp") else [*RULES]
    assert [each["rule"] for each in found["rules"]] == rules
    assert found["rule"] == row.scale
    for each in found["rules"]:
        block = td.blocks.quantize(X, name, scale=each["rule"])
        assert each["chosen"] == (each["rule"] == row.scale)
        assert int(each["code"], 16) == int(each["bits"], 2) == block.scales.flat[0]
        assert each["scale"] == block.block_scales.flat[0]
        assert each["scale_format"] == block.scale_format
        loss = block.dequantize(np.float64) - X
        assert each["max_error"] == pytest.approx(np.abs(loss).max(), rel=1e-12)
        rms = np.sqrt((loss * loss).mean())
        assert each["rms_error"] == pytest.approx(rms, rel=1e-12)
    block = td.blocks.quantize(X, name)
    values = block.dequantize(np.float64)
    assert [each["input"] for each in found["values"]] == TYPED
    assert [each["value"] for each in found["values"]] == values.tolist()
    elements = [each["element"]["value"] for each in found["values"]]
    unit = 2.0**-6 if name == "mxint8" else 1
    assert elements == (block.elements.astype(np.float64) * unit).tolist()
    (chosen,) = [each for each in found["rules"] if each["chosen"]]
    for each, value in zip(found["values"], values, strict=True):
        whole = chosen["scale"] * each["element"]["value"]
        if row.residual:
            whole += chosen["residual_unit"] * each["residual"]["value"]
        assert value == whole


def test_codes_are_packed_ones(capsys):
    found = report(capsys, "inspect", *TYPED, "--format", "mxfp4")
    packed = td.blocks.quantize(X, "mxfp4").codes.reshape(-1)
    codes = [int(each["element"]["code"], 16) for each in found["values"]]
    bytes_ = [codes[i] + 16 * codes[i + 1] for i in range(0, 6, 2)]
    assert bytes_ == packed[:3].tolist()
    integers = report(capsys, "inspect", *TYPED, "--format", "int12")["values"]
    elements = td.blocks.quantize(X, "int12").elements
    assert [int(each["element"]["code"], 16) for each in integers] == [
        int(x) & 0xFFF for x in elements
    ]


def test_the_rule_and_the_size(capsys):
    argv = ("--format", "nvfp4", "--scale", "mse", "--block-size", "32")
    found = report(capsys, "inspect", *20 * ["0.7"], "3", *argv)
    block = td.blocks.quantize([*20 * [0.7], 3], "nvfp4", scale="mse", block_size=32)
    values = [each["value"] for each in found["values"]]
    assert values == block.dequantize(np.float64).tolist()
    assert found["block_size"] == 32


def test_names(capsys):
    assert report(capsys, "inspect", "1", "--format", "mxfp8")["format"] == "mxfp8_e4m3"
    both = report(capsys, "inspect", "1", "--format", "mxfp6")
    assert [each["format"] for each in both] == ["mxfp6_e2m3", "mxfp6_e3m2"]
    assert td.blocks.formats["mxfp8"] is td.blocks.formats["mxfp8_e4m3"]
    assert "MXFP8" in td.blocks.formats
    assert td.blocks.quantize(X, "mxfp8").format == "mxfp8_e4m3"
    with pytest.raises(ValueError, match="Did you mean mxfp6_e2m3 or mxfp6_e3m2"):
        td.blocks.quantize(X, "mxfp6")


def test_a_block_as_text(capsys):
    lines = plain(capsys, "inspect", *TYPED, "--format", "mxfp4").splitlines()
    floor = next(line for line in lines if line.startswith("floor *"))
    assert floor.split()[2:6] == ["16", "0x83", "10000011", "float8_e8m0fnu"]
    last = lines[-1].split()
    assert last == ["100", "0x07", "0", "11", "1", "6", "96", "-4", "-0.04", "rounded"]


OUTCOMES = {
    ("mxfp4", "floor"): {
        "0": "exact", "-6": "exact", "1.06": "rounded", "0.5": "exact, subnormal",
        "0.3": "rounded, subnormal", "0.25": "underflow to zero", "6.9": "rounded",
        "7.5": "saturated",
    },
    ("mxfp8", "floor"): {"463": "rounded", "464": "rounded", "464.1": "saturated"},
    ("mxint8", "floor"): {"1.98828125": "rounded", "1.9921875": "saturated"},
    ("tcfp8", "amax"): {"1": "exact", "0.7": "rounded", "1e-9": "underflow to zero"},
    ("mxfp6_e2m3", "amax"): {"1": "NaN: its scale", "nan": "NaN", "-inf":
                             "infinity became NaN"},
}  # fmt: skip


@pytest.mark.parametrize(("name", "rule"), OUTCOMES)
def test_outcomes(name, rule, capsys):
    """Report outcomes with the names that other formats have."""
    want = OUTCOMES[name, rule]
    found = report(capsys, "inspect", *want, "--format", name, "--scale", rule)
    assert {each["input"]: each["outcome"] for each in found["values"]} == want


def test_a_number_is_rounded_once(capsys):
    """Round once: a number is not a tie if it is a little more or less than one."""
    tiny = "0" * 30 + "1"
    typed = ["6", "0.25", f"0.25{tiny}", f"-0.25{tiny}", "0.74" + 30 * "9", "0.75",
             f"2.5{tiny}", "1e-400", "-1e-400"]  # fmt: skip
    found = report(capsys, "inspect", *typed, "--format", "mxfp4")["values"]
    values = [each["value"] for each in found]
    assert values == [6, 0, 0.5, -0.5, 0.5, 1, 3, 0, 0]
    assert np.signbit(values[-2:]).tolist() == [False, True]


def test_nan_poisons_a_block(capsys):
    found = report(capsys, "inspect", "1", "nan", "--format", "mxfp4")
    assert [each["value"] for each in found["values"]] == ["nan", "nan"]
    assert found["rules"][0]["scale"] == "nan"
    assert found["rules"][0]["rms_error"] is None
    plain(capsys, "inspect", "1", "nan", "--format", "mxfp4")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            [*17 * ["1"], "--format", "nvfp4"],
            "at most 16 values; got 17. Use --block-size",
        ),
        (
            ["1", "--format", "nvfp4", "--scale", "x"],
            "must be one of amax, floor, even, nf",
        ),
        (
            ["1", "--format", "mxfp4", "--scale", "published"],
            "for mxfp4; got published",
        ),
        (
            ["1", "--format", "mxfp4", "--block-size", "8"],
            "must be one of 16, 32, 64, 1",
        ),
        (["1", "inf", "--format", "nvfp4"], "nvfp4; got inf at x[1]"),
        (["1", "--format", "mxfp4,bf16"], "got mxfp4 and bfloat16"),
        (["1", "--format", "mxfp4", "--all"], "--all must not be given with a block"),
        (["1", "--format", "mxfp5"], "format must be one of"),
        (["0x7", "--format", "mxfp4"], "must be a file or a number"),
    ],
)
def test_blocks_complain(typed, words, capsys):
    assert words in complaint(capsys, "inspect", *typed)
