"""The problem ``aggregation/hot``."""
