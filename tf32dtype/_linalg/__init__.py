"""Factorizations in reduced precision, and solutions with a certificate."""
