"""Formulations of the problem ``topology``."""
