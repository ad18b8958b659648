"""Measure a transformer of PyTorch whose matrix products are in other precisions.

    python benchmarks/programs/torch_hook.py [--quick] [--json FILE]

The model has 19 million parameters: 6 layers of 512 channels, with 8 heads and 2048
hidden channels. It reads 4 sequences of 64 or 256 tokens in one thread. Each time is
the median of calls that take turns, as a multiple of PyTorch's own float32 time. A
training step is a forward pass, a backward pass and a step of SGD; in FP8, gradients
are float8_e5m2. The script needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import Functions, machine, medians, pin, restart_as_usual

#: The arguments of `matmul_precision` by the name of a row; None: no scope.
FORWARD: dict[str, dict[str, Any] | None] = {
    "PyTorch": None,
    "no precision": {"precision": None},
    "f32": {"precision": "f32"},
    "tf32": {"precision": "tf32"},
    "bf16": {"precision": "bf16"},
    "fp8_e4m3": {"precision": "fp8_e4m3"},
    "fp8_e4m3, H100": {"precision": "fp8_e4m3", "device": "H100"},
    "mxfp8_e4m3": {"precision": "mxfp8_e4m3"},
    "nvfp4": {"precision": "nvfp4"},
}
TRAINING: dict[str, dict[str, Any] | None] = {
    "PyTorch": None,
    "no precision": {"precision": None},
    "bf16": {"precision": "bf16"},
    "fp8_e4m3": {"precision": "fp8_e4m3", "gradients": "fp8_e5m2"},
    "fp8_e4m3, H100": {
        "precision": "fp8_e4m3",
        "gradients": "fp8_e5m2",
        "device": "H100",
    },
    "mxfp8_e4m3": {"precision": "mxfp8_e4m3"},
}


def transformer() -> Any:
    """Return the model."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(512), nn.LayerNorm(512)])
            self.qkv, self.out = nn.Linear(512, 1536), nn.Linear(512, 512)
            self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            heads = self.qkv(self.norms[0](x)).unflatten(-1, (3, 8, 64))
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            hidden = nn.functional.gelu(self.up(self.norms[1](x)))
            return x + self.down(hidden)

    torch.manual_seed(0)
    return nn.Sequential(*[Layer() for _ in range(6)])


def scoped(
    call: Callable[[], Any], options: dict[str, Any] | None
) -> Callable[[], Any]:
    """Return a call in the scope of a precision."""
    from tf32dtype.interop import torch as tt

    if options is None:
        return call

    def inside() -> None:
        with tt.matmul_precision(**options):
            call()

    return inside


def cases() -> dict[str, Functions]:
    """Return the functions that are timed, by the work that they do."""
    import torch

    model = transformer()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    found: dict[str, Functions] = {}
    for tokens in (64, 256):
        x = torch.randn(4, tokens, 512)

        def forward(x: torch.Tensor = x) -> None:
            with torch.no_grad():
                model(x)

        def step(x: torch.Tensor = x) -> None:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        for name, call, options in (
            ("forward", forward, FORWARD),
            ("training step", step, TRAINING),
        ):
            found[f"{name}, 4 x {tokens} tokens"] = {
                row: scoped(call, chosen) for row, chosen in options.items()
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="repeat less often")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    restart_as_usual()
    core = pin()
    import torch

    torch.set_num_threads(1)
    report: dict[str, Any] = {
        "machine": machine() | {"torch": torch.__version__},
        "core": core,
        "seconds": {},
    }
    for name, functions in cases().items():
        seconds = medians(functions, 3 if arguments.quick else 9, 60)
        report["seconds"][name] = seconds
        print(name)
        for row, found in seconds.items():
            ratio = found / seconds["PyTorch"]
            print(f"    {row:16} {1e3 * found:8.1f} ms  {ratio:5.2f} x")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
