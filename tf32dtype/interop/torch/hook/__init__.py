"""The matrix products of PyTorch, layer by layer, and how they are replaced."""
