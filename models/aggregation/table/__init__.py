"""The problem ``aggregation/table``."""
