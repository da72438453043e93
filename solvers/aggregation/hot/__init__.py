"""Methods for the problem ``aggregation/hot``."""
