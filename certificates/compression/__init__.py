"""Compression: proofs by labels, of plans on a timeline, by levels or before the next forward pass."""
