"""The problem ``gossip/period``."""
