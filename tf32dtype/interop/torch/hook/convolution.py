"""Convolutions as products of matrices: im2col."""
