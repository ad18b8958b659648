"""Run, report, tune, export and load again three trained PyTorch models.

    python benchmarks/programs/torch_layers.py [--quick] [--models FOLDER] [--json FILE]

It needs PyTorch, scikit-learn and compressed-tensors. The models are those of
examples/torch_models.py: a convolutional network, a decoder with a KV cache, and an
encoder. --models has their checkpoints; without it they are trained first, which takes
about three minutes. The metric of each model is its loss on unseen data.

Each model runs in several formats, is reported, and is tuned. `tf32dtype convert` then
writes its checkpoint in the formats of the plan, and the compressed-tensors package
reads the checkpoint again into a plain PyTorch model.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from common import machine

#: The formats in which all layers of a model run.
PRECISIONS = ("bf16", "fp8_e4m3", "fp8_e4m3:row", "mxfp8", "nvfp4", "mxfp4")
#: The formats of the report.
REPORTED = ("fp8_e4m3", "mxfp8", "nvfp4")
#: The formats that the plan may have: those of weights, with activations in bfloat16.
TUNED = tuple(
    {"weights": name, "activations": "bf16"} for name in ("nvfp4", "mxfp8", "bf16")
)
TOLERANCE = 0.002
#: Layers that stay float32: compressed-tensors stores only weights of linear layers,
#: and blocks only if the last axis is a multiple of their size.
KEPT = {
    "digits": ("first", "second", "third"),
    "encoder": ("layers.layers.*.self_attn", "patches"),
}


def models(folder: Path, quick: bool) -> dict[str, tuple[Any, Any, Any]]:
    """Return each model, its unseen data, and the inputs that are reported."""
    import torch_models as made

    from tf32dtype import safetensors
    from tf32dtype.interop import torch as tt

    if not (folder / "encoder.safetensors").exists():
        words = [sys.executable, made.__file__, str(folder)]
        subprocess.run([*words, *["--quick"] * quick], check=True)
    text = made.read_text()
    *_, images, digits = made.read_digits()
    pieces = made.windows(text.unseen, 8 if quick else 64, None)
    found = {
        "digits": (made.Digits(), (images, digits), (images[:64],)),
        "encoder": (made.Encoder(), (images, digits), (images[:64],)),
        "decoder": (
            made.Decoder(len(text.characters)),
            (pieces,),
            (pieces[:8, :-1],),
        ),
    }
    for name, (model, *_) in found.items():
        weights = safetensors.load(folder / f"{name}.safetensors")
        state = {k: tt.from_numpy(v, copy=True) for k, v in weights.items()}
        model.load_state_dict(state)
        model.eval()
    return found


def loss(model: Any, data: Any) -> float:
    """Return the loss on unseen data."""
    import torch
    import torch_models

    with torch.no_grad():
        if len(data) == 1:
            return float(torch_models.next_characters(model, *data))
        images, digits = data
        return float(torch.nn.functional.cross_entropy(model(images), digits))


def measured(name: str, model: Any, data: Any, inputs: Any, folder: Path) -> Any:
    """Return the figures of a model."""
    from tf32dtype.interop import torch as tt

    usual = loss(model, data)
    losses = {}
    for precision in PRECISIONS:
        with tt.matmul_precision(precision):
            losses[precision] = loss(model, data)
    report, seconds = timed(lambda: tt.report(model, inputs, REPORTED, quiet=True))
    rows = [
        {
            "layer": f"{row.layer} [{row.kind}]" if row.kind else row.layer,
            "share": row.share,
            "snr_db": {p: one.snr_db for p, one in row.errors.items()},
        }
        for row in report.rows
    ]
    alone = {
        group.name: {p: db for p, db in group.output_db.items()}
        for group in report.groups
    }
    plan, tuning = timed(
        lambda: tt.tune(
            model,
            data,
            metric=loss,
            tolerance=TOLERANCE,
            precisions=TUNED,
            skip=KEPT.get(name, ()),
            better="lower",
            quiet=True,
        )
    )
    path = folder / f"{name}.toml"
    plan.save(path)
    formats = Counter(
        str(plan.recipe(layer.name) or "float32") for layer in plan.layers
    )
    tt.apply(plan, model)
    planned = loss(model, data)
    tt.apply(None, model)
    return {
        "parameters": sum(x.numel() for x in model.parameters()),
        "loss": usual,
        "losses": losses,
        "report": {"seconds": seconds, "rows": rows, "alone": alone},
        "plan": {
            "seconds": tuning,
            "formats": dict(formats),
            "layers": {x.name: str(plan.recipe(x.name)) for x in plan.layers},
            "loss": planned,
            "found": dict(plan.found),
        },
    }


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the seconds that it took."""
    start = time.perf_counter()
    result = function()
    return result, round(time.perf_counter() - start, 1)


def exported(name: str, model: Any, data: Any, folder: Path, models_in: Path) -> Any:
    """Write the checkpoint that the plan describes, and load it into a plain model."""
    source = models_in / f"{name}.safetensors"
    target = folder / f"{name}.safetensors"
    words = ["-m", "tf32dtype", "convert", str(source), str(target)]
    words += ["--plan", str(folder / f"{name}.toml"), "--force", "--json"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    config = json.loads(done.stdout)["quantization_config"]
    return {
        "bytes": [source.stat().st_size, target.stat().st_size],
        "loss": loss(loaded(model, config, target), data),
    }


def loaded(model: Any, config: dict[str, Any], path: Path) -> Any:
    """Return a plain model with the weights of a checkpoint."""
    import torch
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationConfig,
        apply_quantization_config,
    )
    from safetensors.torch import load_file

    settings = QuantizationConfig.model_validate(config)
    compressed = copy.deepcopy(model)
    apply_quantization_config(compressed, settings)
    compressor = ModelCompressor(quantization_config=settings)
    compressor.compress_model(compressed)
    state = load_file(path)
    for name, module in compressed.named_modules():
        weight = state.get(f"{name}.weight")
        if weight is not None and weight.dtype in (torch.bfloat16, torch.float16):
            module.to(weight.dtype)
    compressed.load_state_dict(state)
    compressor.decompress_model(compressed)
    plain = copy.deepcopy(model)
    weights = compressed.state_dict()
    plain.load_state_dict({k: weights[k].float() for k in plain.state_dict()})
    return plain.eval()


def block(report: dict[str, Any]) -> str:
    """Return the table of the losses and the plans."""
    facts, found = report["machine"], report["models"]
    names = ["loss", *PRECISIONS]
    lines = [
        f"Computed by `python benchmarks/programs/torch_layers.py` on {facts['cpu']},"
        f" {facts['date']}. Losses on unseen data, lower is better.",
        "",
        f"| model | float32 | {' | '.join(f'`{x}`' for x in PRECISIONS)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for name, one in found.items():
        cells = [one["loss"], *(one["losses"][p] for p in PRECISIONS)]
        lines.append(f"| {name} | {' | '.join(f'{x:.4f}' for x in cells)} |")
    lines += [
        "",
        "| model | layers by the formats of the plan | loss in the plan | bytes of the"
        " checkpoint | loss of the loaded checkpoint |",
        "|---|---|---|---|---|",
    ]
    for name, one in found.items():
        plan, export = one["plan"], one["export"]
        formats = ", ".join(f"{n} `{x}`" for x, n in plan["formats"].items())
        before, after = export["bytes"]
        lines.append(
            f"| {name} | {formats} | {plan['loss']:.4f} | {before:,} before, {after:,}"
            f" after | {export['loss']:.4f} |"
        )
    return "\n".join(lines)


def layers(report: dict[str, Any]) -> str:
    """Return the table of the decoder's layers."""
    one = report["models"]["decoder"]
    alone = one["report"]["alone"]
    lines = [
        "| layer | % work |"
        + "".join(f" `{p}` | output, `{p}` |" for p in REPORTED)
        + " plan |",
        f"|---|---|{'---|' * (2 * len(REPORTED) + 1)}",
    ]
    for row in one["report"]["rows"]:
        layer, _, kind = row["layer"].partition(" [")
        cells = []
        for precision in REPORTED:
            cells.append(f"{float(row['snr_db'][precision]):.0f}")
            db = alone.get(layer, {}).get(precision)
            cells.append("" if db is None or kind == "values]" else f"{float(db):.0f}")
        plan = one["plan"]["layers"].get(layer, "")
        lines.append(
            f"| `{row['layer']}` | {100 * row['share']:.1f} | {' | '.join(cells)} |"
            f" {plan} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="train 20 steps only")
    parser.add_argument("--models", type=Path, help="the folder of the checkpoints")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        where = options.models or folder / "models"
        found = {}
        for name, (model, data, inputs) in models(where, options.quick).items():
            print(name, flush=True)
            figures = measured(name, model, data, inputs, folder)
            figures["export"] = exported(name, model, data, folder, where)
            found[name] = figures
    report = {"machine": machine(), "models": found}
    print(block(report))
    print(layers(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
