"""Methods for the problem ``aggregation/table``."""
