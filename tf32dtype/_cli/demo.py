"""Real images classified by a small network in every format.

A network of two layers is trained in float64 on images of handwritten digits
(digits.npz: 8 x 8 pixels of 0 to 16), and classifies images that it has not seen with
numbers of each format: weights, biases, pixels and the results of both
layers. Products are summed in float32 and rounded once, as the hardware of these
formats does. Formats below 16 bits run twice: as they are, and with one power of
two a tensor that brings its largest magnitude just inside the range.

SNR and error compare the ten outputs of an image with those in float64. Bytes are
those of weights and activations, as stored in NumPy. Time is the best of up
to 15 runs on all test images.

The 1,797 images are scikit-learn's: the test part of "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI Machine Learning Repository,
1998, doi:10.24432/C50P49), licensed CC BY 4.0.
"""

import math
import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._matmul.context import matmul_precision
from .._measures.error_measures import power_of_two_scale, snr_db
from .._measures.format_facts import Facts, facts, signed
from .._text import Table, decibels, number, print_json, progress, size

Array = NDArray[Any]

_HEADER = (
    "format",
    "bits",
    "scale",
    "right",
    "SNR dB",
    "max error",
    "bytes",
    "time ms",
)
_HIDDEN = 64
_TEST_IMAGES = 500
_EPOCHS = 40
_BATCH = 64
_REPEATS = 15
_SECONDS = 0.2  # no more runs of a format after that


class Digits(NamedTuple):
    """Images as rows of pixels, and the digits they show."""

    train_images: Array
    train_digits: Array
    test_images: Array
    test_digits: Array


class Network(NamedTuple):
    """Weights and biases of two layers."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array


class Scaled(NamedTuple):
    """A tensor that stands for `array / scale`."""

    array: Array
    scale: float


@dataclass(frozen=True)
class Row:
    """What one format makes of the test images."""

    format: str
    bits: int
    scaled: bool
    accuracy: float
    snr_db: float
    largest_error: float
    bytes: int
    seconds: float


def add_arguments(parser: ArgumentParser) -> None:
    """No arguments of its own."""


@matmul_precision(None)  # whatever the process has: NumPy is compared with
def run(arguments: Namespace) -> None:
    """Train, classify, print the table."""
    digits = load_digits()
    network = train(digits)
    float64 = facts("float64")
    tensors = prepare(network, digits.test_images, float64, scaled=False)
    truth, _ = infer(tensors, float64, scaled=False)
    runs = [(facts(name), False) for name in ("float32", "float16")]
    for form in map(facts, signed()):
        runs += [(form, False), (form, True)] if form.bits < 16 else [(form, False)]
    rows = []
    wanted = not arguments.json
    with progress(wanted, "classifying", len(runs)) as advance:
        for form, scaled in runs:
            rows.append(measure(network, digits, truth, form, scaled=scaled))
            advance()
    accuracy = _accuracy(truth, digits.test_digits)
    if arguments.json:
        print_json(
            {
                "train_images": len(digits.train_images),
                "test_images": len(digits.test_images),
                "float64_accuracy": accuracy,
                "rows": [asdict(row) for row in rows],
            }
        )
    else:
        _print(rows, digits, accuracy)


def load_digits() -> Digits:
    """The images, shuffled, in float64."""
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        inked, shades, digits = file["inked"], file["shades"], file["digits"]
    inked = np.unpackbits(inked).astype(np.bool)
    pixels = np.zeros(len(inked))
    # Two shades of 1 to 16 fill a byte.
    pairs = np.stack([shades >> 4, shades & 15], axis=-1).ravel()
    pixels[inked] = pairs[: np.count_nonzero(inked)] + 1.0
    images = pixels.reshape(len(digits), -1)
    order = np.random.default_rng(1).permutation(len(images))
    train, test = order[:-_TEST_IMAGES], order[-_TEST_IMAGES:]
    return Digits(images[train], digits[train], images[test], digits[test])


def train(digits: Digits) -> Network:
    """Fit the network in float64: Adam on the cross entropy, from a fixed seed."""
    rng = np.random.default_rng(2)
    x, labels = digits.train_images, np.eye(10)[digits.train_digits]
    pixels = x.shape[1]
    network = Network(
        rng.normal(0, math.sqrt(2 / pixels) / 16, (pixels, _HIDDEN)),
        np.zeros(_HIDDEN),
        rng.normal(0, math.sqrt(2 / _HIDDEN), (_HIDDEN, 10)),
        np.zeros(10),
    )
    means = [np.zeros_like(p) for p in network]
    squares = [np.zeros_like(p) for p in network]
    step = 0
    for _ in range(_EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), _BATCH):
            batch = order[start : start + _BATCH]
            step += 1
            rate = 0.002 * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            slopes = _gradient(network, x[batch], labels[batch])
            for p, slope, mean, square in zip(
                network, slopes, means, squares, strict=True
            ):
                mean += 0.1 * (slope - mean)
                square += 0.001 * (slope * slope - square)
                p -= rate * mean / (np.sqrt(square) + 1e-8)
    return network


def _gradient(network: Network, x: Array, labels: Array) -> Network:
    hidden = np.maximum(x @ network.w1 + network.b1, 0)
    logits = hidden @ network.w2 + network.b2
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    d_logits = (odds / odds.sum(axis=1, keepdims=True) - labels) / len(x)
    d_hidden = d_logits @ network.w2.T * (hidden > 0)
    return Network(
        x.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_logits, d_logits.sum(axis=0)
    )


def prepare(
    network: Network, images: Array, form: Facts, *, scaled: bool
) -> list[Scaled]:
    """The images and the network's parameters in a format."""
    return [_round(tensor, form, scaled) for tensor in (images, *network)]


def infer(tensors: list[Scaled], form: Facts, *, scaled: bool) -> tuple[Array, int]:
    """Classify what `prepare` returned.

    Returns
    -------
    numpy.ndarray, int
        The ten outputs of each image in float64, and the bytes of all tensors.
    """
    x, w1, b1, w2, b2 = tensors
    hidden = _round(np.maximum(_layer(x, w1, b1), 0), form, scaled)
    logits = _round(_layer(hidden, w2, b2), form, scaled)
    count = sum(tensor.array.nbytes for tensor in [*tensors, hidden, logits])
    return logits.array.astype(np.float64) / logits.scale, count


def _layer(x: Scaled, w: Scaled, b: Scaled) -> Array:
    """x @ w + b before it is rounded to the format."""
    wide: Any = np.float64 if x.array.dtype == np.float64 else np.float32
    sums: Array = np.matmul(x.array, w.array, dtype=wide)
    # Dividing by powers of two is exact.
    result: Array = sums / (x.scale * w.scale) + b.array.astype(wide) / b.scale
    return result


def _round(x: Array, form: Facts, scaled: bool) -> Scaled:
    if not scaled:
        return Scaled(x.astype(form.dtype), 1.0)
    scale = power_of_two_scale(float(np.max(np.abs(x))), form)
    return Scaled((x * scale).astype(form.dtype), scale)


def measure(
    network: Network, digits: Digits, truth: Array, form: Facts, *, scaled: bool
) -> Row:
    """Run a format and compare its outputs with the true ones."""
    # Overflows are part of the story, and the table tells it.
    with np.errstate(all="ignore"):
        tensors = prepare(network, digits.test_images, form, scaled=scaled)
        times: list[float] = []
        while len(times) < _REPEATS and sum(times) < _SECONDS:
            start = time.perf_counter()
            outputs, count = infer(tensors, form, scaled=scaled)
            times.append(time.perf_counter() - start)
        error = np.where(np.isnan(outputs), np.inf, np.abs(outputs - truth))
        snr = snr_db(float(np.sum(error**2)), float(np.sum(truth**2)))
    return Row(
        format=form.name,
        bits=form.bits,
        scaled=scaled,
        accuracy=_accuracy(outputs, digits.test_digits),
        snr_db=snr,
        largest_error=float(error.max()),
        bytes=count,
        seconds=min(times),
    )


def _accuracy(outputs: Array, digits: Array) -> float:
    """The share of images whose largest output is their digit's, NaN nowhere."""
    right = np.argmax(outputs, axis=1) == digits
    return float(np.mean(right & ~np.isnan(outputs).any(axis=1)))


# -- text ---------------------------------------------------------------------


def _drawn(pixels: Array) -> str:
    """An image, two letters a pixel."""
    shades = " .:-=+*#@"  # of 0, 2, ..., 16
    rows = pixels.reshape(8, 8).astype(int) // 2
    lines = ["".join(2 * shades[shade] for shade in row).rstrip() for row in rows]
    return "\n".join(f"    {line}" for line in lines)


def _print(rows: list[Row], digits: Digits, accuracy: float) -> None:
    print(
        f"{len(digits.train_images)} images of digits to train a network 64-"
        f"{_HIDDEN}-10 in float64, {len(digits.test_images)} to test it: "
        f"{accuracy:.1%} right in float64"
    )
    print(f"\nThe first of these, a {digits.test_digits[0]}:\n")
    print(_drawn(digits.test_images[0]))
    print()
    Table(
        "The same test images in every format",
        _HEADER,
        [
            [
                row.format,
                str(row.bits),
                "2^n" if row.scaled else "1",
                f"{row.accuracy:.1%}",
                decibels(row.snr_db),
                number(row.largest_error),
                size(row.bytes),
                f"{row.seconds * 1e3:.2f}",
            ]
            for row in rows
        ],
        keys=3,
    ).print()
