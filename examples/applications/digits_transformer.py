"""A small transformer in plain NumPy that classifies digits: forward pass and training.

    python examples/applications/digits_transformer.py

trains it on scikit-learn's digits in half a minute, and writes its weights to
transformer.npz in this folder. transformer.py uses the weights in many precisions. An
image of 8 x 8 pixels is a sequence of 16 patches of 2 x 2. Each patch has 32 values, to
which two layers add: attention of four heads, and a network of one hidden layer. The
mean over the patches times a last matrix is the logits, one for each digit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Weights = dict[str, Array]
#: Returns the context in which the product of this name runs.
At = Callable[[str], AbstractContextManager[Any]]

WEIGHTS = Path(__file__).resolve().parent / "transformer.npz"
LAYERS, HEADS, WIDTH, HIDDEN, PATCHES, PIXELS, DIGITS = 2, 4, 32, 64, 16, 4, 10
TEST_IMAGES = 500
EPOCHS, BATCH, RATE = 40, 64, 2e-3


class Images(NamedTuple):
    """Patches of images (images x patches x pixels), and the digits that they show."""

    patches: Array
    digits: NDArray[np.intp]


def load() -> tuple[Images, Images]:
    """Return scikit-learn's images: 1297 for training, and 500 unseen."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(images))
    rows = (images / 16).astype(np.float32).reshape(-1, 4, 2, 4, 2)
    patches = rows.transpose(0, 1, 3, 2, 4).reshape(-1, PATCHES, PIXELS)
    train, test = order[:-TEST_IMAGES], order[-TEST_IMAGES:]
    return Images(patches[train], digits[train]), Images(patches[test], digits[test])


def start(seed: int = 0) -> Weights:
    """Return random initial weights of mean 0 and variance 1 over their rows."""
    rng = np.random.default_rng(seed)
    shapes = {"embed": (PIXELS, WIDTH), "place": (PATCHES, WIDTH)}
    for i in range(LAYERS):
        shapes |= {f"{kind}{i}": (WIDTH, WIDTH) for kind in "qkvo"}
        shapes |= {f"up{i}": (WIDTH, HIDDEN), f"down{i}": (HIDDEN, WIDTH)}
    shapes["logits"] = (WIDTH, DIGITS)
    return {
        name: rng.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def forward(
    w: Weights,
    patches: Array,
    at: At = lambda name: nullcontext(),
    kept: list[Any] | None = None,
) -> Array:
    """Return logits (images x digits). A product is named after its line's variable.

    The arrays that training needs are appended to `kept`.
    """
    with at("tokens"):
        tokens = patches @ w["embed"]
    x = tokens + w["place"]
    for i in range(LAYERS):
        a = normalized(x)
        with at("queries"):
            queries = a @ w[f"q{i}"]
        with at("keys"):
            keys = a @ w[f"k{i}"]
        with at("values"):
            values = a @ w[f"v{i}"]
        q, k, v = map(split, (queries, keys, values))
        with at("scores"):
            scores = q @ k.swapaxes(-1, -2)
        p = softmax(scores * x.dtype.type((WIDTH / HEADS) ** -0.5))
        with at("mixed"):
            mixed = p @ v
        m = joined(mixed)
        with at("attended"):
            attended = m @ w[f"o{i}"]
        y = x + attended
        b = normalized(y)
        with at("hidden"):
            hidden = b @ w[f"up{i}"]
        h = np.maximum(hidden, 0)
        with at("added"):
            added = h @ w[f"down{i}"]
        if kept is not None:
            kept.append((x, a, q, k, v, p, m, y, b, h))
        x = y + added
    pooled = normalized(x).mean(axis=1)
    with at("logits"):
        logits = pooled @ w["logits"]
    if kept is not None:
        kept.append((x, pooled))
    return logits


def split(x: Array) -> Array:
    """Reshape images x patches x width to images x heads x patches x head width."""
    return x.reshape(len(x), PATCHES, HEADS, -1).swapaxes(1, 2)


def joined(x: Array) -> Array:
    """Undo `split`."""
    return x.swapaxes(1, 2).reshape(len(x), PATCHES, -1)


def normalized(x: Array) -> Array:
    """Normalize to mean 0 and variance 1 along the last axis."""
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt(np.square(centered).mean(axis=-1, keepdims=True) + 1e-5)


def softmax(x: Array) -> Array:
    """Return the probabilities along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# -- training ----------------------------------------------------------------------


def through_norm(x: Array, slope: Array) -> Array:
    """Return the gradient at x, given that at `normalized(x)`."""
    n = normalized(x)
    size = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    means = slope.mean(axis=-1, keepdims=True)
    return (slope - means - n * (slope * n).mean(axis=-1, keepdims=True)) / size


def of_weight(inputs: Array, slope: Array) -> Array:
    """Return the gradient at a weight that multiplies all rows of the inputs."""
    return inputs.reshape(-1, inputs.shape[-1]).T @ slope.reshape(-1, slope.shape[-1])


def slopes(
    w: Weights, patches: Array, digits: NDArray[np.intp]
) -> tuple[float, Weights]:
    """Return the cross entropy, and its gradient at each weight."""
    kept: list[Any] = []
    odds = softmax(forward(w, patches, kept=kept))
    rows = np.arange(len(digits))
    loss = -float(np.log(odds[rows, digits]).mean())
    odds[rows, digits] -= 1
    s = odds / odds.dtype.type(len(digits))
    x, pooled = kept.pop()
    found = {"logits": pooled.T @ s}
    s = np.repeat((s @ w["logits"].T)[:, None] / PATCHES, PATCHES, axis=1)
    s = through_norm(x, s)
    for i in reversed(range(LAYERS)):
        x, a, q, k, v, p, m, y, b, h = kept.pop()
        found[f"down{i}"] = of_weight(h, s)
        back = (s @ w[f"down{i}"].T) * (h > 0)
        found[f"up{i}"] = of_weight(b, back)
        s = s + through_norm(y, back @ w[f"up{i}"].T)
        found[f"o{i}"] = of_weight(m, s)
        of_mixed = split(s @ w[f"o{i}"].T)
        of_p = of_mixed @ v.swapaxes(-1, -2)
        of_scores = p * (of_p - (of_p * p).sum(axis=-1, keepdims=True))
        of_scores = of_scores * s.dtype.type((WIDTH / HEADS) ** -0.5)
        of_kinds = {
            "q": joined(of_scores @ k),
            "k": joined(of_scores.swapaxes(-1, -2) @ q),
            "v": joined(p.swapaxes(-1, -2) @ of_mixed),
        }
        of_a = np.zeros_like(a)
        for kind, slope in of_kinds.items():
            found[f"{kind}{i}"] = of_weight(a, slope)
            of_a += slope @ w[f"{kind}{i}"].T
        s = s + through_norm(x, of_a)
    found["place"] = s.sum(axis=0)
    found["embed"] = of_weight(patches, s)
    return loss, found


def train(images: Images, epochs: int, seed: int = 0) -> Weights:
    """Train by Adam with a learning rate that falls linearly to almost 0."""
    w = start(seed)
    mean, square = ({k: np.zeros_like(x) for k, x in w.items()} for _ in range(2))
    steps = epochs * (len(images.digits) // BATCH)
    step = 0
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(len(images.digits))
        for begin in range(0, len(order) - BATCH + 1, BATCH):
            picked = order[begin : begin + BATCH]
            loss, found = slopes(w, images.patches[picked], images.digits[picked])
            step += 1
            rate = RATE * (1 - step / (steps + 1))
            for name, slope in found.items():
                mean[name] += 0.1 * (slope - mean[name])
                square[name] += 0.01 * (slope * slope - square[name])
                size = np.sqrt(square[name] / (1 - 0.99**step)) + 1e-8
                w[name] -= rate * (mean[name] / (1 - 0.9**step)) / size
        print(f"epoch {epoch + 1}/{epochs}: loss {loss:.4f}", file=sys.stderr)
    return w


def right(logits: Array, images: Images) -> float:
    """Return the share of images that are classified correctly."""
    return float(np.mean(logits.argmax(axis=1) == images.digits))


if __name__ == "__main__":
    train_images, test_images = load()
    trained = train(train_images, EPOCHS)
    np.savez_compressed(WEIGHTS, allow_pickle=False, **trained)
    told = right(forward(trained, test_images.patches), test_images)
    print(f"{told:.1%} of {TEST_IMAGES} unseen images right; {WEIGHTS.name} written")
