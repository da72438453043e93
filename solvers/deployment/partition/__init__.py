"""Methods for the problem ``deployment/partition``."""
