"""Formulations of the problem ``compression/levels``."""
