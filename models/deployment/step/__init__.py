"""The problem ``deployment/step``."""
