"""Gossip by generic convex solvers, which benchmarks and tests compare with."""
