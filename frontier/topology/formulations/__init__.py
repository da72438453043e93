"""Relaxations that choose a part of the links."""
