"""Formulations of the problem ``gossip/exchange``."""
