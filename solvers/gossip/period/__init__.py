"""Methods for the problem ``gossip/period``."""
