"""Emulated precisions: scaled integer matrices, exact products, one rounding."""
