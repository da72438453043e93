"""Bounds: the entry point ``ddlopt.bounds``."""

from ddlopt.models.announced_bounds import Bound

BOUNDS: tuple[Bound, ...] = ()
"""None so far: the frontier's bounds are parts of its methods."""
