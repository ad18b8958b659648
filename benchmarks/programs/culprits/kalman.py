"""Track a vehicle by noisy positions: a Kalman filter of constant velocity."""

import numpy as np

rng = np.random.default_rng(3)
dt, steps = 0.1, 600
F = np.eye(4)
F[0, 2] = F[1, 3] = dt
H = np.eye(2, 4)
Q = np.diag([1e-4, 1e-4, 1e-2, 1e-2])
R = np.diag([4.0, 4.0])

times = dt * np.arange(steps)
truth = np.stack([500 + 12 * times, 200 + 40 * np.sin(0.2 * times)], axis=1)
measured = truth + 2 * rng.standard_normal((steps, 2))

state = np.array([500.0, 200.0, 0.0, 0.0])
P = 100 * np.eye(4)
errors = []
for i in range(steps):
    state = F @ state
    P = F @ P @ F.T + Q
    innovation = measured[i] - H @ state
    S = H @ P @ H.T + R
    gain = P @ H.T @ np.linalg.inv(S)
    state = state + gain @ innovation
    P = (np.eye(4) - gain @ H) @ P
    errors.append(state[:2] - truth[i])

distances = np.sqrt((np.array(errors[100:]) ** 2).sum(axis=1))
print("position", state[:2])
print("speed", np.hypot(state[2], state[3]))
print("standard deviations", np.sqrt(np.diag(P)))
print("mean error", distances.mean())
