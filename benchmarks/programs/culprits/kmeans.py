"""Cluster weather readings (temperature, humidity, pressure, ...) by k-means."""

import numpy as np

rng = np.random.default_rng(1)
usual = np.array([15, 60, 1013, 4, 300, 10], np.float32)
spread = np.array([8, 15, 9, 3, 120, 2], np.float32)
groups = usual + spread * rng.standard_normal((6, 6), np.float32)
which = rng.integers(0, 6, 4000)
readings = groups[which] + 0.2 * spread * rng.standard_normal((4000, 6), np.float32)


def squared_distances(x, centers):
    xx = (x * x).sum(axis=1)
    cc = (centers * centers).sum(axis=1)
    xc = x @ centers.T
    return xx[:, None] - 2 * xc + cc


centers = readings[:: len(readings) // 6][:6].copy()
for _ in range(20):
    labels = squared_distances(readings, centers).argmin(axis=1)
    one_hot = np.eye(6, dtype=np.float32)[labels]
    sizes = np.maximum(one_hot.sum(axis=0), 1)
    sums = one_hot.T @ readings
    centers = sums / sizes[:, None]

inside = ((readings - centers[labels]) ** 2).sum(axis=1)
print("mean squared distance", inside.mean())
print("warmest center", centers[:, 0].max())
