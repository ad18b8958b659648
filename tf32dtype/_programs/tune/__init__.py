"""Tuning: the cheapest plan of precisions that keeps a program's answer."""
