"""Servers that can be exchanged, and what is left of a problem then."""
