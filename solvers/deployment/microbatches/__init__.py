"""Methods for the problem ``deployment/microbatches``."""
