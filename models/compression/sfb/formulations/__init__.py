"""Formulations of the problem ``compression/sfb``."""
