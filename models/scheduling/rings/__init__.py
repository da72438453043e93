"""Rings of all-reduce jobs through a network."""
