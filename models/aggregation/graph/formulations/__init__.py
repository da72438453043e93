"""Formulations of the problem ``aggregation/graph``."""
