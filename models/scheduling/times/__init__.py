"""Bounds on makespan and completion times that need no solver."""
