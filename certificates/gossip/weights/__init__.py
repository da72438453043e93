"""Proofs of mixing weights."""
