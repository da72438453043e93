"""Clusters: what was made beside the methods of the problems."""
