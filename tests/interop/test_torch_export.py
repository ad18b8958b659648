"""Checkpoints of mixed precision that `tf32dtype convert --plan` writes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import command_line
from tf32dtype._cli.main import main

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch.hook.multiply import (  # noqa: E402
    round_operand,
    values_of,
)
from tf32dtype.interop.torch.hook.operand_format import operand_format  # noqa: E402
from tf32dtype.interop.torch.hook.unit import OWN  # noqa: E402

#: The formats of weights that compressed-tensors has, with formats of activations.
FORMATS = {
    "nvfp4": "bf16",
    "mxfp4": "mxfp4",
    "mxfp6_e2m3": "mxfp8",
    "mxfp8": "mxfp8",
    "fp8_e4m3": "fp8_e4m3:tensor",
    "fp8_e4m3:row": "fp8_e4m3:row",
    "fp8_e4m3:block": "fp8_e4m3:block",
    "fp8_e4m3:tile": "fp8_e4m3:block",
    "bf16": "bf16",
    "f16": "f32",
}
PLAN = tt.Plan(
    {
        f"layers.{i}": {"weights": weights, "activations": inputs}
        for i, (weights, inputs) in enumerate(FORMATS.items())
    }
)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 128)
        self.layers = nn.ModuleList(nn.Linear(128, 256) for _ in FORMATS)
        self.norm = nn.LayerNorm(128)
        self.head = nn.Linear(128, 8)

    def forward(self, x: Any) -> Any:
        x = self.embed(x)
        x = x + sum(layer(x) for layer in self.layers)[..., :128]
        return self.head(self.norm(x))


@pytest.fixture
def model() -> Any:
    torch.manual_seed(4)
    return Net().eval()


def save(model: Any, folder: Path) -> None:
    folder.mkdir()
    state = {name: tt.to_numpy(x) for name, x in model.state_dict().items()}
    td.safetensors.save(folder / "model.safetensors", state)
    (folder / "config.json").write_text('{"vocab_size": 8}')


def export(model: Any, plan: Any, folder: Path, *options: str) -> dict[str, Any]:
    """Write a checkpoint, and return its quantization_config."""
    save(model, folder / "in")
    plan.save(folder / "plan.toml")
    words = ["convert", f"{folder}/in", f"{folder}/out/", *options]
    assert main([*words, "--plan", f"{folder}/plan.toml", "--min-db=-inf"]) == 0
    config: dict[str, Any] = json.loads((folder / "out/config.json").read_text())
    assert config.pop("vocab_size") == 8
    return config.get("quantization_config", {})


def rounded(weight: Any, name: str) -> Any:
    """Return the values that a weight has in products, as float32."""
    x = weight.detach().float().numpy().T
    return values_of(round_operand(x, operand_format(name), 1, OWN)).T


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that returns the error of a command."""

    def run(*words: str) -> str:
        capsys.readouterr()
        text: str = command_line.complaint(capsys, *words)
        return text

    return run


@pytest.fixture
def refusal(complaint: Any) -> Any:
    """Return a function that returns the error of a plan's export."""

    def run(model: Any, plan: Any, folder: Path, *options: str) -> str:
        save(model, folder / "in")
        plan.save(folder / "plan.toml")
        words = [f"{folder}/in", f"{folder}/out/", "--plan", f"{folder}/plan.toml"]
        text: str = complaint("convert", *words, *options)
        assert not any(folder.glob("out/*"))
        return text.replace(f"{folder}/", "").strip()

    return run


def test_each_layer_has_the_formats_of_the_plan(model: Any, tmp_path: Path) -> None:
    config = export(model, PLAN, tmp_path)
    assert config["format"] == "mixed-precision"
    assert config["ignore"] == [
        "embed",
        "head",
        *(f"layers.{i}" for i, name in enumerate(FORMATS) if name in ("bf16", "f16")),
    ]
    groups = config["config_groups"].values()
    assert {tuple(group["targets"]) for group in groups} == {
        (f"layers.{i}",) for i in range(8)
    }
    forms = [group["format"] for group in groups]
    assert sorted(set(forms)) == [
        "float-quantized",
        "mxfp4-pack-quantized",
        "mxfp6-pack-quantized",
        "mxfp8-quantized",
        "nvfp4-pack-quantized",
    ]
    written = td.safetensors.load(tmp_path / "out/model.safetensors", blocks=True)
    for i, name in enumerate(FORMATS):
        weight = written[f"layers.{i}.weight"]
        values = np.asarray(weight, np.float32)
        wanted = rounded(model.layers[i].weight, name)
        assert np.array_equal(values, wanted), name
    assert written["layers.8.weight"].dtype == td.bfloat16
    assert written["layers.9.weight"].dtype == np.float16
    for name in ("embed.weight", "head.weight", "norm.weight", "layers.0.bias"):
        own = tt.to_numpy(model.state_dict()[name])
        assert written[name].tobytes() == own.tobytes()


def test_compressed_tensors_reads_the_checkpoint(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    compressed_tensors = pytest.importorskip("compressed_tensors")
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationConfig,
        apply_quantization_config,
    )

    safetensors = pytest.importorskip("safetensors.torch")
    assert compressed_tensors
    config = QuantizationConfig.model_validate(export(model, PLAN, tmp_path))
    other = copy.deepcopy(model)
    apply_quantization_config(other, config)
    compressor = ModelCompressor(quantization_config=config)
    compressor.compress_model(other)
    for module in other.modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                parameter.data.zero_()
    state = safetensors.load_file(tmp_path / "out/model.safetensors")
    for i in (8, 9):  # transformers converts plain weights to the dtype of the model
        other.layers[i].to(state[f"layers.{i}.weight"].dtype)
    other.load_state_dict(state)
    compressor.decompress_model(other)
    for i, name in enumerate(FORMATS):
        found = other.layers[i].weight.detach().float().numpy()
        wanted = rounded(model.layers[i].weight, name)
        if name in ("nvfp4", "mxfp4", "mxfp6_e2m3", "mxfp8"):
            dtype = other.layers[i].weight.dtype
            wanted = torch.from_numpy(wanted.copy()).to(dtype).float().numpy()
        assert np.array_equal(found, wanted), name


def test_a_model_in_one_format(model: Any, tmp_path: Path) -> None:
    plan = tt.Plan({"layers.[0-4]": "mxfp8", "layers.*": {"weights": "mxfp8"}})
    config = export(model, plan, tmp_path)
    assert config["format"] == "mxfp8-quantized"
    first, second = config["config_groups"].values()
    assert first["targets"] == [f"layers.{i}" for i in range(5)]
    assert first["input_activations"] == {**first["weights"], "dynamic": True}
    assert second["targets"] == [f"layers.{i}" for i in range(5, 10)]
    assert second["input_activations"] is None
    (tmp_path / "x").mkdir()
    only = export(model, plan, tmp_path / "x", "--weights-only")
    (group,) = only["config_groups"].values()
    assert group["input_activations"] is None
    assert group["targets"] == [f"layers.{i}" for i in range(10)]


def test_plain_weights_need_no_configuration(model: Any, tmp_path: Path) -> None:
    assert export(model, tt.Plan(default="bf16"), tmp_path) == {}
    written = td.safetensors.load(tmp_path / "out/model.safetensors")
    for name, x in written.items():
        is_weight = "layers" in name or name.startswith("head")
        kind = td.bfloat16 if is_weight and name.endswith("weight") else np.float32
        assert x.dtype == kind, name
    safetensors = pytest.importorskip("safetensors.torch")
    state = safetensors.load_file(tmp_path / "out/model.safetensors")
    plain = copy.deepcopy(model)
    plain.load_state_dict(state)
    x = torch.arange(8)
    with torch.no_grad():
        wanted = tt.apply(tt.Plan(default="bf16"), model)(x)
        found = tt.apply(tt.Plan(default="bf16"), plain)(x)
    assert torch.equal(wanted, found), "rounding twice changes nothing"


def test_a_stored_model_has_the_results_of_the_plan(model: Any, tmp_path: Path) -> None:
    plan = tt.Plan({"layers.*": {"weights": "mxfp4", "activations": "mxfp8"}})
    export(model, plan, tmp_path)
    stored = td.safetensors.load(tmp_path / "out/model.safetensors", blocks=True)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for i, layer in enumerate(other.layers):
            weight = np.asarray(stored[f"layers.{i}.weight"], np.float32)
            layer.weight.copy_(torch.from_numpy(weight))
        x = torch.arange(8)
        assert torch.equal(tt.apply(plan, model)(x), tt.apply(plan, other)(x))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("tcfp12", "layers.0: tcfp12: the scheme does not have this format"),
        ("bf16x9", "layers.0: bf16x9 is a precision of products, which no weight has"),
        ("tf32", "layers.0: tf32 is a precision of products"),
        ("fp8_e5m2:row", "layers.0: fp8_e5m2:row: the scheme does not have this form"),
        ("nvfp4", "layers.0: nvfp4 activations must have a calibrated scale in comp"),
        ("fp8_e4m3:tile", "layers.0: fp8_e4m3:tile activations do not exist in compr"),
        (
            {"activations": "mxfp8"},
            "layers.0: mxfp8 activations must have weights with scales; got f32. Use ",
        ),
    ],
)
def test_other_formats_are_refused(
    refusal: Any, model: Any, tmp_path: Path, given: Any, why: str
) -> None:
    text = refusal(model, tt.Plan({"layers.0": given}), tmp_path)
    assert f"cannot be stored as compressed-tensors: {why}" in text


def test_refused_layers_are_named_together(
    refusal: Any, model: Any, tmp_path: Path
) -> None:
    plan = tt.Plan({"layers.9": "nvfp4", "layers.8": "mxfp8", "*": "tcfp12"})
    text = refusal(model, plan, tmp_path, "--weights-only")
    assert "head, layers.0, layers.1, layers.2, layers.3 and 4 more: tcfp12:" in text


def test_activations_may_be_left_out(model: Any, tmp_path: Path) -> None:
    plan = tt.Plan({"layers.0": "nvfp4", "layers.1": {"activations": "mxfp8"}})
    config = export(model, plan, tmp_path, "--weights-only")
    (group,) = config["config_groups"].values()
    assert (group["targets"], group["input_activations"]) == (["layers.0"], None)


@pytest.mark.parametrize("role", ["gradients", "kv_cache", "probabilities"])
def test_formats_of_other_operands_are_refused(
    model: Any, refusal: Any, tmp_path: Path, role: str
) -> None:
    plan = tt.Plan({"layers.3": {"precision": "mxfp8", role: "fp8_e5m2"}})
    said = refusal(model, plan, tmp_path)
    assert f"layers.3: {role} must have the format of activations, mxfp8" in said
    words = [f"{tmp_path}/in", f"{tmp_path}/out/", "--plan", f"{tmp_path}/plan.toml"]
    assert main(["convert", *words, "--weights-only", "--min-db=-inf"]) == 0


def test_formats_of_activations_may_be_those_of_others(
    model: Any, tmp_path: Path
) -> None:
    plan = tt.Plan({"layers.3": {"precision": "mxfp8", "kv_cache": "mxfp8_e4m3"}})
    export(model, plan, tmp_path)


def test_a_plan_that_is_not_final_is_named(
    model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(model, tmp_path / "in")
    tt.Plan({"layers.3": "mxfp8"}, final=False).save(tmp_path / "plan.toml")
    words = [f"{tmp_path}/in", f"{tmp_path}/out/", "--plan", f"{tmp_path}/plan.toml"]
    assert main(["convert", *words]) == 0
    assert "plan.toml is not final, but the best so far" in capsys.readouterr().err


def test_parameters_of_other_modules(refusal: Any, tmp_path: Path) -> None:
    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.self_attn = nn.MultiheadAttention(64, 2)
            self.conv = nn.Conv2d(32, 32, 3)
            self.odd = nn.Linear(50, 8)

    model = Other()
    for i, (name, why) in enumerate(
        {
            "self_attn": "self_attn: mxfp8 weights must be the parameter weight of a"
            " linear layer; got in_proj_weight",
            "conv": "conv: mxfp8 weights must be matrices; got shape (32, 32, 3, 3)",
            "odd": "odd: the last axis must be a multiple of 32; got 50",
        }.items()
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        assert why in refusal(model, tt.Plan({name: "mxfp8"}), folder)
    plan = tt.Plan({"self_attn.out_proj": "mxfp8", "*": "bf16"})
    config = export(model, plan, tmp_path)
    (group,) = config["config_groups"].values()
    assert group["targets"] == ["self_attn.out_proj"]
    written = td.safetensors.load(tmp_path / "out/model.safetensors", blocks=True)
    assert written["self_attn.in_proj_weight"].dtype == td.bfloat16
    assert written["conv.weight"].dtype == td.bfloat16


def test_embeddings_need_their_exact_name(
    model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(model, tt.Plan(default={"weights": "mxfp8"}), tmp_path)
    text = capsys.readouterr().out
    assert (
        "left out unless the plan has their exact names: embed.weight (embedding)"
        in text
    )
    folder = tmp_path / "exact"
    folder.mkdir()
    config = export(model, tt.Plan({"embed": {"weights": "mxfp8"}}), folder)
    assert config["config_groups"]["group_0"]["targets"] == ["embed"]


def test_layers_without_weights_are_reported(
    refusal: Any, model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tt.Plan({"layers.0": {"weights": "mxfp8"}, "attn": "bf16", "none": None})
    export(model, plan, tmp_path)
    assert "has no weights of attn\n" in capsys.readouterr().err
    (tmp_path / "x").mkdir()
    text = refusal(model, tt.Plan({"layer.0": "bf16"}), tmp_path / "x")
    assert text == (
        "tf32dtype convert: in/model.safetensors must have a weight that the plan gives"
        " another format; it has none of layer.0. Did you mean layers.0, layers.9 or"
        " layers.8?"
    )
    (tmp_path / "y").mkdir()
    text = refusal(model, tt.Plan(), tmp_path / "y")
    assert text.endswith("must have a weight that the plan gives another format")


def test_options_that_a_plan_replaces(
    refusal: Any, complaint: Any, model: Any, tmp_path: Path
) -> None:
    for option in (
        "--to=bf16",
        "--scheme=vllm",
        "--include=a",
        "--rounding=toward_zero",
        "--overflow=saturate",
        "--scale=floor",
        "--block-size=32",
        "--tile=1xall",
        "--seed=3",
    ):
        folder = tmp_path / option
        folder.mkdir()
        text = refusal(model, PLAN, folder, option)
        name = option.partition("=")[0]
        assert text == f"tf32dtype convert: {name} cannot be combined with --plan"
    words = ["convert", f"{tmp_path}/--to=bf16/in", f"{tmp_path}/out/"]
    assert "--to or --plan must be given" in complaint(*words)
    text = complaint(*words, "--to", "bf16", "--weights-only")
    assert "--weights-only must only be given with --plan" in text
    (tmp_path / "plan.toml").write_text("version = 3")
    text = complaint(*words, "--plan", f"{tmp_path}/plan.toml")
    assert "plan.toml: version must be 1; got 3" in text
    (tmp_path / "plan.toml").write_text(
        "version = 1\n[[layer]]\nname = 'layers.0'\nprecision = 'fp8_e4m3:x'"
    )
    text = complaint(*words, "--plan", f"{tmp_path}/plan.toml")
    assert "layers.0: format must be fp8_e4m3:row, fp8_e4m3:tensor" in text


def test_a_checkpoint_with_scales_is_refused(
    complaint: Any, model: Any, tmp_path: Path
) -> None:
    plan = tt.Plan({"layers.0": {"weights": "mxfp8"}})
    export(model, plan, tmp_path)
    words = ["convert", f"{tmp_path}/out", f"{tmp_path}/again/"]
    text = complaint(*words, "--plan", f"{tmp_path}/plan.toml")
    assert "--plan must have an input without scales; layers.0.weight has so" in text


def test_excluded_weights_stay(model: Any, tmp_path: Path) -> None:
    plan = tt.Plan({"layers.*": {"weights": "mxfp8"}})
    config = export(model, plan, tmp_path, "--exclude", r"layers\.[3-9]")
    (group,) = config["config_groups"].values()
    assert group["targets"] == [f"layers.{i}" for i in range(3)]


def test_weak_layers_are_named(
    model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(model, tmp_path / "in")
    tt.Plan({"layers.0": {"weights": "mxfp4"}}).save(tmp_path / "plan.toml")
    words = ["convert", f"{tmp_path}/in", f"{tmp_path}/out/", "--min-db", "30"]
    assert main([*words, "--plan", f"{tmp_path}/plan.toml"]) == 1
    text = capsys.readouterr().err
    assert "layers.0.weight has " in text
    assert "; --exclude keeps it as it is" in text


def test_transformers_loads_the_checkpoint(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("compressed_tensors")
    torch.manual_seed(0)
    sizes = {"vocab_size": 32, "hidden_size": 64, "intermediate_size": 128}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.LlamaConfig(num_hidden_layers=2, **sizes, **heads)
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path / "in")
    formats = {"*.0.mlp.*": "mxfp4", "*.self_attn.*": "mxfp8", "*.up_proj": "bf16"}
    formats["*.1.mlp.*"] = "fp8_e4m3:row"
    plan = tt.Plan(formats)
    plan.save(tmp_path / "plan.toml")
    words = ["convert", f"{tmp_path}/in", f"{tmp_path}/out/"]
    assert main([*words, "--plan", f"{tmp_path}/plan.toml", "--min-db=-inf"]) == 0
    loaded = transformers.LlamaForCausalLM.from_pretrained(
        tmp_path / "out", dtype=torch.float32
    )
    loaded.hf_quantizer.compressor.decompress_model(loaded)
    own = dict(model.named_parameters())
    count = 0
    parameters = dict(loaded.named_parameters())
    for name in own:
        found = parameters[name]
        planned = plan.find(name.removesuffix(".weight"))
        wanted = own[name].detach().numpy()
        if planned.precision and not name.endswith("norm.weight"):
            count += 1
            wanted = np.float32(rounded(own[name], planned.precision))
        assert np.array_equal(found.detach().float().numpy(), wanted), name
    assert count == 14
