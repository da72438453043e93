"""The problem ``deployment/partition``."""
