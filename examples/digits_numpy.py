"""Load images of digits, and train a network on them in NumPy.

`train` keeps float32 weights, rounds them to a format, and computes with the rounded
weights. Gradients pass straight through the rounding to the float32 weights.
train_digits.py does this in PyTorch: same images, same initial weights, same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tf32dtype import bfloat16, blocks, matmul_precision

Array = NDArray[np.float32]

WIDTHS = (64, 128, 128, 10)
TEST_IMAGES = 500
BATCH = 64
RATE, MOMENTUM = 0.05, 0.9


class Digits(NamedTuple):
    """Rows of 64 pixels between 0 and 1, and the digits that they show."""

    images: Array
    digits: NDArray[np.intp]
    test_images: Array
    test_digits: NDArray[np.intp]


@dataclass
class Curve:
    """The mean loss of every epoch of a training, and its accuracy on the test images.

    In a mean over seeds, `last` has each seed's loss of the last epoch.
    """

    losses: list[float] = field(default_factory=list)
    accuracy: float = 0.0
    last: list[float] = field(default_factory=list)


def load() -> Digits:
    """Return scikit-learn's images: 1297 for training and 500 for tests."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(images))
    train, test = order[:-TEST_IMAGES], order[-TEST_IMAGES:]
    images = (images / 16).astype(np.float32)
    return Digits(images[train], digits[train], images[test], digits[test])


def initial_layers(seed: int) -> list[tuple[Array, Array]]:
    """Return initial weights (outputs x inputs) and biases of each layer."""
    rng = np.random.default_rng(seed)
    return [
        (
            rng.normal(0, (2 / fan_in) ** 0.5, (fan_out, fan_in)).astype(np.float32),
            np.zeros(fan_out, np.float32),
        )
        for fan_in, fan_out in pairwise(WIDTHS)
    ]


def batches(count: int, seed: int, epoch: int) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of the images of each step."""
    order = np.random.default_rng((seed, epoch)).permutation(count)
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]


@matmul_precision("f32")  # has the same bits on every machine, unlike NumPy's products
def train(
    data: Digits, name: str, *, feedback: bool = False, epochs: int, seed: int = 0
) -> Curve:
    """Train with weights in a format: float32, bf16 or a block format.

    bf16 rounds all operands of products to bfloat16, as autocast does.
    """
    layers = initial_layers(seed)
    speeds = [(np.zeros_like(w), np.zeros_like(b)) for w, b in layers]
    rounders = [weight_rounder(name, feedback) for _ in layers]
    low = to_bf16 if name == "bf16" else lambda x: x
    curve = Curve()
    for epoch in range(epochs):
        losses = []
        for picked in batches(len(data.images), seed, epoch):
            used = [
                rounder(w) for rounder, (w, _) in zip(rounders, layers, strict=True)
            ]
            biases = [b for _, b in layers]
            x, labels = data.images[picked], data.digits[picked]
            loss, slopes = step(used, biases, x, labels, low)
            losses.append(loss)
            for parameters, moving, slope in zip(layers, speeds, slopes, strict=True):
                for p, speed, s in zip(parameters, moving, slope, strict=True):
                    speed *= MOMENTUM
                    speed += s
                    p -= RATE * speed
        curve.losses.append(float(np.mean(losses)))
    plain = weight_rounder(name, False)  # feedback is for training
    used, biases = [plain(w) for w, _ in layers], [b for _, b in layers]
    outputs = forward(used, biases, data.test_images, low)[-1]
    curve.accuracy = float(np.mean(outputs.argmax(axis=1) == data.test_digits))
    return curve


def weight_rounder(name: str, feedback: bool) -> Callable[[Array], Array]:
    """Return the function that rounds a layer's weight before it is used."""
    if name == "float32":
        return lambda w: w
    if name == "bf16":
        return to_bf16
    own = blocks.formats[name].scale
    rule = "amax" if own == "mse" else own  # as in tf32dtype.interop.torch
    if feedback:
        remembering = blocks.ErrorFeedback(name, scale=rule)
        return lambda w: remembering.quantize(w).dequantize()
    return lambda w: blocks.round(w, name, scale=rule)


def to_bf16(x: Array) -> Array:
    return x.astype(bfloat16).astype(np.float32)


def forward(
    weights: list[Array], biases: list[Array], x: Array, low: Callable[[Array], Array]
) -> list[Array]:
    """Return the input of every layer, and the outputs of the last layer."""
    inputs = [x]
    for w, b in zip(weights, biases, strict=True):
        outputs = low(inputs[-1]) @ w.T + b
        inputs.append(np.maximum(outputs, 0) if len(inputs) < len(weights) else outputs)
    return inputs


def step(
    weights: list[Array],
    biases: list[Array],
    x: Array,
    labels: NDArray[np.intp],
    low: Callable[[Array], Array],
) -> tuple[float, list[tuple[Array, Array]]]:
    """Return the cross entropy of a batch, and its gradients at weights and biases."""
    *inputs, outputs = forward(weights, biases, x, low)
    rows = np.arange(len(x))
    # Compute in float64 and round: the last bit of float32's exp varies by machine.
    odds = np.exp(outputs - outputs.max(axis=1, keepdims=True), dtype=np.float64)
    odds = (odds / odds.sum(axis=1, keepdims=True)).astype(outputs.dtype)
    loss = float(-np.log(odds[rows, labels], dtype=np.float64).mean())
    odds[rows, labels] -= 1
    back = odds / len(x)
    slopes = []
    for w, given in zip(reversed(weights), reversed(inputs), strict=True):
        narrow = low(back)
        slopes.append((narrow.T @ low(given), back.sum(axis=0)))
        back = (narrow @ w) * (given > 0)
    return loss, slopes[::-1]
