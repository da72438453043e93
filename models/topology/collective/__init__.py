"""One collective on given links: trees, rings or flows, and the time that no plan beats."""
