"""Gaussian process regression of a noisy curve, with error bars."""

import numpy as np

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 10, 250))
noise = 0.1
signal = np.sin(x) + 0.3 * x
y = signal + noise * rng.standard_normal(len(x))
new = np.linspace(0.5, 9.5, 10)


def kernel(a, b, length=1.0, amplitude=2.0):
    difference = (a[:, None] - b) / length
    return amplitude**2 * np.exp(-0.5 * difference**2)


K = kernel(x, x)
K[np.diag_indices(len(x))] += noise**2
L = np.linalg.cholesky(K)
inverse = np.linalg.inv(L)
whitened = inverse @ y
weights = inverse.T @ whitened
across = kernel(new, x)
mean = across @ weights
half = across @ inverse.T
variance = kernel(new, new).diagonal() - (half * half).sum(axis=1)

np.set_printoptions(precision=5)
print("mean", mean)
print("standard deviation", np.sqrt(np.maximum(variance, 0)))
print("log likelihood", -0.5 * (whitened**2).sum() - np.log(np.diag(L)).sum())
