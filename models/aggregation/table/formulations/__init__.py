"""Formulations of the problem ``aggregation/table``."""
