"""Softmax regression on three overlapping groups, by gradient descent."""

import numpy as np

rng = np.random.default_rng(8)
classes, features, samples = 3, 10, 400
centers = rng.standard_normal((classes, features), np.float32)
labels = rng.integers(0, classes, samples)
x = centers[labels] + 1.2 * rng.standard_normal((samples, features), np.float32)
targets = np.eye(classes, dtype=np.float32)[labels]


def softmax(scores):
    shifted = scores - scores.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    return e / e.sum(axis=1, keepdims=True)


weights = np.zeros((features, classes), np.float32)
bias = np.zeros(classes, np.float32)
for _ in range(300):
    scores = x @ weights + bias
    error = softmax(scores) - targets
    gradient = x.T @ error / samples
    weights -= 0.02 * (gradient + 0.001 * weights)
    bias -= 0.02 * error.mean(axis=0)

probabilities = softmax(x @ weights + bias)
loss = -np.log(probabilities[np.arange(samples), labels]).mean()
right = (probabilities.argmax(axis=1) == labels).mean()
print("loss", loss)
print("accuracy", right)
print("size of weights", np.sqrt((weights * weights).sum()))
