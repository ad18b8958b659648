"""Checks of matrix products without a guessed tolerance."""
