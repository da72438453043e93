"""The problem ``gossip/weights``."""
