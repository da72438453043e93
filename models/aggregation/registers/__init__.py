"""The problem ``aggregation/registers``."""
