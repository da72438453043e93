"""Methods for the problem ``aggregation/tree``."""
