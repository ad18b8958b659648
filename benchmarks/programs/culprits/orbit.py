"""A comet and a planet around the sun, by Runge-Kutta steps (units: au, years)."""

import numpy as np

GM = 4 * np.pi**2
steps, dt = 500, 0.004
position = np.array([[1.0, 0.0], [0.0, 1.8]])
velocity = np.array([[0.0, 2 * np.pi], [-3.0, 0.5]])


def acceleration(position):
    squared = (position * position).sum(axis=1, keepdims=True)
    return -GM * position / squared**1.5


def step(x, v):
    k1x, k1v = v, acceleration(x)
    k2x, k2v = v + dt / 2 * k1v, acceleration(x + dt / 2 * k1x)
    k3x, k3v = v + dt / 2 * k2v, acceleration(x + dt / 2 * k2x)
    k4x, k4v = v + dt * k3v, acceleration(x + dt * k3x)
    dx = k1x + 2 * k2x + 2 * k3x + k4x
    dv = k1v + 2 * k2v + 2 * k3v + k4v
    return x + dt / 6 * dx, v + dt / 6 * dv


for _ in range(steps):
    position, velocity = step(position, velocity)

kinetic = 0.5 * (velocity**2).sum(axis=1)
radius = np.sqrt((position**2).sum(axis=1))
print("positions", position.ravel())
print("distances", radius)
print("energies", kinetic - GM / radius)
