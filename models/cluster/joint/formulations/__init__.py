"""Formulations of jobs with their plans."""
