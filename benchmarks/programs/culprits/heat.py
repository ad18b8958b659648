"""Heat equation on a plate: explicit finite differences, one hot edge."""

import numpy as np

n, steps = 64, 3000
r = np.float32(0.2)
u = np.zeros((n, n), np.float32)
u[0] = 100
lost = np.float32(0.0005)

for _ in range(steps):
    up_down = u[:-2, 1:-1] + u[2:, 1:-1]
    left_right = u[1:-1, :-2] + u[1:-1, 2:]
    laplacian = up_down + left_right - 4 * u[1:-1, 1:-1]
    u[1:-1, 1:-1] += r * laplacian
    u[1:-1, 1:-1] *= 1 - lost

inner = u[1:-1, 1:-1]
print("center", u[n // 2, n // 2])
print("column", u[8::16, n // 2])
print("mean", inner.mean())
