"""Methods for the problem ``deployment/step``."""
