"""Gossip: kinds of proofs."""
