"""Methods for the problem ``compression/timeline``."""
