"""One slot with servers of equal contents counted in place of named."""
