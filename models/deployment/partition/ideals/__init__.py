"""Ideals of the order of blocks, and dynamic programs over them."""
