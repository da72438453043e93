"""Formulations of the problem ``gossip/matchings``."""
