"""Eigenvalues of weighted graphs, and what can be proven of them."""
