"""Whole programs of plain NumPy, of which only the precision is switched.

Each program takes the dtype to compute in, and uses only float32 numbers, so that its
result in float64 is the reference. Matrix products lose the most in these programs in
float32. They sum 64 products and more, of numbers that bfloat16 does not have. Vectors
are multiplied many at once, as NumPy's product with a single vector sums in another
order on every processor. In the principal components, LAPACK computes the eigenvectors
in float32 in any precision. Only the first few, with distinct eigenvalues, are better
than the products before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

Array = np.ndarray[Any, Any]
Program = Callable[[type], Array]

NUMPY = "NumPy float32"
MODES = ["f32", "bf16x9", "bf16x6", "bf16x3", "tf32x3", "tf32", "bf16"]


# -- programs ----------------------------------------------------------------------


def digits() -> tuple[Array, Array]:
    """Return scikit-learn's images of digits, each pixel with mean 0 and variance 1."""
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    spread = images.std(axis=0)
    images = (images - images.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return images.astype(np.float32), labels


def forward(x: Array, layers: list[tuple[Array, Array]]) -> list[Array]:
    """Return the outputs of all layers, all but the last rectified."""
    outputs = [x]
    for weights, bias in layers:
        x = x @ weights + bias
        outputs.append(np.maximum(x, 0))
    return [*outputs[:-1], x]


def trained(images: Array, labels: Array) -> list[tuple[Array, Array]]:
    """Train a network of three layers in float64."""
    rng = np.random.default_rng(0)
    x = images.astype(np.float64)
    sizes = [64, 256, 256, 10]
    layers = [
        (rng.normal(0, np.sqrt(2 / m), (m, n)), np.zeros(n)) for m, n in pairwise(sizes)
    ]
    for _ in range(100):
        chosen = rng.integers(0, len(x), 256)
        *hidden, logits = forward(x[chosen], layers)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        slope = (shares - np.eye(10)[labels[chosen]]) / len(chosen)
        for i in reversed(range(len(layers))):
            weights, bias = layers[i]
            before = (slope @ weights.T) * (hidden[i] > 0)
            layers[i] = (
                weights - 0.2 * hidden[i].T @ slope,
                bias - 0.2 * slope.sum(axis=0),
            )
            slope = before
    return [(w.astype(np.float32), b.astype(np.float32)) for w, b in layers]


def network() -> Program:
    """Return a program for the logits of a neural network for all images."""
    images, labels = digits()
    layers = trained(images, labels)

    def program(dtype: type) -> Array:
        cast = [(w.astype(dtype), b.astype(dtype)) for w, b in layers]
        return forward(images.astype(dtype), cast)[-1]

    assert np.mean(program(np.float64).argmax(axis=1) == labels) > 0.95
    return program


def tensor_network() -> Program:
    """Return a program for a grid of 3 x 3 tensors with open legs at its corners."""
    opt_einsum = pytest.importorskip("opt_einsum")
    legs = "abu,bcd,cev,afg,fdhi,hej,gkw,kil,ljx"
    rng = np.random.default_rng(1)
    tensors = [
        rng.standard_normal([6 if leg in "uvwx" else 12 for leg in tensor])
        for tensor in legs.split(",")
    ]

    def program(dtype: type) -> Array:
        cast = [tensor.astype(np.float32).astype(dtype) for tensor in tensors]
        result: Array = opt_einsum.contract(f"{legs}->uvwx", *cast, optimize="greedy")
        return result

    return program


def principal_components() -> Program:
    """Return a program for the images in their four principal components.

    scikit-learn computes `X.T @ X`, eigenvectors by `np.linalg.eigh`, and `X @` these.
    """
    decomposition = pytest.importorskip("sklearn.decomposition")
    images, _ = digits()

    def program(dtype: type) -> Array:
        x = images.astype(dtype)
        result: Array = decomposition.PCA(
            n_components=4, svd_solver="covariance_eigh"
        ).fit_transform(x)
        return result

    return program


def conjugate_gradients() -> Program:
    """Return a program of 20 steps for 32 right-hand sides, with condition 10."""
    rng = np.random.default_rng(2)
    n = 160
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    matrix = (q * np.geomspace(1, 10, n)) @ q.T
    matrix = ((matrix + matrix.T) / 2).astype(np.float32)
    sides = rng.standard_normal((n, 32)).astype(np.float32)

    def program(dtype: type) -> Array:
        a, r = matrix.astype(dtype), sides.astype(dtype)
        x, p = np.zeros_like(r), r
        squares = np.sum(r * r, axis=0)
        for _ in range(20):
            ap = a @ p
            step = squares / np.sum(p * ap, axis=0)
            x = x + step * p
            r = r - step * ap
            before, squares = squares, np.sum(r * r, axis=0)
            p = r + squares / before * p
        return x

    return program


# -- their errors ------------------------------------------------------------------


def errors(program: Program) -> dict[str, float]:
    """Return root mean square errors, relative to the reference."""
    truth = program(np.float64)

    def error(result: Array) -> float:
        assert result.dtype == np.float32
        return float(np.linalg.norm(result - truth) / np.linalg.norm(truth))

    found = {NUMPY: error(program(np.float32))}
    for mode in MODES:
        with td.matmul_precision(mode):
            found[mode] = error(program(np.float32))
    assert error(program(np.float32)) == found[NUMPY]
    return found


# The import of scikit-learn takes longer than the other programs.
PROGRAMS = [
    pytest.param(network, marks=pytest.mark.exhaustive),
    tensor_network,
    pytest.param(principal_components, marks=pytest.mark.exhaustive),
    conjugate_gradients,
]


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_errors_are_those_of_the_precision(make: Callable[[], Program]) -> None:
    found = errors(make())
    print({mode: f"{error:.2e}" for mode, error in found.items()})
    assert found["bf16"] > 4 * found["tf32"]
    assert found["tf32"] > 4 * found["bf16x3"]
    assert found["bf16x3"] > 10 * found["bf16x6"]
    assert found["bf16x3"] > 10 * found["tf32x3"]
    assert found["bf16x9"] <= 1.05 * found["bf16x6"]
    assert found["bf16x9"] <= found["tf32x3"]
    assert found["bf16x9"] <= found[NUMPY]
    assert found["bf16x9"] <= found["f32"]
    assert found["f32"] < 2 * found[NUMPY]
