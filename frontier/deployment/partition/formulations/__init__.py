"""Formulations of partitions that solve what the core leaves open."""
