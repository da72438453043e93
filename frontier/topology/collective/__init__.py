"""Collectives: trees of a few roots, shifted to all others that look the same."""
