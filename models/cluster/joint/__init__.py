"""The problem ``cluster/joint``."""
