"""Collectives as linear programs, to be embedded."""
