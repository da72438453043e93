"""Whole numbers of links into and out of blocks of servers: bounds for every design."""
