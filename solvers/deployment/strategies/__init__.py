"""Methods for the problem ``deployment/strategies``."""
