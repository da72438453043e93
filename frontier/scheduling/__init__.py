"""Scheduling: column generation over plans and patterns, windows solved exactly, deadlines."""
