"""The problem ``deployment/strategies``."""
