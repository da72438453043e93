"""Proofs of orders before the next forward pass."""
