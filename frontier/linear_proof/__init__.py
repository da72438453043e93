"""The search that writes proofs of linear formulations' bounds."""
