"""Train a small language model with products in FP8, and compare the losses.

    python benchmarks/programs/torch_training.py [--steps 400] [--seeds 3] [--json FILE]

It needs PyTorch. The model and the text are those of examples/torch_models.py: four
layers of width 128, and Python's own documentation. All products of the forward and the
backward pass are rounded, as Transformer Engine does: E4M3 for weights and activations,
E5M2 for gradients. Rounded weights and gradients are not stored: the optimizer updates
float32 weights. All ways start from the same weights, and see the same text.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from common import machine
from svg import dot, page, text

RESULTS = Path(__file__).resolve().parents[1] / "results"
#: The formats of each way: the arguments of `matmul_precision`.
WAYS: dict[str, dict[str, Any]] = {
    "float32": {},
    "bf16": {"precision": "bf16"},
    "E4M3, gradients E5M2": {"precision": "fp8_e4m3", "gradients": "fp8_e5m2"},
    "the same on H100": {
        "precision": "fp8_e4m3",
        "gradients": "fp8_e5m2",
        "device": "H100",
    },
    "MXFP8 E4M3, gradients too": {"precision": "mxfp8_e4m3"},
    "NVFP4, gradients too": {"precision": "nvfp4"},
}
SMOOTH = 25  # steps whose mean loss is a point of a curve


def losses(way: dict[str, Any], steps: int, seed: int) -> tuple[list[float], float]:
    """Return the loss of each step of a training, and that of unseen text."""
    import torch
    import torch_models

    from tf32dtype.interop import torch as tt

    words = torch_models.read_text()
    torch.manual_seed(seed)
    model = torch_models.Decoder(len(words.characters))
    random = torch.Generator().manual_seed(seed)

    def scope() -> AbstractContextManager[Any]:
        return tt.matmul_precision(**way) if way else nullcontext()

    def loss() -> Any:
        pieces = torch_models.windows(words.training, 16, random)
        return torch_models.next_characters(model, pieces)

    with scope():
        curve = torch_models.train(model, loss, steps, 2e-3)
    with torch.no_grad(), scope():
        pieces = torch_models.windows(words.unseen, 64, None)
        unseen = float(torch_models.next_characters(model.eval(), pieces))
    return curve, unseen


def measure(steps: int, seeds: int) -> dict[str, Any]:
    """Return the curves of all ways."""
    rows = []
    for name, way in WAYS.items():
        curves, unseen = [], []
        for seed in range(seeds):
            print(f"{name}, seed {seed}")
            curve, last = losses(way, steps, seed)
            curves.append(
                [
                    round(statistics.fmean(curve[i : i + SMOOTH]), 4)
                    for i in range(0, steps, SMOOTH)
                ]
            )
            unseen.append(round(last, 4))
        rows.append({"way": name, "curves": curves, "unseen": unseen})
    return {"machine": machine(), "steps": steps, "seeds": seeds, "rows": rows}


def block(report: dict[str, Any]) -> str:
    """Return the table of the losses."""
    facts, rows = report["machine"], report["rows"]
    usual = statistics.fmean(rows[0]["unseen"])
    lines = [
        f"Computed by `python benchmarks/programs/torch_training.py` on {facts['cpu']},"
        f" {facts['date']}: {report['steps']} steps, means of {report['seeds']} seeds."
        " The loss is the cross entropy of the next character in nats, lower is"
        " better.",
        "",
        "| operands | loss of unseen text | from and to | compared with float32 |",
        "|---|---|---|---|",
    ]
    for row in rows:
        mean, found = statistics.fmean(row["unseen"]), row["unseen"]
        lines.append(
            f"| {row['way']} | {mean:.3f} | {min(found):.3f} to {max(found):.3f} |"
            f" {mean - usual:+.3f} |"
        )
    return "\n".join(lines)


LEFT, TOP, WIDTH, HEIGHT = 60, 30, 560, 280
#: The ways that the figure shows, and their colors.
SHOWN = {
    "float32": "ink",
    "E4M3, gradients E5M2": "blue",
    "NVFP4, gradients too": "orange",
}


def picture() -> str:
    """Return the figure: the losses over the steps."""
    report = json.loads((RESULTS / "torch_training.json").read_text())
    curves = {
        row["way"]: [statistics.fmean(x) for x in zip(*row["curves"], strict=True)]
        for row in report["rows"]
    }
    top = max(max(curves[name]) for name in SHOWN)
    low = min(min(curves[name]) for name in SHOWN) - 0.1
    drawn = [text(0, 16, "training loss, nats per character")]
    for number in range(int(low) + 1, int(top) + 1):
        y = TOP + HEIGHT * (top - number) / (top - low)
        drawn.append(text(LEFT - 20, y + 5, str(number)))
    for order, (name, color) in enumerate(SHOWN.items()):
        for i, loss in enumerate(curves[name]):
            x = LEFT + WIDTH * (i + 0.5) / len(curves[name])
            drawn.append(dot(x, TOP + HEIGHT * (top - loss) / (top - low), color))
        drawn.append(text(LEFT + WIDTH - 200, TOP + 20 + 24 * order, name, color))
    bottom = TOP + HEIGHT + 24
    drawn.append(text(LEFT, bottom, "step 0"))
    drawn.append(text(LEFT + WIDTH - 60, bottom, f"step {report['steps']}"))
    return page(LEFT + WIDTH + 20, bottom + 12, drawn, "Training losses in FP8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=400, help="of each training")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each way")
    parser.add_argument("--json", type=Path, help="write the losses here")
    options = parser.parse_args()
    report = measure(options.steps, options.seeds)
    print(block(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
