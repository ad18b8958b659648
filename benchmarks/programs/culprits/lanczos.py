"""Largest eigenvalues of a symmetric matrix by the Lanczos method."""

import numpy as np

rng = np.random.default_rng(6)
n, steps = 400, 30
basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
spectrum = np.concatenate([[30.0, 24.0, 23.9], rng.uniform(0, 10, n - 3)])
A = basis * spectrum @ basis.T
A = (A + A.T) / 2

V = np.zeros((n, steps))
alpha, beta = np.zeros(steps), np.zeros(steps)
v = np.ones(n) / np.sqrt(n)
before = np.zeros(n)
for j in range(steps):
    V[:, j] = v
    w = A @ v
    alpha[j] = v @ w
    w = w - alpha[j] * v - (beta[j - 1] if j else 0) * before
    w = w - V[:, : j + 1] @ (V[:, : j + 1].T @ w)
    beta[j] = np.sqrt((w * w).sum())
    before, v = v, w / beta[j]

T = np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
values = np.linalg.eigvalsh(T)
print("eigenvalues", values[-1:-4:-1])
print("gap", values[-2] - values[-3])
