"""Forward passes: what writes proofs."""
