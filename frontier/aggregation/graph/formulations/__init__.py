"""Formulations of aggregation in a network that solve what the core leaves open."""
