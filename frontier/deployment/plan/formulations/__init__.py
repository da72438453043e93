"""Formulations of the frontier for plans."""
