"""Write the logits of a small transformer: the program that transformer_plan.py tunes.

    python examples/applications/digits_logits.py FILE.npy [IMAGES [train|test]]

It writes the logits of the first IMAGES images (64) and does not mention precisions.
"""

from __future__ import annotations

import sys

import digits_transformer as model
import numpy as np


def main() -> None:
    path, count, which = [*sys.argv[1:], *("64", "train")[len(sys.argv) - 2 :]]
    with np.load(model.WEIGHTS) as file:
        weights = dict(file)
    train, test = model.load()
    images = {"train": train, "test": test}[which]
    np.save(path, model.forward(weights, images.patches[: int(count)]))


if __name__ == "__main__":
    main()
