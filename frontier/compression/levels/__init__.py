"""Levels: what writes proofs."""
