"""Rings and routes on fixed links: near-optimally, and exactly."""
