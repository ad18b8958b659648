"""Remove hum from a recording: real DFT of frames by cosines and sines."""

import numpy as np

rng = np.random.default_rng(10)
frame, frames, rate = 256, 120, 8000
time = np.arange(frame * frames) / rate
voice = 0.2 * np.sin(2 * np.pi * 440 * time) * (1 + 0.5 * np.sin(2 * np.pi * 3 * time))
hum = 1.0 * np.sin(2 * np.pi * 62.5 * time)
hiss = 0.02 * rng.standard_normal(len(time))
recording = (voice + hum + hiss).astype(np.float32).reshape(frames, frame)

k = np.arange(frame // 2 + 1)
angle = 2 * np.pi * np.outer(np.arange(frame), k) / frame
cosines = np.cos(angle).astype(np.float32)
sines = np.sin(angle).astype(np.float32)

real = recording @ cosines
imaginary = recording @ sines
keep = (k >= 6).astype(np.float32)
real = real * keep
imaginary = imaginary * keep
twice = np.where((k == 0) | (k == frame // 2), 1, 2).astype(np.float32)
cleaned = ((real * twice) @ cosines.T + (imaginary * twice) @ sines.T) / frame
removed = recording - cleaned

power = (real * real + imaginary * imaginary).mean(axis=0)
print("loudest", power.argmax() * rate / frame, "Hz")
print("level before", np.sqrt((recording * recording).mean()))
print("level after", np.sqrt((cleaned * cleaned).mean()))
print("level removed", np.sqrt((removed * removed).mean()))
