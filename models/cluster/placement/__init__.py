"""The problem ``cluster/placement``."""
