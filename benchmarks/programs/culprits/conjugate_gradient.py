"""Solve a Poisson problem by conjugate gradients."""

import numpy as np

n = 20
one = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
eye = np.eye(n)
A = (np.kron(one, eye) + np.kron(eye, one)).astype(np.float32)
grid = np.arange(1, n + 1, dtype=np.float32) / (n + 1)
bump = np.exp(-20 * (grid - 0.4) ** 2)
b = np.outer(bump, bump).ravel()


def solve(A, b, tolerance=1e-4, most=200):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rr = r @ r
    start = rr
    iterations = 0
    while iterations < most:
        iterations += 1
        Ap = A @ p
        alpha = rr / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        if new < tolerance**2 * start:
            break
        p = r + (new / rr) * p
        rr = new
    return x, iterations


x, iterations = solve(A, b)
rest = b - A @ x
print("iterations", iterations)
print("largest", x.max())
print("residual", np.sqrt((rest * rest).sum() / (b * b).sum()))
