"""The problem ``compression/forward``."""
