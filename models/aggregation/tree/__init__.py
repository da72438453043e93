"""The problem ``aggregation/tree``."""
