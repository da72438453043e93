"""The problem ``cluster/jobs``."""
