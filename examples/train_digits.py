"""Train a small network on images of digits with weights in many formats.

    python examples/train_digits.py [--plot FILE] [--quick] [--numpy]
                                    [--epochs 30] [--seeds 3]

It needs scikit-learn for the images, and matplotlib to draw. It uses PyTorch if that is
installed, in four to eight minutes. Otherwise, or with --numpy, the same training runs
in NumPy (digits_numpy.py), in about a minute and a half. With --quick, 3 epochs of one
seed, it takes 10 seconds. The remaining time is printed after every training.

Block formats run without and with error feedback. The table has the last epoch's loss
as mean, smallest and largest over the seeds, and the share of 500 unseen images that
are classified correctly. In NumPy, all figures are the same on every machine. In
PyTorch, the last bits of products depend on the processor, and training enlarges the
difference.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import digits_numpy
import numpy as np
from digits_numpy import Curve, Digits

from tf32dtype import blocks

FORMATS = ("float32", "bf16", "tcfp8", "tcfp12", "tcfp16", "mxfp8_e4m3", "mxfp4")
HEADINGS = ("weights", "feedback", "bits", "loss", "of seeds", "right", "to float32")


def train_torch(
    data: Digits, name: str, *, feedback: bool = False, epochs: int, seed: int = 0
) -> Curve:
    """Train as `digits_numpy.train` does, in PyTorch."""
    import torch
    from torch import nn

    from tf32dtype.interop.torch import convert

    layers: list[Any] = []
    for weight, bias in digits_numpy.initial_layers(seed):
        layer = nn.Linear(*weight.shape[::-1])
        layer.weight.data, layer.bias.data = map(torch.from_numpy, (weight, bias))
        layers += [layer, nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    if name in blocks.formats:
        convert(model, name, error_feedback=feedback)
    images, digits, test_images, test_digits = map(torch.from_numpy, data)
    optimizer = torch.optim.SGD(
        model.parameters(), digits_numpy.RATE, digits_numpy.MOMENTUM
    )

    def outputs(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16"):
            return model(x).float()

    curve = Curve()
    for epoch in range(epochs):
        losses = []
        for picked in digits_numpy.batches(len(images), seed, epoch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(outputs(images[picked]), digits[picked])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curve.losses.append(float(np.mean(losses)))
    model.eval()
    with torch.no_grad():
        right = outputs(test_images).argmax(dim=1) == test_digits
    curve.accuracy = right.float().mean().item()
    return curve


def run_all(
    train: Callable[..., Curve], epochs: int, seeds: int
) -> dict[tuple[str, bool], Curve]:
    """Train with all formats; return means over the seeds by format and feedback."""
    data = digits_numpy.load()
    kinds = [(name, False) for name in FORMATS if name not in blocks.formats]
    kinds += [(n, fed) for n in FORMATS if n in blocks.formats for fed in (False, True)]
    progress = Progress([_cost(*kind) for kind in kinds for _ in range(seeds)])
    curves = {}
    for name, feedback in kinds:
        runs = []
        for seed in range(seeds):
            run = train(data, name, feedback=feedback, epochs=epochs, seed=seed)
            runs.append(run)
            what = f"{name}{' with feedback' if feedback else ''}, seed {seed}"
            progress.step(f"{what}: loss {run.losses[-1]:.5f}")
        curves[name, feedback] = Curve(
            np.mean([run.losses for run in runs], axis=0).tolist(),
            float(np.mean([run.accuracy for run in runs])),
            [run.losses[-1] for run in runs],
        )
    return curves


def _cost(name: str, feedback: bool) -> float:
    """Estimate the time of a training relative to that in float32."""
    if name not in blocks.formats:
        return 1 if name == "float32" else 2
    return 4 if feedback else 2


class Progress:
    """Print a line on standard error for each step, with the remaining time."""

    def __init__(self, costs: list[float]) -> None:
        self._costs = costs
        self._done = 0
        self._start = time.perf_counter()

    def step(self, what: str) -> None:
        """Count a finished step and print it."""
        self._done += 1
        spent = time.perf_counter() - self._start
        left = sum(self._costs[self._done :])
        seconds = spent * left / sum(self._costs[: self._done])
        count = f"{self._done}/{len(self._costs)}"
        print(f"{count:>6} {what}; about {seconds:.0f} s left", file=sys.stderr)


def table(curves: dict[tuple[str, bool], Curve]) -> list[tuple[str, ...]]:
    """Return one tuple of strings per run, under `HEADINGS`."""
    plain = curves["float32", False].accuracy
    widths = {"float32": 32.0, "bf16": 16.0}
    return [
        (
            name,
            ("yes" if feedback else "no") if name in blocks.formats else "-",
            f"{widths.get(name) or blocks.formats[name].bits_per_value:g}",
            f"{curve.losses[-1]:.5f}",
            f"{min(curve.last):.5f} to {max(curve.last):.5f}",
            f"{curve.accuracy:.1%}",
            f"{100 * (curve.accuracy - plain):+.1f}",
        )
        for (name, feedback), curve in curves.items()
    ]


def show(curves: dict[tuple[str, bool], Curve]) -> None:
    """Print the table as Markdown."""
    for line in (HEADINGS, ("---",) * len(HEADINGS), *table(curves)):
        print(f"| {' | '.join(line)} |")


def draw(curves: dict[tuple[str, bool], Curve], path: Path) -> None:
    """Draw all loss curves in one plot; curves with feedback are dashed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(drawing)
    axis = drawing.subplots()
    for (name, feedback), curve in curves.items():
        axis.semilogy(
            range(1, len(curve.losses) + 1),
            curve.losses,
            color=f"C{FORMATS.index(name)}",
            linestyle="--" if feedback else "-",
            label=f"{name}, feedback" if feedback else name,
        )
    axis.set_xlabel("epoch")
    axis.set_ylabel("training loss")
    axis.grid(alpha=0.3)
    drawing.legend(loc="outside right center", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=80)


def main(arguments: list[str] | None = None) -> int:
    """Run the trainings, print the table and draw the losses."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--plot", type=Path, help="draw the losses into this file")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--numpy", action="store_true", help="use NumPy instead of PyTorch"
    )
    parser.add_argument(
        "--quick", action="store_true", help="train 3 epochs of one seed (10 s)"
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs, options.seeds = 3, 1
    needed = [("sklearn", "scikit-learn")]
    if options.plot:
        needed.append(("matplotlib", "matplotlib"))
    for module, package in needed:  # reported before minutes of training
        if importlib.util.find_spec(module) is None:
            parser.error(f"{package} is missing: pip install {package}")
    by_torch = not options.numpy and importlib.util.find_spec("torch") is not None
    train = train_torch if by_torch else digits_numpy.train
    way = "PyTorch" if by_torch else "NumPy"
    what = f"{way}, {options.epochs} epochs, means of {options.seeds} seeds"
    seconds = (3.5 if by_torch else 1) * options.epochs * options.seeds
    print(f"{what}: about {seconds:.0f} s; --quick takes 10", file=sys.stderr)
    curves = run_all(train, options.epochs, options.seeds)
    print(f"{what}\n")
    show(curves)
    if options.plot:
        draw(curves, options.plot)
        print(f"\nlosses drawn into {options.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
