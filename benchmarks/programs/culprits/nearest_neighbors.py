"""Estimate rents by the most similar flats: area, year, position in km."""

import numpy as np

rng = np.random.default_rng(11)
usual = np.array([70, 1975, 431, 5412], np.float32)
spread = np.array([20, 15, 5, 5], np.float32)
flats = usual + spread * rng.standard_normal((3000, 4), np.float32)
wanted = usual + 0.7 * spread * rng.standard_normal((300, 4), np.float32)


def rent(flats):
    area, year, east, north = (flats - usual).T
    far = np.sqrt(east * east + north * north)
    return 800 + 9 * area + 3 * year + 400 * np.exp(-far / 4)


rents = rent(flats) + 20 * rng.standard_normal(3000, np.float32)

mean = flats.mean(axis=0)
deviation = np.sqrt(((flats - mean) ** 2).mean(axis=0))
a = (wanted - mean) / deviation
b = (flats - mean) / deviation

squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
d2 = np.maximum(squares - 2 * (a @ b.T), 0)
nearest = np.argsort(d2, axis=1)[:, :9]
estimates = rents[nearest].mean(axis=1)
error = estimates - rent(wanted)
reach = np.sqrt(np.take_along_axis(d2, nearest, axis=1)).mean()
print("mean estimate", estimates.mean())
print("distance to neighbors", reach)
print("typical error", np.sqrt((error * error).mean()))
