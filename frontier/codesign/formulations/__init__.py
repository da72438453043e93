"""Relaxations of the joint problem with whole numbers of links."""
