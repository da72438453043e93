"""In-network aggregation: kinds of proofs."""
