"""The problem ``gossip/circulant``."""
