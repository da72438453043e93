"""Methods for the problem ``gossip/exchange``."""
