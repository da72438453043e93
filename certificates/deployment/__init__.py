"""Deployment: kinds of proofs."""
