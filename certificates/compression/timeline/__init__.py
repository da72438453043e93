"""Proofs of plans on a timeline."""
