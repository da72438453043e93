"""Aggregation: what was made for the last percent."""
