"""Whole slots as choices."""
