"""Transform between fields on the sphere and their spherical harmonics.

A scalar field is the sum over m and n of (2 - [m = 0]) Re s[m, n] P[m, n](mu) e^(imx),
with m <= n <= N, mu the sine of the latitude, x the longitude, and P the associated
Legendre functions with the integral of P^2 over mu equal to 1. Winds are stored as
vorticity and divergence. The grid has 2 (N + 1) Gauss-Legendre latitudes and twice as
many longitudes, like the "TCo" grids of weather models, which have fewer longitudes
towards the poles.

The Legendre stage has two matrix products for each m, of functions that are even and
odd over the equator. The columns are the fields of all levels. The products are plain
`np.matmul`, the FFTs are NumPy's, and all values have the dtype `dtype`. Tables are
computed in float64 and rounded to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

RADIUS = 6371229.0  # of the earth, in meters

Array = NDArray[Any]


class Transform:
    """Temperature and wind on the grid, and their coefficients, truncated at `order`.

    Grids have the shape (3, levels, latitudes, longitudes): temperature, wind to the
    east, wind to the north, from the north pole to the south pole. Coefficients have
    the shape (order + 1, order + 2, 3, levels), by m and n: temperature, vorticity,
    divergence. Only winds need the last n, which is order + 1.
    """

    def __init__(
        self, order: int, dtype: DTypeLike, tables: DTypeLike | None = None
    ) -> None:
        """Compute the tables. `tables` is a dtype to which they are rounded before."""
        self.order, self.dtype = order, np.dtype(dtype)
        self.half = order + 1
        self.latitudes, self.longitudes = 2 * self.half, 4 * self.half
        nodes, weights = np.polynomial.legendre.leggauss(self.latitudes)
        self.sine = nodes[::-1]
        self._to_grid: list[list[Array]] = []
        self._to_spectrum: list[list[Array]] = []
        for functions in legendre(order, self.sine[: self.half]):
            parts = [functions[:, parity::2] for parity in (0, 1)]
            weighted = [part.T * weights[: self.half] for part in parts]
            for kept, made in (
                (self._to_grid, parts),
                (self._to_spectrum, weighted),
            ):
                kept.append([x.astype(tables or dtype).astype(dtype) for x in made])
        by_cosine = 1 / np.sqrt(1 - self.sine**2)
        ones = np.ones_like(by_cosine)
        scale = np.stack([ones, by_cosine, by_cosine], axis=-1)
        self._scale = scale[..., None].astype(dtype)
        m, n = np.mgrid[: order + 1, : order + 3].astype(float)
        square = np.where(n > m, (n**2 - m**2) / (4 * n**2 - 1), 0)
        here, above = np.sqrt(square[:, 1:-1]), np.sqrt(square[:, 1:])
        m, n = m[:, :-1], n[:, :-1]
        laplacian = -n * (n + 1) / RADIUS**2
        inverse = np.divide(1, laplacian, out=np.zeros_like(n), where=n > 0)
        # Factors of (1 - mu^2) d/dmu for coefficients, and for the functions.
        slope = (1 - n[:, 1:]) * here, ((n + 2) * above)[:, :-1]
        own_slope = (n[:, 1:] + 1) * here, (-n * above)[:, :-1]
        tables_of_n = (m, inverse, *slope, *own_slope)
        tables_of_n = [x[..., None].astype(dtype) for x in tables_of_n]
        self._m, self._inverse, *slopes = tables_of_n
        self._slope, self._own_slope = slopes[:2], slopes[2:]

    def to_grid(self, spectrum: Array) -> Array:
        """Return the fields of these coefficients."""
        fields = np.concatenate([spectrum[:, :, :1], self._winds(spectrum)], axis=2)
        columns = fields.reshape(*fields.shape[:2], -1).view(self.dtype)
        waves = np.empty((self.half, self.latitudes, columns.shape[-1]), self.dtype)
        for m, (even, odd) in enumerate(self._to_grid):
            alike = np.matmul(even, columns[m, m::2])
            opposed = np.matmul(odd, columns[m, m + 1 :: 2])
            waves[m, : self.half] = alike + opposed
            waves[m, self.half :] = (alike - opposed)[::-1]
        found = waves.view(spectrum.dtype).reshape(*waves.shape[:2], 3, -1)
        found = (found * self._scale).transpose(2, 3, 1, 0)
        return np.fft.irfft(found, self.longitudes, norm="forward")

    def to_spectrum(self, grid: Array) -> Array:
        """The coefficients of these fields."""
        found = np.fft.rfft(grid, norm="forward")[..., : self.half]
        scaled = np.ascontiguousarray(found.transpose(3, 2, 0, 1)) * self._scale
        waves = scaled.reshape(*scaled.shape[:2], -1).view(self.dtype)
        north, south = waves[:, : self.half], waves[:, self.half :][:, ::-1]
        alike, opposed = north + south, north - south
        shape = self.order + 1, self.order + 2, waves.shape[-1]
        columns = np.zeros(shape, self.dtype)
        for m, (even, odd) in enumerate(self._to_spectrum):
            columns[m, m::2] = np.matmul(even, alike[m])
            columns[m, m + 1 :: 2] = np.matmul(odd, opposed[m])
        spectrum = columns.view(found.dtype).reshape(*shape[:2], 3, -1)
        spectrum[:, :, 1:] = self._curls(spectrum)
        spectrum[:, -1] = 0
        return spectrum

    def _winds(self, spectrum: Array) -> Array:
        """Compute coefficients of wind times cosine from vorticity and divergence."""
        stream = spectrum[:, :, 1] * self._inverse
        potential = spectrum[:, :, 2] * self._inverse
        east = 1j * self._m * potential - neighbors(stream, *self._slope)
        north = 1j * self._m * stream + neighbors(potential, *self._slope)
        return np.stack([east, north], axis=2) / RADIUS

    def _curls(self, spectrum: Array) -> Array:
        """Compute vorticity and divergence from coefficients of wind over cosine."""
        east, north = spectrum[:, :, 1], spectrum[:, :, 2]
        vorticity = 1j * self._m * north + neighbors(east, *self._own_slope)
        divergence = 1j * self._m * east - neighbors(north, *self._own_slope)
        return np.stack([vorticity, divergence], axis=2) / RADIUS


def neighbors(x: Array, lower: Array, upper: Array) -> Array:
    """Return lower times the coefficients of n - 1 plus upper times those of n + 1."""
    found = np.zeros_like(x)
    found[:, 1:] = lower * x[:, :-1]
    found[:, :-1] += upper * x[:, 1:]
    return found


def legendre(order: int, sine: Array) -> list[Array]:
    """Return for each m a row per latitude, with columns n = m ... order + 1."""
    cosine = np.sqrt(1 - sine**2)
    first = np.full_like(sine, np.sqrt(0.5))
    found = []
    for m in range(order + 1):
        if m:
            first = first * cosine * np.sqrt((2 * m + 1) / (2 * m))
        n = np.arange(m, order + 2)
        epsilon = np.sqrt((n**2 - m**2) / (4 * n**2 - 1))
        columns = [first]
        for k in range(1, len(n)):
            below = epsilon[k - 1] * columns[k - 2] if k > 1 else 0
            columns.append((sine * columns[k - 1] - below) / epsilon[k])
        found.append(np.stack(columns, axis=1))
    return found
