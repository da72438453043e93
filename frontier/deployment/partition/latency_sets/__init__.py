"""Latency by the sets that run as one: what parts of the graph take at least, and branch and bound over sets."""
