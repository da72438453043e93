"""Formulations of the problem ``scheduling``."""
