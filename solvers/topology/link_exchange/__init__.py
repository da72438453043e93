"""Local search on links."""
