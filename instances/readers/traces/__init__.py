"""Traces of jobs on clusters."""
