"""Formulations of the problem ``aggregation/registers``."""
