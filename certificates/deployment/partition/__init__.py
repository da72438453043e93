"""Partitions: kinds of proofs."""
