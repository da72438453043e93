"""Bounds: the entry point ``ddlopt.bounds``."""

BOUNDS: tuple[object, ...] = ()
