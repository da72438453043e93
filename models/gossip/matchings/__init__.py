"""The problem ``gossip/matchings``."""
