"""Formulations of the problem ``aggregation/hot``."""
