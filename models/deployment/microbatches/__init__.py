"""The problem ``deployment/microbatches``."""
