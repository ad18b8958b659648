"""`tf32dtype convert` of models: large losses, tensors that stay, and other files."""

import json
import os

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.command_line import complaint
from tf32dtype._cli.main import main
from tf32dtype._files.convert import quantization_config as configurations
from tf32dtype._files.convert.options import Options
from tf32dtype._files.convert.targets import find

pytestmark = pytest.mark.once

RNG = np.random.default_rng(42)


def weight(*shape, scale=0.05):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def run(capsys, *argv, code=0):
    """Return standard output and standard error of a conversion."""
    assert main(["convert", *argv]) == code
    return capsys.readouterr()


def report(capsys, *argv, code=0):
    out, err = run(capsys, *argv, "--json", code=code)
    return json.loads(out), err


def snr(got, truth):
    got, truth = np.float64(got), np.float64(truth)
    return -20 * np.log10(np.linalg.norm(got - truth) / np.linalg.norm(truth))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- losses that are too large ----------------------------------------------------

SMALL = weight(64, 128)


def test_a_damaged_tensor_is_named_with_a_format_that_keeps_it(capsys):
    td.safetensors.save("w.safetensors", {"w": SMALL, "zeros": 0 * SMALL})
    argv = "w.safetensors", "o.safetensors", "--to", "fp4"
    out, err = run(capsys, *argv, code=1)
    kept = snr(td.blocks.quantize(SMALL, "mxfp4").dequantize(), SMALL)
    assert err.splitlines() == [
        "tf32dtype convert: w has 0.0 dB (100.0% became 0); --to mxfp4 has"
        f" {kept:.1f} dB",
        "tf32dtype convert: 1 tensor below --min-db 10: use --force to accept this",
    ]
    assert "2 tensors converted" in out
    assert not td.safetensors.load("o.safetensors")["w"].astype(float).any()
    found, _ = report(capsys, *argv, "--force")
    (below,) = found["below_min_db"]
    assert (below["name"], below["use"]) == ("w", "mxfp4")
    assert below["use_db"] == pytest.approx(kept, rel=1e-12)
    assert below["snr_db"] == pytest.approx(0, abs=1e-9)


def test_force_accepts_and_says_so(capsys):
    td.safetensors.save("w.safetensors", {"w": SMALL})
    argv = "w.safetensors", "o.safetensors", "--to", "fp4", "--force"
    _, err = run(capsys, *argv)
    assert "w has 0.0 dB" in err
    assert err.endswith("1 tensor below --min-db 10: accepted because of --force\n")


@pytest.mark.parametrize("limit", ["-1", "-inf", "0"])
def test_a_lower_limit_accepts(limit, capsys):
    td.safetensors.save("w.safetensors", {"w": SMALL})
    argv = "w.safetensors", "o.safetensors", "--to", "fp4", f"--min-db={limit}"
    assert run(capsys, *argv).err == ""


@pytest.mark.parametrize("limit", [15, 21, 25, 30, 31.4, 40, 1000])
def test_the_cheapest_format_above_the_limit(limit, capsys):
    x = weight(64, 128, scale=1) ** 3  # tails that distinguish the formats
    td.safetensors.save("w.safetensors", {"layer": x})
    argv = "w.safetensors", "o.safetensors", "--to", "fp4", f"--min-db={limit}"
    rows = td.blocks.quantize_tiles(x, tile=(1, None)).dequantize()
    candidates = {
        "mxfp4": td.blocks.round(x, "mxfp4"),
        "nvfp4": td.blocks.round(x, "nvfp4"),
        "mxfp6_e2m3": td.blocks.round(x, "mxfp6_e2m3"),
        "fp8_e4m3 --tile 1xall": rows,
        "mxfp8": td.blocks.round(x, "mxfp8"),
        "bf16": x.astype(td.bfloat16),
    }
    kept = {name: snr(got, x) for name, got in candidates.items()} | {"float32": np.inf}
    expected = next(name for name, db in kept.items() if db >= limit)
    found, err = report(capsys, *argv, code=1)
    (below,) = found["below_min_db"]
    assert below["use"] == expected
    assert float(below["use_db"]) == pytest.approx(kept[expected], rel=1e-6)
    assert f"--to {expected} has" in err


def test_no_format_has_fewer_bits_than_the_one_asked_for(capsys):
    """Keep 8 bits out of the range of FP8 E4M3: suggest one scale per row."""
    td.safetensors.save("w.safetensors", {"w": 1e5 * SMALL})
    argv = "w.safetensors", "o.safetensors", "--to", "fp8_e4m3"
    found, _ = report(capsys, *argv, code=1)
    (below,) = found["below_min_db"]
    assert below["snr_db"] == "-inf"
    assert below["use"] == "fp8_e4m3 --tile 1xall"


def test_a_shape_that_blocks_do_not_fill(capsys):
    td.safetensors.save("w.safetensors", {"w": weight(7, 9)})
    argv = "w.safetensors", "o.safetensors", "--to", "fp4"
    found, _ = report(capsys, *argv, code=1)
    assert found["below_min_db"][0]["use"] == "fp8_e4m3 --tile 1xall"


def test_nothing_keeps_it(capsys):
    td.safetensors.save("w.safetensors", {"w": np.pi * np.float64(SMALL)})
    argv = "w.safetensors", "o.safetensors", "--to", "bf16", "--min-db", "500"
    found, err = report(capsys, *argv, code=1)
    assert found["below_min_db"][0].keys() == {"name", "snr_db"}
    assert "--exclude keeps it as it is" in err


def test_the_worst_come_first_and_the_others_are_counted(capsys):
    tensors = {f"w{i}": weight(32, 32, scale=0.3 / 2**i) for i in range(9)}
    td.safetensors.save("w.safetensors", tensors)
    argv = "w.safetensors", "o.safetensors", "--to", "fp4", "--exclude", "w3"
    found, err = report(capsys, *argv, code=1)
    below = found["below_min_db"]
    levels = [x["snr_db"] for x in below]
    assert levels == sorted(levels)
    with np.errstate(all="ignore"):
        expected = {
            name for name, x in tensors.items()
            if name != "w3" and snr(x.astype(td.fp4), x) < 10
        }  # fmt: skip
    assert {x["name"] for x in below} == expected
    assert ["use" in x for x in below] == [True] * 5 + [False] * (len(below) - 5)
    lines = err.splitlines()
    assert len(lines) == 7
    assert f"{len(below) - 5} further tensors below --min-db" in lines[5]


def test_a_run_that_ends_early_knows_the_losses(capsys):
    td.safetensors.save("w.safetensors", {f"w{i}": weight(32, 32) for i in range(6)})
    argv = "w.safetensors", "o.safetensors", "--to", "fp4", "--force"
    lines = [
        "import os, sys",
        "from tf32dtype._files.convert import convert",
        "from tf32dtype._cli.main import main",
        "convert._SYNC = 1",
        "write, count = convert._write, []",
        "def ends(item, *rest):",
        "    count.append(item)",
        "    if len(count) == 4: os._exit(9)",
        "    return write(item, *rest)",
        "convert._write = ends",
        "main(sys.argv[1:])",
    ]
    assert forks.python("-c", "\n".join(lines), "convert", *argv).returncode == 9
    found, err = report(capsys, *argv[:-1], code=1)
    assert "resuming after 3 finished tensors" in err
    assert {x["name"] for x in found["below_min_db"]} == {f"w{i}" for i in range(6)}


# -- components of a model --------------------------------------------------------

MODEL = {
    "model.embed_tokens.weight": weight(64, 128),
    "model.layers.0.input_layernorm.weight": weight(128),
    "model.layers.0.self_attn.q_norm.weight": weight(2, 128),
    "model.layers.0.self_attn.q_proj.weight": weight(128, 128),
    "model.layers.0.mlp.gate.weight": weight(8, 128),
    "model.layers.0.mlp.gate_proj.weight": weight(128, 128),
    "model.norm.weight": weight(128),
    "lm_head.weight": weight(64, 128),
}
LINEAR = {x for x in MODEL if "proj" in x}
PARTS = {
    "lm_head.weight": "output head",
    "model.embed_tokens.weight": "embedding",
    "model.layers.0.mlp.gate.weight": "router",
    "model.layers.0.self_attn.q_norm.weight": "norm",
}
MATRICES = {*LINEAR, *PARTS}

#: Options, and the names of the tensors that are converted.
CHOICES = {
    ("mxfp8",): LINEAR,
    ("mxfp6_e2m3",): LINEAR,
    ("mxfp4",): LINEAR,
    ("nvfp4",): LINEAR,
    ("mxint8",): LINEAR,
    ("fp8_e4m3", "--scheme", "deepseek"): LINEAR,
    ("fp8_e5m2", "--tile", "1xall"): LINEAR,
    ("tcfp12",): MATRICES,
    ("tcfp16",): MATRICES,
    ("fp8_e4m3",): MATRICES,
    ("bf16",): {*MODEL},
    ("nvfp4", "--include", "head|q_proj"): {"lm_head.weight", *LINEAR}
    - {"model.layers.0.mlp.gate_proj.weight"},
    ("mxfp8", "--include", "weight$", "--exclude", "norm|gate.w"): {
        "lm_head.weight",
        "model.embed_tokens.weight",
        *LINEAR,
    },
}


@pytest.mark.parametrize("argv", CHOICES, ids=" ".join)
def test_parts_that_are_left_out(argv, capsys):
    td.safetensors.save("m.safetensors", MODEL)
    found, _ = report(capsys, "m.safetensors", "o.safetensors", "--to", *argv)
    assert {x["name"] for x in found["tensors"]} == CHOICES[argv]
    assert found["left_out"] == (PARTS if CHOICES[argv] == LINEAR else {})
    assert {*found["kept"]} == MODEL.keys() - CHOICES[argv]
    out = td.safetensors.load("o.safetensors", blocks=True)
    for name in MODEL.keys() - CHOICES[argv]:
        assert np.array_equal(out[name], MODEL[name])


def test_the_text_says_what_is_left_out(capsys):
    td.safetensors.save("m.safetensors", MODEL)
    out, _ = run(capsys, "m.safetensors", "o.safetensors", "--to", "mxfp8")
    said = ", ".join(f"{name} ({part})" for name, part in sorted(PARTS.items()))
    assert f"\nleft out by default, --include converts them: {said}\n" in out


def test_nothing_but_such_parts(capsys):
    td.safetensors.save("m.safetensors", {"lm_head.weight": weight(32, 32)})
    argv = "convert", "m.safetensors", "o.safetensors", "--to", "mxfp8"
    message = "got lm_head.weight (output head). Use --include to convert these"
    assert message in complaint(capsys, *argv)
    assert os.listdir() == ["m.safetensors"]


def test_the_name_of_a_file_is_no_part(capsys):
    np.save("lm_head.npy", weight(32, 32))
    found, _ = report(capsys, "lm_head.npy", "o.safetensors", "--to", "mxfp8")
    assert [x["name"] for x in found["tensors"]] == ["lm_head"]


#: Names of tensors in other models, and the kinds of these tensors.
NAMES = {
    "transformer.wte.weight": "embedding",
    "transformer.h.0.ln_1.weight": "norm",
    "transformer.h.0.attn.c_attn.weight": "",
    "token_embd.weight": "embedding",
    "output.weight": "output head",
    "output_norm.weight": "norm",
    "blk.0.attn_output.weight": "",
    "blk.0.ffn_gate.weight": "",
    "blk.0.ffn_gate_inp.weight": "router",
    "bert.encoder.layer.0.attention.output.dense.weight": "",
    "bert.encoder.layer.0.output.LayerNorm.weight": "norm",
    "shared.weight": "embedding",
    "model.layers.0.mlp.shared_experts.up_proj.weight": "",
    "model.layers.0.block_sparse_moe.gate.weight": "router",
    "params/Dense_0/kernel": "",
    "params/LayerNorm_0/scale": "norm",
    "transformer_blocks.0.norm1.linear.weight": "",
    "proj_out.weight": "output head",
    "w": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_models(name, capsys):
    td.safetensors.save("m.safetensors", {name: weight(32, 32), "x": weight(32, 32)})
    found, _ = report(capsys, "m.safetensors", "o.safetensors", "--to", "mxfp8")
    assert found["left_out"] == ({name: NAMES[name]} if NAMES[name] else {})


# -- the files next to the tensors ------------------------------------------------

CONFIG = {"model_type": "llama", "hidden_size": 128, "name": "Gött"}
COPIED = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def model(here):
    """Make a folder of a model of several files, and return it."""
    os.mkdir("m")
    td.safetensors.save("m/model.safetensors", MODEL, max_shard_size=100_000)
    (here / "m/config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    for name in (*COPIED, "README.md", "pytorch_model.bin", ".hidden"):
        (here / "m" / name).write_text(name)
    os.mkdir("m/original")
    return here / "m"


def configuration(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def test_a_folder_becomes_a_folder(model, capsys):
    out, err = run(capsys, "m", "o/", "--to", "mxfp8")
    assert err == ""
    tensors = {x for x in os.listdir("m") if "safetensors" in x}
    assert {*os.listdir("o")} == {*tensors, *COPIED, "config.json"}
    assert all((model.parent / "o" / x).read_text() == x for x in COPIED)
    found = configuration("o")
    said = found.pop("quantization_config")
    assert found == CONFIG
    assert said["quant_method"] == "compressed-tensors"
    assert said["ignore"] == sorted(x.removesuffix(".weight") for x in PARTS)
    assert f"copied: {', '.join(COPIED)}\n" in out
    assert "not copied: README.md, pytorch_model.bin (" in out
    assert f"written: {model.parent / 'o' / 'config.json'}\n" in out
    report_, _ = report(capsys, "m", "o/", "--to", "mxfp8", "--force")
    assert report_["quantization_config"] == said
    assert report_["config"] == str(model.parent / "o" / "config.json")
    assert report_["files_copied"] == [*COPIED]
    assert report_["files_not_copied"].keys() == {"README.md", "pytorch_model.bin"}


def test_a_file_gets_nothing_next_to_it(model, capsys):
    out, _ = run(capsys, "m", "o.safetensors", "--to", "mxfp8")
    assert {*os.listdir()} == {"m", "o.safetensors"}
    names = sorted(["config.json", *COPIED])
    assert f"not copied: {', '.join(names)} (OUT is a file)\n" in out
    (line,) = [x for x in out.splitlines() if x.startswith("config.json needs ")]
    found = json.loads("{" + line.removeprefix("config.json needs ") + "}")
    assert found["quantization_config"]["format"] == "mxfp8-quantized"


def test_files_that_exist_stay_without_force(model, here, capsys):
    os.mkdir("o")
    (here / "o/tokenizer.json").write_text("mine")
    (here / "o/tokenizer_config.json").write_text("tokenizer_config.json")
    (here / "o/config.json").write_text("{}")
    found, _ = report(capsys, "m", "o", "--to", "mxfp8")
    exists = "it already exists; use --force to overwrite it"
    assert found["files_not_copied"]["tokenizer.json"] == exists
    assert found["files_not_copied"]["config.json"] == exists
    assert found["files_copied"] == ["generation_config.json", "tokenizer_config.json"]
    assert found["config"] is None
    assert (here / "o/tokenizer.json").read_text() == "mine"
    assert configuration("o") == {}
    report(capsys, "m", "o", "--to", "mxfp8", "--force")
    assert (here / "o/tokenizer.json").read_text() == "tokenizer.json"
    assert configuration("o").keys() == {*CONFIG, "quantization_config"}


def test_a_run_that_ends_before_files_are_copied(model, capsys):
    lines = [
        "import os, sys",
        "from tf32dtype._files.convert import model_files",
        "from tf32dtype._cli.main import main",
        "model_files._write_config = lambda *_: os._exit(9)",
        "main(sys.argv[1:])",
    ]
    argv = "m", "o/", "--to", "mxfp8"
    assert forks.python("-c", "\n".join(lines), "convert", *argv).returncode == 9
    assert not any(name in os.listdir("o") for name in ("config.json", *COPIED))
    found, _ = report(capsys, *argv)
    assert found["files_copied"] == [*COPIED]
    assert "quantization_config" in configuration("o")
    assert not any("part" in name for name in os.listdir("o"))


def test_numbers_by_themselves_need_no_configuration(model, capsys):
    run(capsys, "m", "q/", "--to", "mxfp8")
    found, _ = report(capsys, "q", "w/", "--to", "float32")
    assert found["quantization_config"] is None
    assert configuration("w") == CONFIG


def test_a_mix_of_schemes_has_no_configuration(model, capsys):
    run(capsys, "m", "q/", "--to", "mxfp8")
    found, _ = report(capsys, "q", "x/", "--to", "nvfp4", "--exclude", "q_proj")
    assert found["quantization_config"] is None
    assert found["files_not_copied"]["config.json"] == (
        "its quantization_config is not known"
    )
    assert "config.json" not in os.listdir("x")
    assert "tokenizer.json" in os.listdir("x")


def test_links_of_a_cache_are_followed(model, here, capsys):
    os.mkdir("snapshot")
    os.mkdir("blobs")
    for i, name in enumerate(sorted(os.listdir("m"))):
        if (model / name).is_file():
            os.replace(model / name, here / f"blobs/{i}")
            (here / "snapshot" / name).symlink_to(f"../blobs/{i}")
    run(capsys, "snapshot", "o/", "--to", "mxfp8")
    assert not any((here / "o" / x).is_symlink() for x in os.listdir("o"))
    assert (here / "o/tokenizer.json").read_text() == "tokenizer.json"
    assert "quantization_config" in configuration("o")


@pytest.mark.parametrize("text", ["[1]", "{", "\xff", "[" * 100_000])
def test_a_configuration_that_is_none(text, model, capsys):
    (model / "config.json").write_text(text, encoding="latin1")
    found, _ = report(capsys, "m", "o/", "--to", "mxfp8")
    assert found["files_not_copied"]["config.json"] == "it is not a JSON object"
    assert "config.json" not in os.listdir("o")


def test_a_folder_without_a_model(here, capsys):
    """Files of a folder without a model are not copied."""
    td.safetensors.save("m.safetensors", MODEL)
    (here / "tokenizer.json").write_text("mine")
    found, _ = report(capsys, "m.safetensors", "o/", "--to", "mxfp8")
    assert os.listdir("o") == ["m.safetensors"]
    assert found["files_copied"] == []
    assert found["files_not_copied"] == {}


def test_the_same_folder(model, here, capsys):
    """Copy no file to itself, and keep the configuration."""
    found, _ = report(capsys, "m", "m/o.safetensors", "--to", "mxfp8")
    assert found["files_copied"] == []
    assert configuration("m") == CONFIG


# -- quantization_config ----------------------------------------------------------


def weights(bits, strategy, **more):
    facts = {"num_bits": bits, "type": "float", "symmetric": True, "dynamic": False}
    return {**facts, "strategy": strategy, **more}


def microscales(bits):
    dtypes = {"scale_dtype": "torch.uint8", "zp_dtype": "torch.uint8"}
    return weights(bits, "group", group_size=32, **dtypes)


E4M3 = {"scale_dtype": "torch.float8_e4m3fn", "zp_dtype": "torch.float8_e4m3fn"}
#: Format, weights and inputs, from PRESET_SCHEMES and CompressionFormat of
#: compressed-tensors 0.20.
PRESETS = {
    ("mxfp8", None): ("mxfp8-quantized", microscales(8), microscales(8)),
    ("mxfp6_e2m3", None): ("mxfp6-pack-quantized", microscales(6), None),
    ("mxfp4", None): ("mxfp4-pack-quantized", microscales(4), None),
    ("nvfp4", None): (
        "nvfp4-pack-quantized",
        weights(4, "tensor_group", group_size=16, **E4M3),
        None,
    ),
    ("fp8_e4m3", (1, None)): (
        "float-quantized",
        weights(8, "channel"),
        weights(8, "token"),
    ),
    ("fp8_e4m3", (None, None)): (
        "float-quantized",
        weights(8, "tensor"),
        weights(8, "token"),
    ),
    ("fp8_e4m3", (128, 128)): (
        "float-quantized",
        weights(8, "block", block_structure=[128, 128]),
        weights(8, "group", group_size=128),
    ),
}


@pytest.mark.parametrize("scheme", [None, "vllm"])
@pytest.mark.parametrize("which", PRESETS, ids=str)
def test_compressed_tensors(which, scheme):
    to, tile = which
    target = find(Options(to, scheme=scheme, tile=tile))
    found = configurations.quantization_config(target, ["lm_head"])
    form, own, inputs = PRESETS[which]
    assert found == {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "format": form,
                "weights": own,
                "input_activations": inputs and {**inputs, "dynamic": True},
                "output_activations": None,
            }
        },
        "ignore": ["lm_head"],
    }


def of_modelopt(algorithm, bits, **more):
    own = {"dynamic": False, "num_bits": bits, "type": "float", **more}
    found = {
        "quant_method": "modelopt",
        "quant_algo": algorithm,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": own}},
        "ignore": ["lm_head"],
    }
    sizes = {k: x for k, x in more.items() if k == "group_size"}
    return found | sizes


MX = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "ch_axis": -1}
MX |= {"scale_format": "e8m0"}
OTHERS = {
    ("nvfp4", "modelopt", None): of_modelopt("W4A16_NVFP4", 4, group_size=16),
    ("mxfp8", "modelopt", None): of_modelopt("MXFP8", 8, group_size=32),
    ("fp8_e4m3", "modelopt", (1, None)): of_modelopt(
        "FP8_PER_CHANNEL_PER_TOKEN", 8, strategy="channel"
    ),
    ("fp8_e4m3", "modelopt", (None, None)): of_modelopt("FP8", 8),
    ("fp8_e4m3", "modelopt", (128, 128)): of_modelopt("FP8_PB_WO", 8),
    ("mxfp4", "gpt-oss", None): {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["lm_head"],
    },
    ("fp8_e4m3", "deepseek", None): {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": ["lm_head"],
    },
    ("mxfp4", "quark", None): {
        "quant_method": "quark",
        "global_quant_config": {
            "weight": {**MX, "is_dynamic": False},
            "input_tensors": {**MX, "is_dynamic": True},
            "output_tensors": None,
            "bias": None,
        },
        "layer_quant_config": {},
        "layer_type_quant_config": {},
        "kv_cache_quant_config": {},
        "exclude": ["lm_head"],
        "export": {"kv_cache_group": [], "pack_method": "reorder"},
    },
    ("mxfp8", "torchao", None): None,
    ("tcfp12", "tf32dtype", None): None,
    ("fp8_e5m2", "vllm", (1, None)): None,
}


@pytest.mark.parametrize("which", OTHERS, ids=str)
def test_other_schemes(which):
    to, scheme, tile = which
    target = find(Options(to, scheme=scheme, tile=tile))
    assert configurations.quantization_config(target, ["lm_head"]) == OTHERS[which]
