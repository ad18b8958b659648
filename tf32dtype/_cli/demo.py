"""Classify images of handwritten digits in formats of 32 to 4 bits.

Example:

  $ tf32dtype demo
  ...
  format         bits  scale  correct  SNR dB  max error      bytes  ...
  -------------  ----  -----  -------  ------  ---------  ---------  ...
  float32          32      1    97.4%   137.5    6.6e-06  288.3 KiB  ...
  ...
  float8_e4m3fn     8      1    97.0%    27.0       1.66  72.08 KiB  ...
  ...

  Blocks (nvfp4, 4.5 bits per value): 485 of 500 images classified as in float32; ...
  GPUs: float16 [1, 2^-12, -1] @ [1, 2^-13, 1] is 2.98e-08 on H100, 0 on A100; ...
  Losses: layer 1 is off by 0.11% (58.9 dB) in bfloat16, by 2.4% (32.5 dB) in FP8; ...

A network of two layers is trained in float64 on images of 8 x 8 pixels. It then
classifies 500 other images in each format: weights, biases, pixels and the results of
both layers are in the format. Matrix multiplications sum in float32 and are rounded
once, as the hardware of these formats does. The table shows some formats; --json shows
every format.

Columns of the table:

scale         1: none; 2^n: one power of two per tensor, which brings the largest
              magnitude just inside the range; block: one scale per block of values
correct       share of images that are classified correctly
SNR dB        -20 log10 of the relative error of the ten outputs of all images; the
              reference is float64
max error     largest error of one output
bytes         size of weights and activations, as NumPy or the block format stores them
time          time relative to float32: 0.5 takes half of its time, 2 takes twice. After
              a warm-up, all formats classify 50 images in turn, 31 times; the medians
              are compared

Three lines follow: a block format, the same multiplication on two GPUs, and the error
of the first layer, as `tf32dtype report --exact` measures it. Each ends with the call
or the command that shows more.

The 1,797 images are scikit-learn's: the test part of "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI Machine Learning Repository,
1998, doi:10.24432/C50P49), licensed CC BY 4.0.
"""

import math
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import blocks, tensor_core
from .._base.text import Table, decibels, number, print_json, progress, size
from .._measures.error_measures import power_of_two_scale, snr_db
from .._measures.format_facts import Facts, facts, signed
from .._measures.ways import select
from .._programs.context import matmul_precision
from ..blocks.formats import BlockFormat
from ..blocks.formats import formats as block_formats
from . import add_output
from .compare_precisions import compare

Array = NDArray[Any]

_HEADER = (
    "format",
    "bits",
    "scale",
    "correct",
    "SNR dB",
    "max error",
    "bytes",
    "time",
)
# The rows of the table: a format, and whether it is scaled.
_SHOWN = (
    ("float32", False),
    ("float16", False),
    ("tf32", False),
    ("bfloat16", False),
    ("float8_e5m2", False),
    ("float8_e4m3fn", False),
    ("float6_e2m3fn", True),
    ("float4_e2m1fn", False),
    ("float4_e2m1fn", True),
    ("mxfp8_e4m3", True),
    ("nvfp4", True),
)
_HIDDEN = 64
_TEST_IMAGES = 500
_EPOCHS = 40
_BATCH = 64
_TIMED_IMAGES = 50  # so few that BLAS starts no threads, whose times vary
_REPEATS = 31


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

    array: Any  # numpy.ndarray or BlockArray
    scale: float


class Form(NamedTuple):
    """A format, and whether its tensors or blocks have scales."""

    facts: Facts | BlockFormat
    scaled: bool

    @property
    def bits(self) -> float:
        """Bits per value, scales of blocks included."""
        if isinstance(self.facts, BlockFormat):
            return self.facts.bits_per_value
        return self.facts.bits

    def round(self, x: Array, axis: int = -1) -> Scaled:
        """Round a tensor to the format; blocks lie along `axis`."""
        if isinstance(self.facts, BlockFormat):
            return Scaled(blocks.quantize(x, self.facts, axis), 1.0)
        if not self.scaled:
            return Scaled(x.astype(self.facts.dtype), 1.0)
        scale = power_of_two_scale(float(np.max(np.abs(x))), self.facts)
        return Scaled((x * scale).astype(self.facts.dtype), scale)


@dataclass(frozen=True)
class Row:
    """The results of one format on the test images."""

    format: str
    bits: float
    scaled: bool
    accuracy: float
    as_float32: int  # images that are classified as in float32
    snr_db: float
    largest_error: float
    bytes: int
    seconds: float


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype demo`."""
    add_output(parser)


@matmul_precision(None)  # whatever the process has: NumPy is compared with
def run(arguments: Namespace) -> None:
    """Train, classify, print the table and the three lines."""
    digits = load_digits()
    network = train(digits)
    chosen = [
        form
        for form in forms()
        if arguments.json or (form.facts.name, form.scaled) in _SHOWN
    ]
    with progress(not arguments.json, "classifying", _REPEATS) as advance:
        rows = measure(network, digits, chosen, advance)
    _, truth = _outputs(network, digits.test_images)
    report = {
        "train_images": len(digits.train_images),
        "test_images": len(digits.test_images),
        "float64_accuracy": float(np.mean(_classes(truth) == digits.test_digits)),
        "rows": [asdict(row) for row in rows],
        "products": _products(),
        "snr_db": _losses(network, digits.test_images),
    }
    if arguments.json:
        print_json(report)
    else:
        _print(report, rows, digits)


def forms() -> list[Form]:
    """Return all formats; those below 16 bits as they are and scaled."""
    plain = [facts(name) for name in ("float32", "float16", *signed())]
    return [
        *(
            Form(x, scaled)
            for x in plain
            for scaled in (False, True)[: 1 + (x.bits < 16)]
        ),
        *(Form(x, True) for x in block_formats.values()),
    ]


def load_digits() -> Digits:
    """Return the images, shuffled, in float64."""
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


def _outputs(network: Network, x: Array) -> tuple[Array, Array]:
    """Return the results of both layers in float64."""
    hidden = np.maximum(x @ network.w1 + network.b1, 0)
    return hidden, hidden @ network.w2 + network.b2


def _gradient(network: Network, x: Array, labels: Array) -> Network:
    hidden, logits = _outputs(network, x)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    d_logits = (odds / odds.sum(axis=1, keepdims=True) - labels) / len(x)
    d_hidden = d_logits @ network.w2.T * (hidden > 0)
    return Network(
        x.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_logits, d_logits.sum(axis=0)
    )


def prepare(network: Network, images: Array, form: Form) -> list[Scaled]:
    """Return the images and the network's parameters in a format."""
    return [form.round(images), *(form.round(tensor, 0) for tensor in network)]


def infer(tensors: list[Scaled], form: Form) -> tuple[Array, int]:
    """Classify the images that `prepare` returned.

    Returns
    -------
    numpy.ndarray, int
        The ten outputs of each image in float64, and the bytes of all tensors.
    """
    x, w1, b1, w2, b2 = tensors
    hidden = form.round(np.maximum(_layer(x, w1, b1), 0))
    logits = form.round(_layer(hidden, w2, b2))
    count = sum(tensor.array.nbytes for tensor in [*tensors, hidden, logits])
    return np.asarray(logits.array, np.float64) / logits.scale, count


def _layer(x: Scaled, w: Scaled, b: Scaled) -> Array:
    """x @ w + b in float32, before it is rounded to the format."""
    sums: Array = np.matmul(x.array, w.array, dtype=np.float32)
    # Dividing by powers of two is exact.
    result: Array = (
        sums / (x.scale * w.scale) + np.asarray(b.array, np.float32) / b.scale
    )
    return result


def measure(
    network: Network, digits: Digits, forms: list[Form], advance: Callable[[], None]
) -> list[Row]:
    """Run formats in turn, float32 first, and compare their outputs with float64's."""
    images = digits.test_images
    _, truth = _outputs(network, images)
    times = np.empty((_REPEATS, len(forms)))
    # Overflows are part of the story, and the table reports them.
    with np.errstate(all="ignore"):
        results = [infer(prepare(network, images, form), form) for form in forms]
        timed = [prepare(network, images[:_TIMED_IMAGES], form) for form in forms]
        for lap in times:
            for i, form in enumerate(forms):
                start = time.perf_counter()
                infer(timed[i], form)
                lap[i] = time.perf_counter() - start
            advance()
        in_float32 = _classes(results[0][0])
        rows = []
        for i, (form, (outputs, count)) in enumerate(zip(forms, results, strict=True)):
            error = np.where(np.isnan(outputs), np.inf, np.abs(outputs - truth))
            classes = _classes(outputs)
            row = Row(
                format=form.facts.name,
                bits=form.bits,
                scaled=form.scaled,
                accuracy=float(np.mean(classes == digits.test_digits)),
                as_float32=int(np.count_nonzero(classes == in_float32)),
                snr_db=snr_db(float(np.sum(error**2)), float(np.sum(truth**2))),
                largest_error=float(error.max()),
                bytes=count,
                seconds=float(np.median(times[:, i])),
            )
            rows.append(row)
    return rows


def _classes(outputs: Array) -> Array:
    """Return the digit with the largest output for each image; -1 if one is NaN."""
    return np.where(np.isnan(outputs).any(axis=1), -1, np.argmax(outputs, axis=1))


def _products() -> dict[str, float]:
    """Return one product of float16 vectors on the tensor cores of two GPUs."""
    p = np.array([[1, 2**-12, -1]], np.float16)
    q = np.array([[1], [2**-13], [1]], np.float16)
    return {
        device: float(tensor_core.matmul(p, q, device=device)[0, 0])
        for device in ("H100", "A100")
    }


def _losses(network: Network, images: Array) -> dict[str, float]:
    """Return the SNR of the first layer's product, as `report --exact` measures it."""
    a, b = images.astype(np.float32), network.w1.astype(np.float32)
    ways = select(["bf16", "fp8_e4m3"])
    return {x.name: x.snr for x in compare(a, b, ways, lambda: None)}


# -- text ---------------------------------------------------------------------


def _drawn(pixels: Array) -> str:
    """Return an image as text, with two letters per pixel."""
    shades = " .:-=+*#@"  # of 0, 2, ..., 16
    rows = pixels.reshape(8, 8).astype(int) // 2
    lines = ["".join(2 * shades[shade] for shade in row).rstrip() for row in rows]
    return "\n".join(f"    {line}" for line in lines)


def _print(report: dict[str, Any], rows: list[Row], digits: Digits) -> None:
    print(
        f"A network of two layers, trained in float64 on {report['train_images']}"
        f" images of digits,\nclassifies {report['float64_accuracy']:.1%} of"
        f" {report['test_images']} other images correctly."
    )
    print(f"\nThe first of these, a {digits.test_digits[0]}:\n")
    print(_drawn(digits.test_images[0]))
    print()
    Table(
        "Test images in each format; time is relative to float32: below 1 is faster",
        _HEADER,
        [
            [
                row.format,
                f"{row.bits:g}",
                "block" if row.format in block_formats else ("1", "2^n")[row.scaled],
                f"{row.accuracy:.1%}",
                decibels(row.snr_db),
                number(row.largest_error),
                size(row.bytes),
                f"{row.seconds / rows[0].seconds:.2f}",
            ]
            for row in rows
        ],
        keys=3,
    ).print()
    print()
    end = "\n   " if sys.stdout.isatty() else ";"  # in a pipe each is one line
    for claim, more in _claims(report, rows[-1]):
        print(f"{claim}{end} more: {more}")


def _claims(report: dict[str, Any], block: Row) -> list[tuple[str, str]]:
    """Return claims on the package, each with a call or command that shows more."""
    h100, a100 = map(number, report["products"].values())
    bf16, fp8 = (
        f"{number(100 * 10 ** (-snr / 20), 2)}% ({decibels(snr)} dB)"
        for snr in report["snr_db"].values()
    )
    return [
        (
            f"Blocks ({block.format}, {block.bits:g} bits per value):"
            f" {block.as_float32} of {report['test_images']} images"
            " classified as in float32",
            f'td.blocks.quantize(x, "{block.format}")',
        ),
        (
            "GPUs: float16 [1, 2^-12, -1] @ [1, 2^-13, 1] is"
            f" {h100} on H100, {a100} on A100",
            'td.tensor_core.explain(p, q, device=["H100", "A100"])',
        ),
        (
            f"Losses: layer 1 is off by {bf16} in bfloat16, by {fp8} in FP8",
            "tf32dtype report script.py",
        ),
    ]
