"""Methods for the problem ``aggregation/graph``."""
