"""Methods for the problem ``deployment/plan``."""
