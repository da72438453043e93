"""Methods for the problem ``cluster/joint``."""
