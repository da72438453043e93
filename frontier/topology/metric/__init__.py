"""Metric inequalities, separated at the root."""
