"""Principal components of sensor data, by the covariance matrix."""

import numpy as np

rng = np.random.default_rng(7)
samples, sensors = 5000, 20
level = rng.uniform(20, 60, sensors).astype(np.float32)
factors = rng.standard_normal((samples, 3), np.float32) * np.float32([5, 3, 2])
mixing = rng.standard_normal((3, sensors), np.float32)
noise = rng.standard_normal((samples, sensors), np.float32)
data = level + factors @ mixing + 0.5 * noise

mean = data.sum(axis=0) / samples
second = data.T @ data / samples
covariance = second - np.outer(mean, mean)
values, vectors = np.linalg.eigh(covariance)
values, vectors = values[::-1], vectors[:, ::-1]
total = np.trace(covariance)
scores = (data - mean) @ vectors[:, :3]

np.set_printoptions(precision=5)
print("variances", values[:4])
print("explained", values[:3].sum() / total)
print("spread of scores", np.sqrt((scores * scores).sum(axis=0) / samples))
