"""Branch and price over the sets of blocks that one device has."""
