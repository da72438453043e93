"""Methods for the problem ``cluster/placement``."""
