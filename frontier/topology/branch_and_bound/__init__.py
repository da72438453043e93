"""Branch and bound over the neighbours of the servers."""
