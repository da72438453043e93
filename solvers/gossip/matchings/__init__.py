"""Methods for the problem ``gossip/matchings``."""
