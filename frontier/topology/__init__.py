"""Topology: branch and bound, listed digraphs and metric inequalities."""
