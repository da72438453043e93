"""Exact choice of compressors by dynamic programming over Pareto labels."""
