"""Proofs of plans by levels."""
