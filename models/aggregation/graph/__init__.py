"""The problem ``aggregation/graph``."""
