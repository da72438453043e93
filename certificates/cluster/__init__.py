"""Cluster: what counts as a proof."""
