"""Methods for the problem ``cluster/jobs``."""
