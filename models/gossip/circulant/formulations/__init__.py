"""Formulations of the problem ``gossip/circulant``."""
