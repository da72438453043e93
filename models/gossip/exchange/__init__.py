"""The problem ``gossip/exchange``."""
