"""Links that a group of symmetries leaves as they are, for the search that exchanges links to start from."""
