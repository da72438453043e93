"""Branch and bound over plans."""
