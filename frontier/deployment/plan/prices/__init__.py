"""Bounds and plans from prices of devices, links, the channel and paths."""
