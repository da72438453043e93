"""Cayley graphs of abelian groups."""
