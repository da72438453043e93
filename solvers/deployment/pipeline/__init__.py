"""Methods for the problem ``deployment/pipeline``."""
