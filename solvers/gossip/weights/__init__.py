"""Methods for the problem ``gossip/weights``."""
