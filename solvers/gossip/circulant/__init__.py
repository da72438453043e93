"""Methods for the problem ``gossip/circulant``."""
