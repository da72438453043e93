"""Formulations of the problem ``compression/timeline``."""
