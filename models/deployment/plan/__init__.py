"""The problem ``deployment/plan``."""
