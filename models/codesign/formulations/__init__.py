"""Formulations of the problem ``codesign``."""
