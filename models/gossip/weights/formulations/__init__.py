"""Formulations of the problem ``gossip/weights``."""
