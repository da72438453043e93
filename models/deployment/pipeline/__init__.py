"""The problem ``deployment/pipeline``."""
