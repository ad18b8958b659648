"""Correctly rounded matrix products and sums: the exact value, rounded once."""
