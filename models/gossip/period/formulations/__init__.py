"""Formulations of the problem ``gossip/period``."""
