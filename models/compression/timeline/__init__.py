"""The problem ``compression/timeline``."""
