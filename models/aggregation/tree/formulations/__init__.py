"""Formulations of the problem ``aggregation/tree``."""
