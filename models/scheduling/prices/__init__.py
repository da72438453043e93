"""Lagrangian bounds: jobs on their own, at prices of what they share."""
