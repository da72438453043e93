"""Gangs: list schedules, and a search over their order."""
