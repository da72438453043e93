"""Methods for the problem ``aggregation/registers``."""
